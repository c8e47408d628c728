//! What a script's request allocates, and that a long run needs no more memory than a short one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use squall_engine::{Control, ScriptRun, run_driven};
use squall_plan::{
    ConnectionPolicy, Load, Network, Plan, Profile, ScriptLoad, Segment, Stop, TlsPolicy, What, When,
};
use squall_script::{Console, Options, Program, ProgramSetup};
use squall_testkit::real::{NginxOptions, Server};

use super::{ALLOCATION_COUNT, LIVE_BYTES, LIVE_BYTES_MAX, ONE_AFTER_THE_OTHER};

/// What a run cost.
struct Cost {
    iterations: u64,
    allocations: u64,
    /// The most bytes that were alive.
    live: u64,
}

/// Ten users iterate over a script with this body for so many seconds.
fn cost(body: &str, seconds: u32) -> Cost {
    let source = format!(
        "import http from 'k6/http'; import {{ check }} from 'k6';
         export const options = {{ vus: 10, duration: '{seconds}s' }};
         export default function () {{ {body} }}"
    );
    let (count, live) = (ALLOCATION_COUNT.load(Ordering::Relaxed), LIVE_BYTES.load(Ordering::Relaxed));
    LIVE_BYTES_MAX.store(live, Ordering::Relaxed);
    let record = run(source);
    let figures = record.total.script.as_deref().unwrap();
    assert_eq!(figures.checks.iter().map(|check| check.fails).sum::<u64>(), 0);
    Cost {
        iterations: record.total.rows.iter().map(|row| row.ok).sum(),
        allocations: ALLOCATION_COUNT.load(Ordering::Relaxed) - count,
        live: LIVE_BYTES_MAX.load(Ordering::Relaxed) - live,
    }
}

fn run(source: String) -> squall_measure::RunRecord {
    let console = Arc::new(Console::silent());
    let program = Program::compile(ProgramSetup {
        path: "/tests/script.js".into(),
        text: Some(source),
        env: BTreeMap::new(),
        fetch: None,
        console: Arc::clone(&console),
    })
    .unwrap();
    let options = Options::of(program.layer().into_iter().collect()).unwrap();
    let run = ScriptRun::new(program, options, console, &TlsPolicy::default()).unwrap();
    run_driven(&plan(), vec![Arc::new(run)], &Control::new(), &mut |_: &squall_measure::RunRecorder| {})
        .unwrap()
}

fn plan() -> Plan {
    let script = ScriptLoad {
        path: "script.js".into(),
        options: "{}".to_owned(),
        scenarios: Vec::new(),
        speaks_http3: false,
    };
    let load = Load {
        name: "script".to_owned(),
        what: What::Script(script),
        when: When::Closed { connections: Profile::constant(10.0), users: None },
        stop: Stop { duration: None, count: None },
        connections: ConnectionPolicy::default(),
        network: Network::default(),
        tls: TlsPolicy::default(),
        segment: Segment::default(),
    };
    Plan {
        name: "script".to_owned(),
        loads: vec![load],
        thresholds: Vec::new(),
        warmup: std::time::Duration::ZERO,
        threads: std::num::NonZeroU32::new(1),
    }
}

#[test]
fn a_scripts_request_allocates_a_few_times_and_keeps_nothing() {
    let _alone = ONE_AFTER_THE_OTHER.lock();
    let server = Server::nginx(NginxOptions::default());
    let url = server.url("/");
    for (body, most) in [
        (format!("http.get('{url}');"), 8),
        (format!("check(http.get('{url}'), {{ ok: (r) => r.status === 200 }});"), 10),
        (format!("http.get('{url}', {{ headers: {{ a: 'b', c: 'd', e: 'f' }}, tags: {{ g: 'h' }} }});"), 12),
    ] {
        // Both see several seconds end: the figures of the first ones are kept, to be used again.
        let (short, long) = (cost(&body, 2), cost(&body, 5));
        let each = long.allocations.saturating_sub(short.allocations) as f64
            / long.iterations.saturating_sub(short.iterations).max(1) as f64;
        assert!(each <= f64::from(most), "{each} allocations for each `{body}`");
        // The figures of a few seconds more, and chunks that were opened in another order.
        assert!(long.live < short.live + (4 << 20), "{} bytes, then {}: {body}", short.live, long.live);
    }
}
