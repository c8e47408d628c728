//! From a plan file to what the fleet is to do: every load read, every file there, every rule parsed; all problems at once.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use squall_fleet::{
    FileOrder, FleetHook, FleetLoad, FleetPlan, FleetRule, FleetStep, LoadWork, RuleKind, check_key,
    unless_figure,
};
use squall_measure::{Threshold, WatchedThreshold};
use squall_plan::file::kubernetes::KubernetesPool;
use squall_plan::file::{
    self, Hook, HostSource, Machine, MachineSettings, PlanFile, Problem, PtrFile, PtrOptions, Reach,
    Variables, Watched,
};
use squall_plan::files::read_text;
use squall_plan::limits::{LOST_AFTER_DEFAULT, PLAN_FILE_BYTES_MAX, PROBLEM_COUNT_MAX};
use squall_plan::mask::masked_text;
use squall_plan::options::LoadType;
use squall_plan::urls::parse_target;
use squall_plan::{InputError, Load, LoadSpec, Place, Plan, PlanRule, Segment, Text, When, nearest};

use super::loads::{self, ReadLoad};
use crate::args::{DriversArg, KubernetesArgs, PlanArgs, PlanFileArgs, Pods, PtrReadingArgs};
use crate::failure::Failure;

/// Reads a plan file, or PTR files that run at the same time.
pub(crate) fn read_files(args: &PlanFileArgs) -> Result<FleetPlan, Failure> {
    match &args.files[..] {
        paths if is_ptr(&paths[0]) => read_ptr(paths, (&args.ptr, &[]), None),
        [path] => {
            refuse_ptr_flags(path, &args.ptr)?;
            read(path, &args.plan, &KubernetesArgs::default())
        }
        [_, second, ..] => {
            let help = "give one plan; only PTR files can run together";
            Err(Failure::usage(format!("`{}` is a second file", second.display()), help))
        }
        [] => Err(Failure::usage("no file given", "give a plan: `squall plan check plan.yaml`")),
    }
}

/// Flags of PTR files do nothing where none is read.
pub(crate) fn refuse_ptr_flags(path: &Path, args: &PtrReadingArgs) -> Result<(), Failure> {
    match args.given() {
        None => Ok(()),
        Some(flag) => {
            let message = format!("`{flag}` is for PTR files, and `{}` is not one", path.display());
            Err(Failure::usage(message, "remove it"))
        }
    }
}

/// Reads a plan file.
pub(crate) fn read(path: &Path, args: &PlanArgs, pods: &KubernetesArgs) -> Result<FleetPlan, Failure> {
    let text = read_plan(path)?;
    let environment = |name: &str| std::env::var(name).ok();
    let hosts = |source: &HostSource| listed_hosts(source, path);
    let variables = Variables { given: &args.var, environment: &environment, hosts: &hosts };
    let (mut file, problems) = PlanFile::read(&text, &variables);
    add_pods(&mut file, pods)?;
    fleet_plan(&file, path, problems)
        .map_err(|problems| wrong(&problems.iter().map(|problem| (path, problem)).collect::<Vec<_>>()))
}

/// The plan of a load that was typed, on pods. `path`: its file.
pub(crate) fn of_load(path: &Path, load: LoadSpec, pods: &KubernetesArgs) -> Result<FleetPlan, Failure> {
    if let Err(error) = fs::File::open(path) {
        let message = format!("cannot read `{}`: {error}", path.display());
        return Err(Failure::usage(message, "check the path and its permissions"));
    }
    let name = load.name.clone();
    let load = LoadSpec { name: String::new(), ..load };
    let step = file::Step { name: "step 1".to_owned(), loads: vec![load], ..file::Step::default() };
    let name = Some(name).filter(|name| !name.is_empty());
    let mut file = PlanFile { name, steps: vec![step], ..PlanFile::default() };
    add_pods(&mut file, pods)?;
    // Paths that were typed are relative to this folder.
    let here = path.file_name().map_or(path, Path::new);
    fleet_plan(&file, here, Vec::new()).map_err(|problems| {
        let texts: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        let help = problems.first().map_or("", |problem| problem.help.as_str());
        Failure::usage(texts.join("; "), help)
    })
}

