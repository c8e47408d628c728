//! `squall record`: a proxy that records, until Ctrl-C.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use squall_proxy::{Authority, RecordOptions, RecordStats, Recorded, Recorder, Role};
use squall_report::units::counted;
use squall_traffic::Redirect;
use squall_traffic::redact::Redactor;

use super::redact;
use crate::args::RecordArgs;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::signals;

/// Records until the first Ctrl-C or SIGTERM. The proxy's URL is the first line on stdout.
pub(crate) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    let (stop, stopped) = mpsc::channel();
    let _watch = signals::until_asked(move || stop.send(()).unwrap_or_default())?;
    let recorder = Recorder::start(options(args)?).map_err(|error| refused(&error))?;
    output::result(&format!("http://{}/\n", recorder.address()))?;
    output::note(recorder.instructions().trim_end());
    if !args.listen.ip().is_loopback() {
        output::note("anyone who can reach this address can send requests through it");
    }
    if args.keep_secrets {
        output::note("secrets are written unredacted: keep the recording private");
    }
    let mut shown = 0;
    while stopped.recv_timeout(TELL_EVERY) == Err(RecvTimeoutError::Timeout) {
        let recorded = recorder.stats().recorded;
        if recorded != shown {
            output::note(&format!("{} recorded", counted(recorded, "request")));
            shown = recorded;
        }
    }
    let upgraded = recorder.upgraded_by_host();
    let Recorded { index, redactor, stats } = recorder.stop().map_err(|error| refused(&error))?;
    let is_finished = |redactor: &Redactor| redact::is_swept(&args.output, redactor);
    let is_finished =
        index.record_count == 0 || index.is_sorted && redactor.as_ref().map_or(Ok(true), is_finished)?;
    if !is_finished {
        redact::rewrite(&args.output, redactor.as_ref())?;
    }
    output::note(&summary(stats, &upgraded, index.record_count, &args.output));
    Ok(ExitCode::Ok)
}

fn summary(stats: RecordStats, upgraded: &BTreeMap<String, u64>, count: u64, path: &Path) -> String {
    let failed =
        if stats.failed > 0 { format!(", {} could not be forwarded", stats.failed) } else { String::new() };
    let upgraded = match stats.upgraded {
        0 => String::new(),
        count => {
            let hosts = upgraded.iter().map(|(host, count)| format!("{count} to {host}"));
            let hosts: Vec<String> = hosts.take(HOSTS_SHOWN_MAX).collect();
            format!(
                ", {count} became another protocol, which is forwarded but not recorded ({})",
                hosts.join(", ")
            )
        }
    };
    let lost = match stats.lost_bodies {
        0 => String::new(),
        count => format!(
            "\nonly the length of {} is kept; a replay sends zeros instead (see --max-body)",
            counted(count, "request body")
        ),
    };
    let led_away = match stats.led_away {
        0 => String::new(),
        count => format!(
            "\n{} sent clients to other servers, bypassing the proxy: record those with --proxy",
            counted(count, "redirect")
        ),
    };
    let cut = match stats.cut_conversations {
        0 => String::new(),
        count => format!(
            "\nof {} not all messages are recorded: too many (32 MiB each, 512 MiB in all), an unknown extension, or a protocol violation",
            counted(count, "WebSocket")
        ),
    };
    format!(
        "{} forwarded{failed}{upgraded}, {} recorded; {count} in {}{lost}{led_away}{cut}\nreplay them: squall replay {}",
        counted(stats.passed, "request"),
        stats.recorded,
        path.display(),
        path.display()
    )
}

fn options(args: &RecordArgs) -> Result<RecordOptions, Failure> {
    let role = match &args.to {
        Some(url) => Role::Reverse(Redirect::to(url)),
        None => Role::Forward,
    };
    let needs_authority = args.proxy || args.tls;
    Ok(RecordOptions {
        listen: args.listen,
        role,
        authority: if needs_authority { Some(Arc::new(authority(args.ca.as_deref())?)) } else { None },
        http3: args.http3,
        ca_files: args.cacert.clone(),
        insecure: args.insecure,
        output: args.output.clone(),
        redaction: if args.keep_secrets { None } else { Some(redact::rules(&args.redaction)?) },
        session_by: args.session_by.clone(),
        body_bytes_max: args.max_body,
        drops_response_bodies: args.no_response_bodies,
        only_host: args.only_host.clone(),
        only_path: args.only_path.clone(),
        only_type: args.only_type.clone(),
    })
}

/// The authority in the named folder, or in the user's state directory.
pub(super) fn authority(named: Option<&Path>) -> Result<Authority, Failure> {
    let folder = named.map_or_else(default_folder, |folder| Some(folder.to_owned()));
    let folder = folder.ok_or_else(|| {
        Failure::usage("no folder for the certificate authority: HOME is not set", "choose one: --ca DIR")
    })?;
    Authority::open(&folder).map_err(|error| refused(&error))
}

fn default_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")));
    Some(state?.join("squall/ca"))
}

pub(super) fn refused(error: &squall_proxy::Error) -> Failure {
    Failure::usage(error.to_string(), error.help())
}

/// How often the number of requests is shown.
/// Hosts of other protocols that are named at the end.
const HOSTS_SHOWN_MAX: usize = 10;

const TELL_EVERY: Duration = Duration::from_secs(2);
