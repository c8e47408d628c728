//! From options to what they mean: [`HttpArgs`] to a valid [`Plan`], or all that is wrong with them.
//!
//! Reads the files that flags name, and asks the system which addresses are its own. Sends nothing.

mod network;
pub(crate) mod replay;
mod request;
pub(crate) mod script;
pub(crate) mod sessions;
mod source_line;
mod targets;
pub(crate) mod timing;

pub(crate) use network::settled;

use squall_plan::urls::Target;
use squall_plan::{
    HttpLoad, HttpVersion, Load, OptionProblem, Plan, PlanError, PortablePlan, Problems, RequestPlan,
    Segment, What, validate_prepared_bytes,
};

use crate::args::{ConnectionArgs, HttpArgs};

/// The plan of `squall http` as this machine makes it.
pub(crate) fn plan(args: &HttpArgs) -> Result<Plan, Problems> {
    Ok(settled(portable(args)?)?)
}

/// The plan of `squall http`.
pub(crate) fn portable(args: &HttpArgs) -> Result<PortablePlan, Problems> {
    let mut problems = Problems::default();
    let targets = problems.take(targets::read(args));
    let shared =
        problems.take(request::Shared::read(&args.request, request::Versions::read(&args.connection)));
    let when = problems.take(timing::when(&args.load, args.users));
    let tls = problems.take(network::tls_policy(&args.tls));
    let name = args.output.name.clone().or_else(|| targets.as_deref().map(default_name));
    let http =
        targets.zip(shared).and_then(|(targets, shared)| problems.take(http_load(args, shared, targets)));
    problems.end()?;
    let (Some(name), Some(http), Some(when), Some(tls)) = (name, http, when, tls) else {
        unreachable!("what is missing is a problem")
    };
    let plan = Plan {
        name,
        loads: vec![Load {
            name: "http".to_owned(),
            what: What::Http(http),
            when,
            stop: timing::stop(&args.load),
            connections: network::connection_policy(&args.connection),
            network: network::network(&args.connection),
            tls,
            segment: Segment::WHOLE,
        }],
        thresholds: args.load.threshold.iter().map(|rule| rule.text().to_owned()).collect(),
        warmup: args.load.warmup.unwrap_or_default(),
        threads: args.load.threads,
    };
    plan.validate().map_err(|error| impossible(&error))?;
    Ok(PortablePlan { plan, sources: args.connection.source.clone(), opening: None })
}

fn http_load(
    args: &HttpArgs,
    shared: request::Shared,
    targets: Vec<Target>,
) -> Result<HttpLoad, OptionProblem> {
    validate_prepared_bytes(shared.body_bytes(), targets.len()).map_err(|error| impossible(&error))?;
    let http = HttpLoad {
        requests: targets.into_iter().map(|target| shared.request(target)).collect(),
        user_agents: shared.user_agents,
        follow_count_max: args.request.follow.unwrap_or(0),
        expect: request::expect(&args.request),
        timeout: args.request.timeout,
    };
    refuse_without_effect(&args.connection, &http.requests)?;
    Ok(http)
}

/// Refuses what belongs to a version of HTTP that no request can be in.
fn refuse_without_effect(args: &ConnectionArgs, requests: &[RequestPlan]) -> Result<(), OptionProblem> {
    let may_be_h2 = |request: &RequestPlan| match request.http {
        HttpVersion::Http11 => false,
        HttpVersion::Http2 => true,
        HttpVersion::Auto => request.url.scheme() == "https",
    };
    if args.streams.get() > 1 && !requests.iter().any(may_be_h2) {
        let help = "use HTTP/2: `--http 2` with TLS, `--h2c` without; for HTTP/1.1 there is `--pipeline N`";
        return Err(OptionProblem::of(
            "streams",
            "`--streams` needs HTTP/2, but all requests use HTTP/1.1",
            help,
        )
        .with(VERSIONS));
    }
    if args.pipeline.get() > 1 && requests.iter().all(|request| request.http == HttpVersion::Http2) {
        let help = "for concurrent requests on an HTTP/2 connection use `--streams N`";
        return Err(OptionProblem::of(
            "pipeline",
            "`--pipeline` needs HTTP/1.1, but all requests use HTTP/2",
            help,
        )
        .with(VERSIONS));
    }
    Ok(())
}

/// Options that say which version of HTTP is spoken.
const VERSIONS: &[&str] = &["http", "h2c"];

/// The first target's host and unusual port, which say most in a list of saved runs.
fn default_name(targets: &[Target]) -> String {
    let Some(Target { url, .. }) = targets.first() else { return "http".to_owned() };
    let host = url.host_str().unwrap_or("http");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn impossible(error: &PlanError) -> OptionProblem {
    let help = match error {
        PlanError::TooManyRequests { .. } => "give fewer URLs, or fewer of --user-agent",
        PlanError::TooManyBytes { .. } => "send the body with --body-file, or give fewer URLs",
        PlanError::WeightsTooLarge { .. } => "round the weights so that they have a large common divisor",
        PlanError::HeadTooLarge { .. } => {
            "servers reject far smaller heads; send data in a body with --body-file"
        }
        PlanError::RateTooHigh { .. } => "lower --rate, or the targets of --ramp",
        PlanError::TooManyConnections { .. } => "lower --connections, --users, or the targets of --ramp",
        PlanError::NothingToDo => "raise --duration, --rate or --connections, or the targets of --ramp",
    };
    OptionProblem::whole(error.to_string(), help)
}

#[cfg(test)]
mod tests;