/// The machines of `--kubernetes`, and the program of `--kubectl`.
fn add_pods(file: &mut PlanFile, args: &KubernetesArgs) -> Result<(), Failure> {
    if let Some(Pods(machines)) = &args.kubernetes {
        if !file.machines.is_empty() {
            let help = "remove `--kubernetes`, or the plan's `machines`";
            return Err(Failure::usage("`--kubernetes` gives machines, and the plan has its own", help));
        }
        file.machines.clone_from(machines);
    }
    match &args.kubectl {
        Some(program) => use_kubectl(file, program),
        None => Ok(()),
    }
}

/// Reaches all clusters with this program.
fn use_kubectl(file: &mut PlanFile, program: &str) -> Result<(), Failure> {
    let pods = file.machines.iter_mut().filter_map(|machine| match &mut machine.reach {
        Reach::Pod { pool, .. } => Some(pool),
        _ => None,
    });
    let monitored = file.monitors.iter_mut().filter_map(|monitor| match &mut monitor.what {
        Watched::Kubernetes(objects) => Some(&mut objects.cluster),
        _ => None,
    });
    // The pods of a pool share it.
    let mut pools: Vec<(Arc<KubernetesPool>, Arc<KubernetesPool>)> = Vec::new();
    for pool in pods.chain(monitored) {
        if !pools.iter().any(|(old, _)| Arc::ptr_eq(old, pool)) {
            let new = KubernetesPool { kubectl: program.to_owned(), ..(**pool).clone() };
            pools.push((Arc::clone(pool), Arc::new(new)));
        }
        if let Some((_, new)) = pools.iter().find(|(old, _)| Arc::ptr_eq(old, pool)) {
            *pool = Arc::clone(new);
        }
    }
    match pools.is_empty() {
        true => Err(Failure::usage(
            "`--kubectl` is for pods and monitors of clusters, and the plan has none",
            "remove it",
        )),
        false => Ok(()),
    }
}

