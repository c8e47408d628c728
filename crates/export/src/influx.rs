//! InfluxDB's line protocol: a line for each figure, with the labels as tags, the value as `value`, and nanoseconds.

use std::fmt::Write;

use crate::figures::Moment;

/// The body of a write.
pub(crate) fn lines(moment: &Moment) -> Vec<u8> {
    let mut text = String::new();
    for figure in &moment.figures {
        text.push_str(&figure.name);
        // An empty tag value is no tag in this protocol.
        for (name, value) in figure.labels.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(text, ",{name}={}", escaped(value));
        }
        let _ = writeln!(text, " value={} {}", figure.value, moment.unix_ns());
    }
    text.into_bytes()
}

fn escaped(value: &str) -> String {
    let mut safe = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ',' | '=' | ' ' | '\\') {
            safe.push('\\');
        }
        safe.push(if c.is_control() { ' ' } else { c });
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{FigureUnit, OutputFigure, OutputKind};

    #[test]
    fn tags_are_escaped_and_empty_ones_left_out() {
        let figure = OutputFigure {
            name: "a".into(),
            kind: OutputKind::Gauge,
            unit: FigureUnit::Number,
            help: "",
            labels: vec![("m", String::new()), ("n", "x y,z=1".to_owned())],
            value: 1.5,
        };
        let moment = Moment { unix_ms: 2, started_unix_ms: 0, figures: vec![figure] };
        assert_eq!(String::from_utf8(lines(&moment)).unwrap(), "a,n=x\\ y\\,z\\=1 value=1.5 2000000\n");
    }
}
