//! `squall http`: makes the load that was typed, and shows what happened.

use squall_engine::{Control, settled};
use squall_measure::{Cause, RunRecord, RunRecorder, Status, StoppedBy};
use squall_plan::mask::masked_text;
use squall_report::units::counted;
use squall_report::{Ask, ColorChoice};

use squall_plan::{OptionStyle, Plan, ReplayLoad, What};

use crate::args::{HttpArgs, OutputArgs, StreamArgs};
use crate::faces::Faces;
use crate::failure::{ExitCode, Failure};
use crate::view::View;
use crate::{echo, load, output, signals};

/// Makes the run, or with `--dry-run` shows what it would be.
pub(crate) fn run(args: &HttpArgs) -> Result<ExitCode, Failure> {
    let spec = args.spec();
    let plan = load::http_plan(&spec)?;
    make(&plan, &args.output, echo::defaults(&spec))
}

/// The same for streams.
pub(crate) fn stream(args: &StreamArgs) -> Result<ExitCode, Failure> {
    let spec = args.spec();
    let plan = settled(squall_plan::load::stream(&spec, load::typed())?)?;
    make(&plan, &args.output, echo::defaults(&spec))
}

/// Makes the run of a plan, or with `--dry-run` shows what it would be. `defaults`: the defaults that applied.
pub(crate) fn make(plan: &Plan, args: &OutputArgs, defaults: Option<String>) -> Result<ExitCode, Failure> {
    let echo = echo::Echo { plan, defaults };
    if args.dry_run {
        output::plain(&echo.text(None))?;
        return squall_engine::check(plan).map(|()| ExitCode::Ok).map_err(|error| refused(&error));
    }
    let faces = Faces::open(args, &plan.masked())?;
    if args.faces.quiet == 0 && !args.live {
        output::note(&echo.text(faces.folder()));
    }
    let control = Control::new();
    let said = (!args.live).then_some("finishing open requests");
    let _watch = signals::steer(said, steered(&control))?;
    let mut view = View::open(args, &plan.name, Box::new(steered(&control)))?;
    view.save_in(faces.folder());
    view.prepare(PREPARING);
    let record = squall_engine::run(plan, &control, &mut |recorder: &RunRecorder| {
        view.phase(None);
        view.update(recorder, &[]);
    });
    let record = record.map_err(|error| refused(&error))?;
    view.finish(&record);
    warn_of_stuck(&control, args.faces.color.into());
    faces.finish(&record)?;
    match record.stopped_by {
        StoppedBy::Unreachable => Err(unreachable(&record)),
        _ => Ok(exit_code(&record)),
    }
}

/// What the engine does before a load, where it takes long.
pub(crate) const PREPARING: &str = "looking up names";

/// Does what the user asks for.
pub(crate) fn steered(control: &Control) -> impl FnMut(Ask) + Send + 'static {
    let control = control.clone();
    move |ask| match ask {
        Ask::Drain => control.drain(),
        Ask::Abort => control.abort(),
    }
}

/// Some of the load was left behind where it was, so that there is a report.
pub(crate) fn warn_of_stuck(control: &Control, color: ColorChoice) {
    let count = control.stuck_count();
    if count > 0 {
        let loops = counted(count.into(), "event loop");
        output::warning(color, &format!("{loops} did not end: the results lack its last seconds"));
    }
}

/// What explains the others wins.
pub(crate) fn exit_code(record: &RunRecord) -> ExitCode {
    match record.stopped_by {
        StoppedBy::Aborted => ExitCode::Aborted,
        _ if record.verdict.status == Status::Invalid => ExitCode::GeneratorOverloaded,
        _ if record.thresholds.iter().any(|threshold| !threshold.ok) => ExitCode::ThresholdsFailed,
        _ => ExitCode::Ok,
    }
}

/// The summary has the counts; this says in one line why there is nothing else in it.
pub(crate) fn unreachable(record: &RunRecord) -> Failure {
    let kinds = record.total.failures.kinds();
    let first = kinds.into_iter().find_map(|kind| Some((kind.cause, kind.example?)));
    let cause = first.as_ref().map(|(cause, _)| *cause).filter(|cause| *cause != Cause::ConnectionRefused);
    let advice = cause.and_then(squall_report::advice);
    let (url, text) = first.map_or_else(Default::default, |(_, example)| (example.url, example.text));
    let (place, check) = connected_to(&record.plan, &url);
    Failure {
        code: ExitCode::TargetUnreachable,
        message: format!("cannot connect to {place}: {text}"),
        help: advice.unwrap_or(check).to_owned(),
    }
}

/// Where the requests to a URL went, and what to look at there.
fn connected_to(plan: &Plan, url: &str) -> (String, &'static str) {
    let check = "check that the server is running, and that host, port and scheme are correct; `squall target` starts a test server";
    let load = plan.loads.first();
    if let Some(socket) = load.and_then(|load| load.network.unix_socket.as_ref()) {
        return (
            format!("the socket `{}`", socket.display()),
            "check that a server listens there, and its permissions",
        );
    }
    match load.map(|load| &load.what) {
        // Its rows have the URLs that were recorded.
        Some(What::Replay(ReplayLoad { to: Some(to), .. })) => (format!("`{to}`"), check),
        _ => (format!("`{}`", masked_text(url)), check),
    }
}

fn refused(error: &squall_engine::Error) -> Failure {
    let code = if error.is_target_unreachable() { ExitCode::TargetUnreachable } else { ExitCode::Usage };
    let help = error
        .help(OptionStyle::Flags)
        .unwrap_or_else(|| "check this process's limits: `ulimit -a`".to_owned());
    Failure { code, message: error.to_string(), help }
}