/// The hosts of a plan's `inventory`: a file next to the plan, or what a command prints.
fn listed_hosts(source: &HostSource, plan: &Path) -> Result<String, String> {
    let folder =
        plan.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    match source {
        HostSource::File(name) => {
            let path = folder.join(name);
            read_text(&path, PLAN_FILE_BYTES_MAX)
                .map_err(|error| format!("cannot read `{}`: {error}", path.display()))
        }
        HostSource::Command(words) => {
            let (program, arguments) = words.split_first().ok_or("the command is empty")?;
            let output = Command::new(program).args(arguments).current_dir(folder).output();
            let output = output.map_err(|error| format!("cannot run `{program}`: {error}"))?;
            if output.status.success() {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors.lines().last().unwrap_or_default();
            Err(format!("`{program}` failed, {}: {last}", output.status))
        }
    }
}

fn read_plan(path: &Path) -> Result<String, Failure> {
    read_text(path, PLAN_FILE_BYTES_MAX).map_err(|error| {
        let message = format!("cannot read `{}`: {error}", path.display());
        Failure::usage(message, "check the path; `squall new plan.yaml` writes a plan to start from")
    })
}

/// Whether a file is a PTR configuration. Its reader reports one that cannot be read.
pub(crate) fn is_ptr(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
        && read_text(path, PLAN_FILE_BYTES_MAX).is_ok_and(|text| file::is_ptr(&text))
}

/// Reads PTR configuration files as one plan, with monitors that were typed. `added`: a plan file without loads, and its variables.
pub(crate) fn read_ptr(
    paths: &[PathBuf],
    (args, monitors): (&PtrReadingArgs, &[String]),
    added: Option<(&Path, &PlanArgs)>,
) -> Result<FleetPlan, Failure> {
    if let Some(key) = &args.ssh_keyfile {
        check_key(&key.to_string_lossy()).map_err(|trouble| {
            Failure::usage(format!("`--ssh-keyfile`: {}", trouble.message), trouble.help)
        })?;
    }
    let (folder, options) = (folder_of(&paths[0]), ptr_options(args));
    let files = paths.iter().map(|path| ptr_file(path, &folder)).collect::<Result<Vec<_>, _>>()?;
    // Each separately first: problems of the plan that they make together have no file.
    let each = files.iter().zip(paths).flat_map(|(file, path)| {
        let parsed = file::parse_ptr(std::slice::from_ref(file), &options);
        let own =
            |problems: Vec<(usize, Problem)>| problems.into_iter().map(|(_, problem)| problem).collect();
        let read = parsed.map_err(own).and_then(|file| fleet_plan(&file, &paths[0], Vec::new()));
        let problems: Vec<Problem> = read.err().unwrap_or_default();
        problems.into_iter().map(move |problem| (path.as_path(), problem))
    });
    let problems: Vec<(&Path, Problem)> = each.collect();
    let all: Vec<(&Path, &Problem)> = problems.iter().map(|(path, problem)| (*path, problem)).collect();
    if !all.is_empty() {
        return Err(wrong(&all));
    }
    let placed = |(idx, problem): &(usize, Problem)| (paths[*idx].clone(), problem.clone());
    let mut file = file::parse_ptr(&files, &options).map_err(|problems| {
        let placed: Vec<(PathBuf, Problem)> = problems.iter().map(placed).collect();
        wrong(&placed.iter().map(|(path, problem)| (path.as_path(), problem)).collect::<Vec<_>>())
    })?;
    let target = files.iter().find_map(|file| file::ptr_target(&file.text, &options));
    add_typed_monitors(&mut file, monitors, target.as_ref())?;
    let path = paths[0].as_path();
    let in_file = |path: &Path, problems: &[Problem]| {
        wrong(&problems.iter().map(|problem| (path, problem)).collect::<Vec<_>>())
    };
    let plan = fleet_plan(&file, path, Vec::new()).map_err(|problems| in_file(path, &problems))?;
    let Some((added, plan_args)) = added else { return Ok(plan) };
    add_plan(&mut file, added, plan_args)?;
    // What is wrong now was right without it.
    fleet_plan(&file, path, Vec::new()).map_err(|problems| in_file(added, &problems))
}

/// The plan that a PTR file means, as the text of a plan file in `folder`.
pub(crate) fn ptr_as_plan(path: &Path, folder: &Path, args: &PtrReadingArgs) -> Result<String, Failure> {
    read_ptr(&[path.to_owned()], (args, &[]), None)?;
    let plan = file::parse_ptr(&[ptr_file(path, folder)?], &ptr_options(args)).map_err(|problems| {
        wrong(&problems.iter().map(|(_, problem)| (path, problem)).collect::<Vec<_>>())
    })?;
    Ok(file::ptr_plan_text(&plan))
}

fn ptr_options(args: &PtrReadingArgs) -> PtrOptions {
    let text_of = |path: &PathBuf| path.to_string_lossy().into_owned();
    PtrOptions {
        user: args.user.clone(),
        key: args.ssh_keyfile.as_ref().map(text_of),
        bastion: args.bastion_host.clone(),
        external: args.drivers == Some(DriversArg::External),
        divide: args.divide,
        config: args.ssh_config.as_ref().map(text_of),
    }
}

fn add_typed_monitors(
    file: &mut PlanFile,
    monitors: &[String],
    target: Option<&Machine>,
) -> Result<(), Failure> {
    monitors.iter().try_for_each(|monitor| {
        file.add_monitor(monitor, target).map_err(|problem| {
            Failure::usage(format!("`--monitor {}`: {}", masked_text(monitor), problem.message), problem.help)
        })
    })
}

/// Adds what a plan file without loads says.
fn add_plan(file: &mut PlanFile, path: &Path, args: &PlanArgs) -> Result<(), Failure> {
    let text = read_plan(path)?;
    let folder = fs::canonicalize(path).unwrap_or_default();
    let environment = |name: &str| std::env::var(name).ok();
    let hosts = |source: &HostSource| listed_hosts(source, path);
    let variables = Variables { given: &args.var, environment: &environment, hosts: &hosts };
    file.add(&text, folder.parent().unwrap_or_else(|| Path::new("/")), &variables)
        .map_err(|problems| wrong(&problems.iter().map(|problem| (path, problem)).collect::<Vec<_>>()))
}

/// A PTR file for a plan in `folder`.
fn ptr_file(path: &Path, folder: &Path) -> Result<PtrFile, Failure> {
    let text =
        read_text(path, PLAN_FILE_BYTES_MAX).map_err(|error| Failure::file("--test-config", path, &error))?;
    let own = folder_of(path);
    let folder = if own == folder { String::new() } else { own.to_string_lossy().into_owned() };
    Ok(PtrFile { text, folder })
}

/// The folder that a file is in, whole.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}

/// What the file means here: with its folder and this machine. `problems`: what is known to be wrong with it.
fn fleet_plan(file: &PlanFile, path: &Path, problems: Vec<Problem>) -> Result<FleetPlan, Vec<Problem>> {
    let mut reader = Reader::new(file, path, problems);
    reader.check_target();
    reader.check_keys();
    let steps: Vec<FleetStep> = file.steps.iter().map(|step| reader.step(step)).collect();
    let thresholds = reader.rules(&file.thresholds);
    let files = file.files.iter().filter_map(|spec| reader.file(spec)).collect();
    let Reader { machines, makes_load, loads, plans, spoiled, mut problems, mut known, .. } = reader;
    problems.retain(|problem| !spoiled.contains(&problem.place));
    problems.append(&mut known);
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.place);
        problems.dedup();
        return Err(problems);
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let whens = || plans.iter().flat_map(|plan| &plan.loads).map(|load| &load.when);
    Ok(FleetPlan {
        open_model: whens().any(|when| matches!(when, When::Open { .. })),
        lag_allowed: whens().map(squall_engine::lag_allowed).max().unwrap_or_default(),
        plan: Plan {
            name: file.name.clone().or(stem).unwrap_or_else(|| "plan".to_owned()),
            loads: plans.iter().flat_map(|plan| plan.loads.clone()).collect(),
            thresholds: thresholds.iter().map(|rule| rule.text()).collect(),
            warmup: Duration::ZERO,
            threads: None,
        }
        .masked(),
        machines,
        makes_load,
        monitors: file.monitors.clone(),
        files,
        steps,
        loads,
        thresholds,
        lost_after: file.lost_after.unwrap_or(LOST_AFTER_DEFAULT),
        lost_count_allowed: file.lost_count_allowed,
        keeps_program: true,
    })
}

