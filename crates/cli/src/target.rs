//! `squall target`: the embedded server, until Ctrl-C.

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::mpsc;

use squall_report::units::counted;
use squall_server::{Error, Options, Target, Tls};

use crate::args::TargetArgs;
use crate::failure::{ExitCode, Failure};
use crate::output;
use crate::signals;

/// Serves until the first Ctrl-C or SIGTERM. Its URL is the first line on stdout.
pub(crate) fn run(args: &TargetArgs) -> Result<ExitCode, Failure> {
    let (stop, stopped) = mpsc::channel();
    let _watch = signals::until_asked(move || stop.send(()).unwrap_or_default())?;
    let target = Target::start(&options(args)).map_err(|error| refused(&error))?;
    write_certificate(args, &target)?;
    let scheme = if args.tls { "https" } else { "http" };
    output::result(&format!("{scheme}://{}/\n", target.address()))?;
    // An error means that the signal thread is gone: nothing could stop the server any more.
    let _ = stopped.recv();
    let stats = target.stop();
    output::note(&format!(
        "answered {} on {}",
        counted(stats.requests, "request"),
        counted(stats.connections, "connection")
    ));
    Ok(ExitCode::Ok)
}

fn options(args: &TargetArgs) -> Options {
    let default = Options::default();
    let port = args.port.unwrap_or_else(|| args.listen.port());
    let threads = args.threads.and_then(|count| NonZeroUsize::try_from(count).ok());
    Options {
        listen: SocketAddr::new(args.listen.ip(), port),
        tls: args.tls.then(|| identity(args)),
        http3: args.http3,
        threads: threads.unwrap_or(default.threads),
        log: args.log.clone(),
        ..default
    }
}

fn identity(args: &TargetArgs) -> Tls {
    match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => Tls::Pem { certificate: certificate.clone(), key: key.clone() },
        _ => Tls::SelfMade { names: args.tls_name.clone() },
    }
}

fn write_certificate(args: &TargetArgs, target: &Target) -> Result<(), Failure> {
    let (Some(path), Some(pem)) = (&args.write_cert, target.certificate_pem()) else { return Ok(()) };
    fs::write(path, pem).map_err(|error| {
        let message = format!("cannot write `{}` for `--write-cert`: {error}", path.display());
        Failure::usage(message, "choose a file in a folder that you can write to")
    })
}

fn refused(error: &Error) -> Failure {
    Failure::usage(error.to_string(), error.help().unwrap_or("see `squall target --help`"))
}
