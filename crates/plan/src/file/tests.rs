//! Plan files as people write them, well and badly.

use super::*;

fn parse(text: &str) -> Result<PlanFile, Vec<Problem>> {
    let environment = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
    let given = [("rate".to_owned(), "500/s".to_owned())];
    let hosts = |source: &HostSource| match source {
        HostSource::File(path) if path == "hosts" => Ok(HOSTS.to_owned()),
        HostSource::Command(words) => Ok(words.join("\n")),
        HostSource::File(path) => Err(format!("cannot read `{path}`")),
    };
    PlanFile::parse(text, &Variables { given: &given, environment: &environment, hosts: &hosts })
}

/// Each problem as `line:column: message | help`.
fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(|problem| format!("{problem} | {}", problem.help)).collect()
}

const WHOLE: &str = r"
name: checkout
target: https://shop.example
variables: { users: 100, rate: 1/s, host: 10.0.0 }
ssh: { user: load, key: '${HOME}/.ssh/load', jump: load@bastion:2222 }
machines:
  g1: ${host}.1
  g2: { ssh: 'root@[fe80::2]:2200', weight: 3 }
  here: local
  pod: { command: [kubectl, exec, -i, pod, --, squall, agent] }
  shop: { host: shop.internal }
monitors:
  - { machine: shop, process: nginx }
  - { prometheus: 'http://shop:9100/metrics', series: [handshakes_total] }
  - nginx: http://shop/status
files:
  - { from: body.json, to: /tmp/body.json, mode: 0600, on: [g1] }
thresholds: ['errors<1%']
steps:
  - name: warm
    loads:
      - http: [/, 3@/cart]
        name: browse
        connections: ${users}
        header: { Accept: text/html, X-Price: '$${5}' }
        no-keepalive: true
        insecure: false
        on: [g1, g2]
        thresholds: [{ rule: 'p(99)<50', abort: true }]
      - http: /pay
        rate: ${rate}
        start_after: 2s
    pause: 10s
  - loads:
      - tool: wrk
";

#[test]
fn a_plan_says_what_runs_where() {
    let file = parse(WHOLE).unwrap();
    assert_eq!(file.name.as_deref(), Some("checkout"));
    assert_eq!(file.target.as_ref().unwrap().value, "https://shop.example");
    let ssh = |name| match &file.machine(name).unwrap().reach {
        Reach::Ssh(spec) => spec.clone(),
        other => panic!("{other:?}"),
    };
    let g1 = ssh("g1");
    assert_eq!(
        (g1.host.as_str(), g1.user.as_deref(), g1.key.as_deref()),
        ("10.0.0.1", Some("load"), Some("/home/me/.ssh/load"))
    );
    let g2 = ssh("g2");
    assert_eq!((g2.host.as_str(), g2.user.as_deref(), g2.port), ("fe80::2", Some("root"), Some(2200)));
    assert_eq!(g2.jump.as_deref(), Some("load@bastion:2222"));
    assert_eq!((g1.destination(), g2.destination()), ("load@10.0.0.1".into(), "root@[fe80::2]:2200".into()));
    assert_eq!(file.machine("here").unwrap().reach, Reach::Local);
    assert!(matches!(&file.machine("pod").unwrap().reach, Reach::Command(words) if words.len() == 7));
    let generators: Vec<&str> = file.generators().map(|machine| machine.name.value.as_str()).collect();
    assert_eq!(generators, ["g1", "g2", "here", "pod"]);
    assert_eq!(file.files[0].mode, 0o600);
}