struct Reader<'a> {
    file: &'a PlanFile,
    folder: PathBuf,
    machines: Vec<Machine>,
    /// By machine: whether it makes the loads that do not say who does.
    makes_load: Vec<bool>,
    loads: Vec<FleetLoad>,
    /// What each load is, whole.
    plans: Vec<Plan>,
    problems: Vec<Problem>,
    /// What is wrong with the file itself.
    known: Vec<Problem>,
    /// Where that is: what else would be said of these places only follows from it.
    spoiled: Vec<Place>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a PlanFile, path: &Path, known: Vec<Problem>) -> Self {
        let makes_load = |machine: &Machine| file.generators().any(|known| known.name == machine.name);
        let mut reader = Self {
            file,
            folder: folder_of(path),
            machines: file.machines.clone(),
            makes_load: file.machines.iter().map(makes_load).collect(),
            loads: Vec::new(),
            plans: Vec::new(),
            problems: Vec::new(),
            spoiled: known.iter().map(|problem| problem.place).collect(),
            known,
        };
        if !reader.makes_load.contains(&true) {
            reader.refuse_hooks_on_all_machines();
            reader.add_this_machine();
        }
        reader
    }

    /// No machine is there for the load: this one makes it, under a name that may be in the plan already.
    fn add_this_machine(&mut self) {
        match self.machines.iter().position(|machine| machine.name.value == THIS_MACHINE) {
            None => {
                let name = Text { value: THIS_MACHINE.to_owned(), ..Text::default() };
                self.machines.push(Machine {
                    name,
                    reach: Reach::Local,
                    weight: NonZeroU32::MIN,
                    settings: MachineSettings::default(),
                });
                self.makes_load.push(true);
            }
            Some(idx) if self.machines[idx].reach == Reach::Local => self.makes_load[idx] = true,
            Some(idx) => {
                let message = format!(
                    "all machines are used only for monitoring, so this one generates the load as `{THIS_MACHINE}`"
                );
                let help = "rename the other machine, or set `on` to the machines that generate the load";
                self.problems.push(Problem::at(self.machines[idx].name.place, message, help));
            }
        }
    }

    /// Hooks on every generator would silently move the load to this machine.
    fn refuse_hooks_on_all_machines(&mut self) {
        let is_monitored = |name: &Text| {
            let mut watched = self.file.monitors.iter().filter_map(|monitor| match &monitor.what {
                Watched::Machine { machine, .. } => Some(&machine.value),
                _ => None,
            });
            watched.any(|watched| *watched == name.value)
        };
        let hooked = self.file.hooks().flat_map(|hook| &hook.on).find(|name| !is_monitored(name));
        if let Some(name) = hooked {
            let message = "no machine is left to generate the load: all are used by hooks or monitors";
            let help =
                format!("set `on` to the machines that generate the load, such as `on: {}`", name.value);
            self.problems.push(Problem::at(name.place, message, help));
        }
    }

    /// Reports a target that is missing or not a URL once, not for every load.
    fn check_target(&mut self) {
        let Some(target) = &self.file.target else { return self.check_paths() };
        if self.is_spoiled(target) {
            return;
        }
        if let Err(error) = parse_target(&target.value) {
            let message = format!("`target: {}`: {}", masked_text(&target.value), error.reason);
            self.known.push(Problem::at(target.place, message, error.help));
            self.spoiled.push(target.place);
        }
    }

    /// Without a target, paths lead nowhere.
    fn check_paths(&mut self) {
        let loads = self.file.loads().filter(|load| load.kind.value == "http");
        let paths = loads.flat_map(|load| &load.arguments).filter(|text| text.value.starts_with('/'));
        let paths: Vec<&Text> = paths.collect();
        // A misspelt target has been reported already.
        let is_shown = self.known.iter().any(|problem| problem.help.contains("`target`"));
        if let Some(first) = paths.first().filter(|_| !is_shown) {
            let message = format!("`{}` is a path, but the plan has no `target`", masked_text(&first.value));
            let help = "add `target: http://localhost:8080/`, or write the whole URL";
            self.known.push(Problem::at(first.place, message, help));
        }
        self.spoiled.extend(paths.iter().map(|text| text.place));
    }

    /// A key that ssh cannot use without a question is reported once, where the first machine needs it.
    fn check_keys(&mut self) {
        let mut checked: Vec<&str> = Vec::new();
        for machine in &self.file.machines {
            let Reach::Ssh(spec) = &machine.reach else { continue };
            // ssh's own tokens (ssh_config(5)) are for ssh to fill in.
            let key = spec.key.as_deref().filter(|key| !key.contains('%') && !checked.contains(key));
            let Some(key) = key else { continue };
            checked.push(key);
            if let Err(trouble) = check_key(key) {
                let message = format!("machine `{}`: {}", machine.name.value, trouble.message);
                self.problems.push(Problem::at(machine.name.place, message, trouble.help));
            }
        }
    }

    fn is_spoiled(&self, text: &Text) -> bool {
        self.spoiled.contains(&text.place)
    }

    fn step(&mut self, step: &file::Step) -> FleetStep {
        let first = self.loads.len();
        step.loads.iter().for_each(|load| self.load(load));
        FleetStep {
            name: step.name.clone(),
            load_idxs: (first..self.loads.len()).collect(),
            thresholds: self.rules(&step.thresholds),
            pause: step.pause,
            before: self.file.before.iter().chain(&step.before).map(|hook| self.hook(hook)).collect(),
            after: step.after.iter().chain(&self.file.after).map(|hook| self.hook(hook)).collect(),
        }
    }

    /// A plan without machines has its hooks run by this one.
    fn hook(&self, hook: &Hook) -> FleetHook {
        FleetHook {
            text: masked_text(&hook.text.value),
            words: hook.words.clone(),
            env: self.environment(),
            timeout: hook.timeout,
            machine_idxs: self.meant(&hook.on),
        }
    }

    fn load(&mut self, spec: &LoadSpec) {
        let mut spec = spec.clone();
        match spec.kind.value.as_str() {
            "tool" => self.aim_tool(&mut spec),
            "replay" => self.aim_replay(&mut spec),
            "script" => self.aim_script(&mut spec),
            _ => self.aim(&mut spec),
        }
        // A path of a target that is none leads nowhere.
        if self.file.target.as_ref().is_some_and(|target| self.is_spoiled(target))
            && !LoadType::of(&spec.kind.value).is_some_and(LoadType::takes_file)
        {
            (spec.is_whole, spec.arguments) = (false, Vec::new());
        }
        let name = self.name(&spec);
        let thresholds = self.rules(&spec.thresholds);
        let (read, problems) = loads::read(&spec, &self.folder, &self.spoiled);
        self.problems.extend(problems);
        // What is not there has a problem, and so has the plan.
        let Some(ReadLoad { work, plan, length_max, sources, recording, rules }) = read else { return };
        let parts = self.parts(&spec, &work, plan.as_ref());
        let mut length = None;
        if let Some(mut plan) = plan {
            length = plan.loads.iter().filter_map(|load| load.stop.duration).max();
            plan.loads.iter_mut().for_each(|load| load.name.clone_from(&name));
            self.plans.push(plan);
        }
        self.loads.push(FleetLoad {
            name,
            written: spec.kind.clone(),
            work,
            sources,
            recording,
            env: self.environment(),
            parts,
            start_after: spec.start_after,
            length,
            length_max: length_max.or(length),
            thresholds,
            script_rules: Arc::new(rules),
        });
    }

    /// A tool gets the target as its `url`; a path is one of the target.
    fn aim_tool(&self, spec: &mut LoadSpec) {
        let Some(target) = &self.file.target else { return };
        match spec.options.iter_mut().find(|option| option.name.value == "url") {
            Some(option) => {
                for text in option.values.iter_mut().filter(|text| text.value.starts_with('/')) {
                    text.value = format!("{}{}", target.value.trim_end_matches('/'), text.value);
                }
            }
            None => spec.push("url", target.clone()),
        }
    }

    /// A script sees the target in its `__ENV`.
    fn aim_script(&self, spec: &mut LoadSpec) {
        let Some(target) = &self.file.target else { return };
        spec.push("env", Text { value: format!("TARGET={}", target.value), place: target.place });
    }

    /// Recorded requests go to the target instead of where they went, unless the load says where.
    fn aim_replay(&self, spec: &mut LoadSpec) {
        let is_aimed = spec.options.iter().any(|option| option.name.value == "to");
        let Some(target) = self.file.target.as_ref().filter(|_| !is_aimed) else { return };
        let origin = url::Url::parse(&target.value).map(|url| url.origin().ascii_serialization());
        let value = origin.unwrap_or_else(|_| target.value.clone());
        spec.push("to", Text { value, place: target.place });
    }

    /// Paths become URLs of the target; without any argument the target itself is meant.
    fn aim(&self, spec: &mut LoadSpec) {
        let Some(target) = &self.file.target else { return };
        if matches!(spec.kind.value.as_str(), "handshake" | "idle") {
            if let (true, Some(value)) = (spec.arguments.is_empty(), endpoint(&target.value)) {
                spec.arguments.push(Text { value, place: target.place });
            }
            return;
        }
        if spec.arguments.is_empty() {
            spec.arguments.push(target.clone());
        }
        for argument in &mut spec.arguments {
            let (weight, path) = match argument.value.split_once('@') {
                Some((weight, path)) if path.starts_with('/') => (format!("{weight}@"), path.to_owned()),
                _ => (String::new(), argument.value.clone()),
            };
            if path.starts_with('/') {
                argument.value = format!("{weight}{}{path}", target.value.trim_end_matches('/'));
            }
        }
    }

    /// Its own name, else what it is and its number.
    fn name(&self, spec: &LoadSpec) -> String {
        if !spec.name.is_empty() {
            return spec.name.clone();
        }
        let taken = |name: &String| {
            self.loads.iter().any(|load| &load.name == name)
                || self.file.loads().any(|load| &load.name == name)
        };
        let names = (1..).map(|number| {
            if number == 1 { spec.kind.value.clone() } else { format!("{} {number}", spec.kind.value) }
        });
        names.into_iter().find(|name| !taken(name)).unwrap_or_default()
    }

    /// Who makes which part.
    fn parts(&self, spec: &LoadSpec, work: &LoadWork, plan: Option<&Plan>) -> Vec<(usize, Segment)> {
        let meant = self.meant(&spec.on);
        if spec.per_machine {
            return meant.into_iter().map(|idx| (idx, Segment::WHOLE)).collect();
        }
        let weights: Vec<u32> = meant.iter().map(|&idx| self.machines[idx].weight.get()).collect();
        let of_plan = plan.and_then(|plan| plan.loads.iter().map(Load::part_count_max).min());
        let item_count = match work {
            LoadWork::Tool(tool) => Some(tool.asked(1).part_count_max),
            LoadWork::Plan(_) | LoadWork::Script(_) => of_plan,
        };
        let segments = Segment::divide(&weights, item_count.unwrap_or(u64::MAX));
        meant.into_iter().zip(segments).filter_map(|(idx, segment)| Some((idx, segment?))).collect()
    }

    /// Numbers of the machines that are named; with none named, of those that make load.
    fn meant(&self, on: &[Text]) -> Vec<usize> {
        let is_meant = |idx: &usize| match on.is_empty() {
            true => self.makes_load[*idx],
            false => on.iter().any(|on| on.value == self.machines[*idx].name.value),
        };
        (0..self.machines.len()).filter(is_meant).collect()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let target = self.file.target.as_ref().map(|target| ("TARGET".to_owned(), target.value.clone()));
        target.into_iter().collect()
    }

    fn rules(&mut self, rules: &[PlanRule]) -> Vec<FleetRule> {
        let mut parsed = Vec::new();
        for PlanRule { text, monitor, abort } in rules {
            let what = match monitor {
                None => text.value.parse::<Threshold>().map(RuleKind::Load),
                Some(figure) => self.watched(figure, &text.value),
            };
            match what {
                Ok(what) => parsed.push(FleetRule { what, abort: *abort }),
                Err(error) => {
                    let message = format!("`{}`: {}", text.value, error.reason);
                    self.problems.push(Problem::at(text.place, message, error.help));
                }
            }
        }
        parsed
    }

    /// A rule on a figure that is watched: its first word names who is watched.
    fn watched(&mut self, figure: &Text, rule: &str) -> Result<RuleKind, InputError> {
        let names = self.watched_names();
        // Reports name the role, too.
        let roles = ["target ", "generator "];
        let named = roles.iter().find_map(|role| figure.value.strip_prefix(role)).unwrap_or(&figure.value);
        let is_known = |name: &String| named.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        if self.spoiled.is_empty() && !names.iter().any(is_known) {
            let word = named.split(' ').next().unwrap_or_default();
            let message = format!("nothing named `{word}` is monitored");
            let help = match nearest(word, names.iter().map(String::as_str)) {
                Some(name) => format!("a similar name exists: `{name}`"),
                None if names.is_empty() => "add it to the plan's `monitors`".to_owned(),
                None => format!("write a name and one of its metrics, such as `{} cpu`", names[0]),
            };
            self.problems.push(Problem::at(figure.place, message, help));
        }
        self.check_figure(named, figure);
        WatchedThreshold::parse(&figure.value, rule).map(RuleKind::Watched)
    }

    /// A figure that its monitor cannot have. `named`: who is watched, then the figure.
    fn check_figure(&mut self, named: &str, figure: &Text) {
        let of = |name: &str| named.strip_prefix(name)?.strip_prefix(' ');
        let bare =
            |machine: &Machine| Watched::Machine { machine: machine.name.clone(), processes: Vec::new() };
        let monitors = self.file.monitors.iter().map(|monitor| (monitor.source(), monitor.what.clone()));
        let machines = self.machines.iter().map(|machine| (machine.name.value.clone(), bare(machine)));
        let sources: Vec<(String, Watched)> = monitors.chain(machines).collect();
        let own: Vec<(&str, &Watched)> =
            sources.iter().filter_map(|(name, watched)| Some((of(name)?, watched))).collect();
        let unknown: Vec<(&str, Vec<String>)> = own
            .iter()
            .filter_map(|(wanted, watched)| Some((*wanted, unless_figure(watched, wanted)?)))
            .collect();
        // A machine that two entries name has the figures of both.
        if unknown.len() < own.len() || !self.spoiled.is_empty() {
            return;
        }
        let Some((wanted, known)) = unknown.first() else { return };
        let help = match nearest(wanted, known.iter().map(String::as_str)) {
            Some(name) => format!("a similar one exists: `{name}`"),
            None => format!("its metrics: {}", known.join(", ")),
        };
        let message = format!("`monitor: {}`: no metric `{wanted}` is monitored there", figure.value);
        self.problems.push(Problem::at(figure.place, message, help));
    }

    /// Who is watched: machines of the plan, and monitors by the names that reports give them.
    fn watched_names(&self) -> Vec<String> {
        let monitors = self.file.monitors.iter().map(file::MonitorSpec::source);
        self.machines.iter().map(|machine| machine.name.value.clone()).chain(monitors).collect()
    }

    fn file(&mut self, spec: &file::FileSpec) -> Option<FileOrder> {
        let from = self.folder.join(&spec.from.value);
        if let Err(error) = fs::File::open(&from) {
            let message = format!("cannot read `{}`: {error}", from.display());
            self.problems.push(Problem::at(
                spec.from.place,
                message,
                "paths are relative to the plan's folder",
            ));
            return None;
        }
        if !spec.to.value.starts_with('/') {
            let message = format!("`to: {}` is not an absolute path", spec.to.value);
            self.problems.push(Problem::at(
                spec.to.place,
                message,
                "write the whole path, such as /tmp/body.json",
            ));
        }
        let machine_idxs = self.meant(&spec.on);
        let (to, mode, overwrite) = (spec.to.value.clone(), spec.mode, spec.overwrite);
        Some(FileOrder { from, to, mode, machine_idxs, overwrite })
    }
}

