//! The JUnit face: a test case for each threshold, as continuous integration shows it; without any, one for the run itself.

use std::fmt::Write;

use squall_measure::{Status, ThresholdResult};
use squall_plan::printable::printable;

use crate::page::escaped;
use crate::{Summary, wording};

/// The whole XML document.
pub fn draw(summary: &Summary) -> String {
    let cases: Vec<(String, Option<String>)> = match &summary.thresholds[..] {
        [] => vec![("the generator kept up with the load".to_owned(), unfit(summary))],
        thresholds => thresholds.iter().map(|result| (case_name(result), missed(result))).collect(),
    };
    let failure_count = cases.iter().filter(|(_, failure)| failure.is_some()).count();
    let (name, count, duration_s) = (escaped(&summary.name), cases.len(), summary.duration_s);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"{name}\" tests=\"{count}\" \
         failures=\"{failure_count}\" errors=\"0\" skipped=\"0\" time=\"{duration_s:.3}\" timestamp=\"{}\">\n",
        escaped(&summary.started_at)
    );
    for (rule, failure) in &cases {
        let case = format!(
            "<testcase classname=\"squall.{name}\" name=\"{}\" time=\"{duration_s:.3}\"",
            escaped(rule)
        );
        let _ = match failure {
            Some(text) => writeln!(xml, "{case}><failure message=\"{}\"/></testcase>", escaped(text)),
            None => writeln!(xml, "{case}/>"),
        };
    }
    // What escapes leave may still reorder the text of a terminal.
    printable(&xml).into_owned() + "</testsuite>\n</testsuites>\n"
}

/// Metrics of several loads have the load's name before theirs; a rule alone may stand for many.
fn case_name(result: &ThresholdResult) -> String {
    let ThresholdResult { metric, rule, .. } = result;
    if rule.starts_with(metric.as_str()) { rule.clone() } else { format!("{metric}: {rule}") }
}

fn missed(result: &ThresholdResult) -> Option<String> {
    let words = |value: Option<f64>| {
        value.map_or_else(|| "no sample".to_owned(), |value| wording::threshold_value(value, result.unit))
    };
    let text = || {
        format!("{} was {}, the limit is {}", result.metric, words(result.actual), words(Some(result.limit)))
    };
    (!result.ok).then(text)
}

fn unfit(summary: &Summary) -> Option<String> {
    let reasons = || {
        summary.verdict.reasons.iter().map(|reason| reason.message.as_str()).collect::<Vec<_>>().join("; ")
    };
    (summary.verdict.status == Status::Invalid).then(reasons)
}
