//! What to try next, judged from the run itself: said only when it is likely to help.

use squall_plan::What;

use crate::summary::Summary;
use crate::wording;

/// At most one hint on failures and one on each way in which the figures could mislead.
pub(crate) fn of(summary: &Summary) -> Vec<String> {
    [failures(summary), few_samples(summary), reconnects(summary)].into_iter().flatten().collect()
}

/// All loads are scripts, whose failed requests do not fail the run.
pub(crate) fn is_script(summary: &Summary) -> bool {
    summary.plan.loads.iter().all(|load| load.what.is_script())
}

pub(crate) fn failures(summary: &Summary) -> Option<String> {
    let worst = summary.errors.first()?;
    let advice = match () {
        () if is_script(summary) => wording::script_advice,
        () if summary.plan.loads.iter().all(|load| matches!(load.what, What::WebSocket(_))) => {
            wording::websocket_advice
        }
        () => wording::advice,
    };
    advice(worst.cause).map(str::to_owned)
}

/// Of fewer than a thousand values, the 99.9th percentile is the largest one: chance, not a property.
fn few_samples(summary: &Summary) -> Option<String> {
    let fewest = summary.totals.kinds.iter().filter(|kind| kind.latency_us.count > 0);
    let (count, noun) = fewest.map(|kind| (kind.latency_us.count, kind.kind.noun())).min()?;
    let what = match count {
        1 => format!("with one {noun}, all percentiles are equal"),
        2..1_000 => format!("with {count} {noun}s, p99.9 is the slowest one"),
        _ => return None,
    };
    Some(format!("{what}; a longer run gives more precise percentiles"))
}

fn reconnects(summary: &Summary) -> Option<String> {
    let totals = &summary.totals;
    let asked_for_it = summary.opens_connections_on_purpose();
    let is_frequent = totals.connections_opened * 2 > totals.ok && totals.ok > 1_000;
    (is_frequent && !asked_for_it && !summary.is_mixed() && summary.noun() == "request")
        .then(|| "most requests needed a new connection because the server closes them: handshakes are part of the load".to_owned())
}