#[test]
fn a_load_is_a_command_with_its_flags() {
    let file = parse(WHOLE).unwrap();
    assert_eq!(file.steps.iter().map(|step| step.name.as_str()).collect::<Vec<_>>(), ["warm", "step 2"]);
    assert_eq!(file.steps[0].pause, Duration::from_secs(10));
    let [browse, pay] = &file.steps[0].loads[..] else { panic!("two loads") };
    let words = |load: &LoadSpec| {
        let flags = load.options.iter().map(|option| {
            let values: Vec<&str> = option.values.iter().map(|text| text.value.as_str()).collect();
            format!("{}={}", option.name.value, values.join("|"))
        });
        flags.collect::<Vec<_>>()
    };
    assert_eq!(words(browse), ["connections=100", "header=Accept: text/html|X-Price: ${5}", "no-keepalive="]);
    assert_eq!(browse.arguments.len(), 2);
    assert!(browse.thresholds[0].abort);
    assert_eq!(words(pay), ["rate=500/s"], "what is given wins over the file");
    assert_eq!(pay.start_after, Duration::from_secs(2));
    assert_eq!(file.steps[1].loads[0].kind.value, "tool");
}

#[test]
fn json_is_read_by_the_same_reader() {
    let file = parse("{\n\t\"loads\": [{\"http\": \"http://a/\", \"connections\": 5}]\n}").unwrap();
    assert_eq!(file.steps[0].loads[0].options[0].values[0].place, Place { line: 2, column: 49 });
}

#[test]
fn all_problems_are_reported_at_once_with_their_place() {
    let text = "target: http://a/\nstep: 1\nmachines:\n  g1: { hots: x }\n  g3: { host: y, weight: heavy }\nfiles: [{from: a, to: b, mode: 9}]\nloads:\n  - htp: /\n  - http: /\n    on: [g2]\n    start_after: 5\n  - { http: /, script: x.js }\n";
    assert_eq!(
        problems(text),
        [
            "2:1: a plan has no key `step` | a similar one exists: `steps`",
            "4:7: cannot tell how to reach the machine `g1` | give one of `ssh: user@host`, `local: true`, `command: [program, argument]`, `kubernetes: { replicas: 3 }`",
            "4:9: a machine has no key `hots` | a similar one exists: `host`",
            "5:26: `weight: heavy`: not a weight | write a whole number from 1, such as `3`",
            "6:32: `mode: 9`: not octal permissions | write three or four octal digits, such as 0644",
            "8:5: the load has no kind | add one of http, script, stream, ws, handshake, idle, replay, tool, such as `http: http://localhost:8080/`",
            "10:10: there is no machine `g2` | a similar one exists: `g1`",
            "11:18: `start_after: 5`: a unit is missing | write a duration with its unit, such as `500ms`, `10s`, `2m` or `1h30m`",
        ]
    );
}

