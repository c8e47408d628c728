//! `squall mock`: a server that answers as recorded, until Ctrl-C.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use squall_proxy::{Ignored, Misses, Mock, MockOptions, MockStats};
use squall_report::units::counted;
use squall_traffic::Scheme;
use url::Position;

use super::import::playable;
use super::reading::ReadArgs;
use super::record::{authority, refused};
use crate::args::MockArgs;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::signals;

/// Answers until the first Ctrl-C or SIGTERM. Its URL is the first line on stdout.
pub(crate) fn run(args: &MockArgs) -> Result<ExitCode, Failure> {
    let (stop, stopped) = mpsc::channel();
    let _watch = signals::until_asked(move || stop.send(()).unwrap_or_default())?;
    let read = ReadArgs { saved_responses: true, ..ReadArgs::typed(&args.read)? };
    let playable = playable(&args.file, &read)?;
    if !playable.recording.index().has_responses {
        let message = format!("`{}` has no responses to serve", args.file.display());
        return Err(Failure::usage(
            message,
            "record with responses: squall record, HAR, .gor with responses, Postman collections with saved responses",
        ));
    }
    let mock = Mock::start(playable.recording, options(args)?).map_err(|error| refused(&error))?;
    output::result(&format!("http://{}/\n", mock.address()))?;
    if let Some(ca) = mock.authority() {
        let what = if args.proxy { "set this as the HTTP and HTTPS proxy; for" } else { "for" };
        output::note(&format!("{what} https, make clients trust {}", ca.pem_path().display()));
    }
    // An error means that the signal thread is gone: nothing could stop the server any more.
    let _ = stopped.recv();
    let stats = mock.stop();
    tell(&stats);
    Ok(ExitCode::Ok)
}

fn options(args: &MockArgs) -> Result<MockOptions, Failure> {
    let needs_authority = args.tls || args.proxy;
    Ok(MockOptions {
        listen: args.listen,
        latency_factor: args.latency,
        authority: if needs_authority { Some(Arc::new(authority(args.ca.as_deref())?)) } else { None },
        http3: args.http3,
        is_proxy: args.proxy,
        is_strict: args.strict,
        ignored: Ignored { query: args.ignore_query.clone(), body: args.ignore_body.clone() },
        misses: misses(args)?,
        ca_files: args.cacert.clone(),
        insecure: args.insecure,
    })
}

fn misses(args: &MockArgs) -> Result<Misses, Failure> {
    match &args.pass_through {
        None => Ok(Misses::Refused),
        Some(Some(url)) => Ok(Misses::PassedTo {
            scheme: Scheme::of(url.scheme()).unwrap_or_default(),
            authority: url[Position::BeforeHost..Position::AfterPort].to_owned(),
        }),
        Some(None) if args.proxy => Ok(Misses::PassedOn),
        // Clients ask the mock by its own address: passed on, a request would come back.
        Some(None) => Err(Failure::usage(
            "--pass-through needs a server",
            "give one, --pass-through=http://localhost:8080, or act as the clients' proxy: --proxy",
        )),
    }
}

fn tell(stats: &MockStats) {
    let sum = |kinds: &BTreeMap<String, u64>| kinds.values().sum::<u64>();
    let passed = if stats.passed > 0 { format!(" ({} passed through)", stats.passed) } else { String::new() };
    output::note(&format!(
        "answered {} as recorded, {} with a similar response; {} not recorded{passed}",
        counted(stats.answered, "request"),
        sum(&stats.inexact),
        sum(&stats.misses)
    ));
    if stats.messages_received + stats.messages_sent > 0 {
        let unlike = match stats.messages_unlike {
            0 => String::new(),
            count => format!("; {count} differ from every recorded one"),
        };
        output::note(&format!(
            "WebSockets: {} received, {} sent{unlike}",
            counted(stats.messages_received, "message"),
            stats.messages_sent
        ));
    }
    for (title, kinds) in [("similar", &stats.inexact), ("missed", &stats.misses)] {
        for (what, count) in kinds.iter().take(KINDS_SHOWN_MAX) {
            output::note(&format!("  {title}: {count} x {what}"));
        }
        if kinds.len() > KINDS_SHOWN_MAX {
            output::note(&format!("  {title}: and {} more", kinds.len() - KINDS_SHOWN_MAX));
        }
    }
}

/// Kinds of requests that are listed.
const KINDS_SHOWN_MAX: usize = 50;