/// What this machine is called where the plan has no machine that makes load.
const THIS_MACHINE: &str = "local";

/// Host and port of a URL; `None` when it is none.
fn endpoint(target: &str) -> Option<String> {
    let url = url::Url::parse(target).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

/// One failure for all problems of a file, or of several.
fn wrong(problems: &[(&Path, &Problem)]) -> Failure {
    let place = |(path, problem): &(&Path, &Problem)| format!("{}:{problem}", path.display());
    if let [single] = problems {
        return Failure::usage(place(single), single.1.help.clone());
    }
    let mut paths: Vec<String> = problems.iter().map(|(path, _)| path.display().to_string()).collect();
    paths.dedup();
    let have = if paths.len() == 1 { "has" } else { "have" };
    let mut message = format!("{} {have} {} problems", paths.join(" and "), problems.len());
    if problems.len() > PROBLEM_COUNT_MAX {
        message.push_str(&format!("; the first {PROBLEM_COUNT_MAX}:"));
    }
    for problem in problems.iter().take(PROBLEM_COUNT_MAX) {
        message.push_str(&format!("\n  {}\n      {}", place(problem), problem.1.help));
    }
    Failure::usage(
        message,
        format!("fix these, then check again with `squall plan check {}`", paths.join(" ")),
    )
}