#[test]
fn a_key_that_is_here_twice_hides_no_other_problem() {
    let text = "name: a\nname: b\n[x]: c\nloads:\n  - { http: '${NO_SUCH}', start_after: '${NONE}' }\n  - { htp: / }\n";
    let found = problems(text);
    let expected = [
        "2:1: duplicate key `name`, first on line 1 | keep one of them",
        "3:1: a key that is not text | write `key: value`",
        "5:13: the variable `NO_SUCH` has no value",
        "5:40: the variable `NONE` has no value",
        "6:5: the load has no kind",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn what_cannot_be_watched_is_reported_before_the_run() {
    for (monitor, expected) in [
        (
            "nginx: foo",
            "`nginx: foo`: not an http or https URL | write the whole URL, such as `http://shop/nginx_status`",
        ),
        ("h2o: 'ftp://u:p@shop/'", "`h2o: ftp://***@shop/`: not an http or https URL"),
        ("prometheus: 'http://shop:99999/metrics'", "`prometheus: http://shop:99999/metrics`: not an http"),
        (
            "{ prometheus: 'http://shop/', series: 5 }",
            "`series: 5`: not the name of a series | write a name, such as",
        ),
        ("{ prometheus: 'http://shop/', series: ['up{a=\"b\"', up] }", "`series: up{a=\"b\"`: not the name"),
    ] {
        let found = problems(&format!("monitors:\n  - {monitor}\nloads: [{{ http: 'http://a/' }}]\n"));
        assert!(found.len() == 1 && found[0].contains(expected), "{monitor} gave {found:?}");
    }
    let good = "monitors: [{ prometheus: 'https://shop/', series: ['up{a=\"b}\"}', job:rate, _x1] }]\nloads: [{ http: 'http://a/' }]\n";
    assert!(parse(good).is_ok());
}

#[test]
fn reports_name_a_page_without_its_user_information() {
    for (url, source) in [
        ("http://bob:secret@shop:9100/metrics", "shop:9100"),
        ("https://bob@[::1]:80", "[::1]:80"),
        ("http://shop?user=a@b", "shop"),
    ] {
        let file =
            parse(&format!("monitors: [{{ h2o: '{url}' }}]\nloads: [{{ http: 'http://a/' }}]\n")).unwrap();
        assert_eq!(file.monitors[0].source(), source);
    }
}

#[test]
fn what_is_no_plan_is_reported_in_one_problem() {
    for (text, expected) in [
        ("", "1:1: a plan is a mapping, but here is nothing"),
        ("[1, 2]", "1:1: a plan is a mapping, but here is a list"),
        ("a: [1\n", "2:1: while parsing"),
        ("a: &x [*x]\n", "1:8: an alias inside its own anchor"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document"),
        ("loads: [{http: '${NO_SUCH}'}]\n", "1:16: the variable `NO_SUCH` has no value"),
        ("loads: [{http: '${open'}]\n", "1:16: `${` without a closing `}`"),
        ("variables: {1x: 5}\nloads: [{http: /}]\n", "1:13: `1x` is not a name"),
    ] {
        let found = problems(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text:?} gave {found:?}");
    }
}

#[test]
fn a_bare_variable_in_braces_is_helped() {
    let found = problems("loads:\n  - { http: '/${a', connections: ${n}, duration: 1s }\n");
    assert!(found[0].starts_with("2:") && found[0].contains("in quotes: \"${name}\""), "{found:?}");
}

#[test]
fn hostile_files_stay_bounded() {
    let laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
    assert!(problems(laughs)[0].contains("too many values"));
    assert!(!problems(&"[".repeat(10_000)).is_empty());
    assert!(problems(&" ".repeat(5 << 20))[0].contains("larger than"));
    let mut doubling = format!("variables:\n  v0: {}\n", "x".repeat(1000));
    (1..40).for_each(|nth| doubling.push_str(&format!("  v{nth}: ${{v{0}}}${{v{0}}}\n", nth - 1)));
    let found = problems(&(doubling + "loads: [{ http: '${v39}' }]\n"));
    assert!(found[0].contains("variables add more than 16 MiB"), "{found:?}");
    let text = "x".repeat(100_000);
    let aliases = format!("a: &a {text}\nb: [{}]\n", vec!["*a"; 400].join(","));
    assert!(problems(&aliases)[0].contains("too many values"));
}

/// A list of hosts as a file has it.
const HOSTS: &str = "# generators\n[eu]\nload@10.1.0.[1-2]:2200\n\n[us]\nu1 10.2.0.1 # with a name\n";

fn places(file: &PlanFile) -> Vec<(String, String)> {
    let place = |machine: &Machine| match &machine.reach {
        Reach::Ssh(spec) => spec.destination(),
        Reach::Local | Reach::Command(_) | Reach::Pod { .. } => String::new(),
    };
    file.machines.iter().map(|machine| (machine.name.value.clone(), place(machine))).collect()
}

#[test]
fn ranges_groups_and_lists_of_hosts_are_machines() {
    let loads = "loads: [{http: 'http://a/', on: [all, us]}]\n";
    for (machines, expected, on) in [
        (
            "machines:\n  g[1-2]: me@10.0.0.[11-12]\n  x[9-10]: local\ngroups:\n  all: g[1-2]\n  us: [x9]\n",
            &[("g1", "me@10.0.0.11"), ("g2", "me@10.0.0.12"), ("x9", ""), ("x10", "")][..],
            &["g1", "g2", "x9"][..],
        ),
        (
            "inventory: hosts\ngroups: {all: ['10.1.0.1:2200', u1]}\nssh: {user: me}\n",
            &[
                ("10.1.0.1:2200", "load@10.1.0.1:2200"),
                ("10.1.0.2:2200", "load@10.1.0.2:2200"),
                ("u1", "me@10.2.0.1"),
            ],
            &["10.1.0.1:2200", "u1", "u1"],
        ),
        ("inventory: {command: 'a b'}\ngroups: {all: a, us: b}\n", &[("a", "a"), ("b", "b")], &["a", "b"]),
    ] {
        let file = parse(&format!("{machines}{loads}")).unwrap();
        let expected = expected.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned()));
        assert_eq!(places(&file), expected.collect::<Vec<_>>());
        let named: Vec<&str> = file.steps[0].loads[0].on.iter().map(|text| text.value.as_str()).collect();
        assert_eq!(named, on);
    }
}

#[test]
fn what_is_wrong_with_ranges_and_inventories_is_reported() {
    for (machines, expected) in [
        ("machines: {'g[1-3]': '10.0.0.[1-2]'}\n", "3 names for 2 hosts"),
        ("machines: {'g[1-3]': 10.0.0.1}\n", "3 names for one host"),
        ("machines: {'g[3-1]': local}\n", "`g[3-1]`: a range that ends before it starts"),
        ("machines: {'g[1-2]': local, g2: local}\n", "two machines are called `g2`"),
        ("inventory: missing\n", "cannot read the list of hosts: cannot read `missing`"),
        ("inventory: [a]\n", "`inventory` is a list, neither a file nor a command"),
        ("inventory: {command: ['a b c']}\n", "inventory, line 1: `a b c` is not a machine"),
        ("machines: {a: {local: true, env: {1x: y}}}\n", "`1x` is not the name of a variable"),
        ("machines: {a: {local: true, tmp: x}}\n", "`tmp: x`: not an absolute path"),
        ("machines: {a: {local: true, ulimit: many}}\n", "`ulimit: many`: not a number of files"),
        (
            "machines: {a: {local: true, sysctl: {net..x: 1}}}\n",
            "`net..x` is not the name of a kernel setting",
        ),
        ("machines: {a: {local: true, sysctl: 1}}\n", "`sysctl` is a single value, not a mapping"),
        ("lost_after: 1s\n", "`lost_after: 1s`: not between 3s and 10m"),
        ("allow_lost: few\n", "`allow_lost: few`: not a count"),
    ] {
        let problems = parse(&format!("{machines}loads: [{{http: 'http://a/'}}]\n")).unwrap_err();
        assert!(problems.iter().any(|problem| problem.message == expected), "{machines}: {problems:?}");
    }
}

#[test]
fn the_schema_has_every_key_of_a_plan() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/plan.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut known: Vec<&str> = read::PLAN_KEYS.to_vec();
    let mut listed: Vec<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    known.sort_unstable();
    listed.sort_unstable();
    assert_eq!(known, listed);
}

/// A document as editors read it, who check it against the schema.
fn json(node: &document::Node) -> serde_json::Value {
    match &node.value {
        document::Value::Null => serde_json::Value::Null,
        document::Value::Scalar(text) => match (text.as_str(), text.parse::<f64>()) {
            ("true" | "false", _) => (text == "true").into(),
            (_, Ok(number)) => number.into(),
            _ => text.as_str().into(),
        },
        document::Value::List(nodes) => nodes.iter().map(json).collect(),
        document::Value::Map(entries) => {
            entries.iter().map(|(key, node)| (key.value.clone(), json(node))).collect()
        }
    }
}

#[test]
fn the_schema_accepts_what_plan_files_may_say() {
    let schema: serde_json::Value = serde_json::from_str(&crate::options::plan_schema()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let is_valid = |text: &str| {
        let node = document::parse(text, &mut Vec::new()).unwrap();
        validator.is_valid(&json(&node))
    };
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = std::fs::read_dir(root.join("docs/examples")).unwrap().map(|entry| entry.unwrap().path());
    let plans = examples.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    for path in plans.chain([root.join("crates/cli/src/run/starter.yaml")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(is_valid(&text), !path.ends_with("mistakes.yaml"), "{}", path.display());
    }
    for (load, expected) in [
        ("http: /, rate: 200/s", true),
        ("http: [/a, /b], warmup: 0, key: false, duration: [5s], insecure:", true),
        ("http: /, h2c: true, header: { a: b }, tls: 1.2, timeout: '${limit}'", true),
        ("replay: r.har, max-gap: 0, http: 2, unique_ids:", true),
        ("idle: 'x:1', http: 2, tls: false", true),
        ("http: /, duration: [5s, 6s]", false),
        ("http: /, key: true", false),
        ("http: /, arrival: sometimes", false),
        ("rate: 5", false),
    ] {
        assert_eq!(is_valid(&format!("loads: [{{ {load} }}]")), expected, "{load}");
    }
}

#[test]
fn a_pool_of_pods_is_as_many_machines_and_a_group() {
    let text = "
kubernetes: { namespace: load, image: alpine, resources: { cpu: 2 } }
machines:
  g1: a@host
  pods:
    kubernetes: { replicas: 3, spread: node, resources: { requests: { cpu: 500m }, limits: { cpu: 2, memory: 1Gi } } }
    weight: 2
    tmp: /scratch
  far: { kubernetes: { context: east, binary: image, tolerations: [{ key: load, operator: Exists }] } }
groups: { all: [pods, g1] }
loads:
  - { http: 'http://a/', on: pods }
  - { http: 'http://a/', on: [pods-1, far] }
  - { http: 'http://a/', on: all }
";
    let file = parse(text).unwrap();
    let names: Vec<&str> = file.machines.iter().map(|machine| machine.name.value.as_str()).collect();
    assert_eq!(names, ["g1", "pods-0", "pods-1", "pods-2", "far-0"]);
    let on = |load: usize| -> Vec<String> {
        file.steps[0].loads[load].on.iter().map(|text| text.value.clone()).collect()
    };
    assert_eq!(on(0), ["pods-0", "pods-1", "pods-2"]);
    assert_eq!(on(1), ["pods-1", "far-0"]);
    assert_eq!(on(2), ["pods-0", "pods-1", "pods-2", "g1"]);
    let Reach::Pod { pool, index: 2 } = &file.machine("pods-2").unwrap().reach else { panic!() };
    assert_eq!((pool.image.as_str(), pool.namespace.as_deref()), ("alpine", Some("load")));
    assert_eq!((pool.requests["cpu"].as_str(), pool.limits["memory"].as_str()), ("500m", "1Gi"));
    assert_eq!(file.machine("pods-2").unwrap().weight.get(), 2);
    let Reach::Pod { pool, .. } = &file.machine("far-0").unwrap().reach else { panic!() };
    assert_eq!((pool.requests["cpu"].as_str(), pool.limits["cpu"].as_str()), ("2", "2"));
    assert_eq!(pool.tolerations[0]["key"], "load");
}

#[test]
fn wrong_pools_of_pods_are_reported_where_they_are() {
    let text = "
machines:
  pods: { kubernetes: { replicas: 0, spread: rack, resources: { cpu: lots }, imagee: x } }
  p[1-2]: { kubernetes: { replicas: 2 } }
  g: { kubernetes: { image: '-x', binary: image }, user: me, ulimit: 10 }
groups: { twice: pods, g: pods }
loads: [{ http: 'http://a/' }]
";
    let problems = parse(text).unwrap_err();
    let told: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
    for (at, expected) in [
        ("3:", "`replicas: 0`: not a number of pods"),
        ("3:", "`spread: rack`: not a way to distribute pods"),
        ("3:", "`cpu: lots`: not a quantity of Kubernetes"),
        ("3:", "`kubernetes` has no key `imagee`"),
        ("4:", "`p[1-2]`: a pool has no range"),
        ("5:", "`image: -x`: not a name"),
        ("5:", "a machine has no key `user`"),
        ("5:", "`ulimit` and `sysctl` need a shell"),
        ("5:", "both a pool of pods and a group are called `g`"),
    ] {
        let is_told = told.iter().any(|line| line.starts_with(at) && line.contains(expected));
        assert!(is_told, "{expected}: {told:#?}");
    }
}

#[test]
fn what_kubernetes_would_reject_is_reported() {
    for (keys, expected) in [
        ("ready_within: 0s", "`ready_within: 0s`: no pod is ready at once"),
        ("namespace: Load_1", "`namespace: Load_1`: not a name of a namespace"),
        ("labels: { 'a b': c }", "`a b: c`: Kubernetes does not accept it in `labels`"),
        ("labels: { a: 'b c' }", "`a: b c`: Kubernetes does not accept it in `labels`"),
        ("annotations: { '/x': 'b c' }", "`/x: b c`: Kubernetes does not accept it in `annotations`"),
        ("node_selector: { disk: '-' }", "`disk: -`: Kubernetes does not accept it in `node_selector`"),
        ("kubectl: ''", "`kubectl: `: neither a name nor a path"),
        (
            "resources: { requests: { cpu: 2 }, limits: { cpu: 500m } }",
            "the request `cpu: 2` is above the limit `500m`",
        ),
    ] {
        let text =
            format!("machines: {{ p: {{ kubernetes: {{ {keys} }} }} }}\nloads: [{{ http: 'http://a/' }}]\n");
        let problems = parse(&text).unwrap_err();
        assert!(problems.iter().any(|problem| problem.message == expected), "{expected}: {problems:?}");
    }
    for keys in [
        "kubeconfig: '/my files/kube'",
        "kubectl: '/my programs/kubectl'",
        "context: a b",
        "annotations: { example.com/note: 'any text: 1' }",
        "resources: { requests: { memory: 1e9 }, limits: { memory: 1E } }",
    ] {
        let text =
            format!("machines: {{ p: {{ kubernetes: {{ {keys} }} }} }}\nloads: [{{ http: 'http://a/' }}]\n");
        assert_eq!(parse(&text).map(|file| file.machines.len()), Ok(1), "{keys}");
    }
}

#[test]
fn pods_are_given_on_a_command_line_too() {
    let machines = parse_kubernetes("replicas=2,image=alpine,resources.limits.cpu=2,namespace=load").unwrap();
    let Reach::Pod { pool, index: 1 } = &machines[1].reach else { panic!() };
    assert_eq!((pool.name.as_str(), pool.limits["cpu"].as_str()), ("pods", "2"));
    let machines = parse_kubernetes(
        "labels.app.kubernetes.io/part-of=shop,resources.limits.nvidia.com/gpu=1,resources.hugepages-2Mi=1Gi",
    )
    .unwrap();
    let Reach::Pod { pool, .. } = &machines[0].reach else { panic!() };
    assert_eq!(pool.labels["app.kubernetes.io/part-of"], "shop");
    assert_eq!((pool.limits["nvidia.com/gpu"].as_str(), pool.requests.len()), ("1", 1));
    for (text, expected) in [
        ("replicas", "no `=`"),
        ("replica=2", "no key `replica`"),
        ("replicas=x", "not a number of pods"),
        ("replicas=2,replicas=3", "`replicas` is given twice"),
        ("image=a,image.b=c", "`image.b` is given twice"),
        ("labels.a=b,labels=c", "`labels` is given twice"),
    ] {
        let error = parse_kubernetes(text).unwrap_err();
        assert!(error.reason.contains(expected), "{error:?}");
    }
}
