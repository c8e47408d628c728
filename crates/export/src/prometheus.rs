//! Prometheus: the text exposition (format 0.0.4), and remote write (specification 1.0: protobuf in a snappy block).

use std::fmt::Write;

use crate::figures::{Moment, OutputFigure, OutputKind};

/// The exposition of a moment.
pub(crate) fn exposition(moment: &Moment) -> String {
    let mut text = String::new();
    let mut last = "";
    for figure in &moment.figures {
        if figure.name != last {
            let kind = if figure.kind == OutputKind::Counter { "counter" } else { "gauge" };
            let _ = writeln!(text, "# HELP {0} {1}\n# TYPE {0} {kind}", figure.name, figure.help);
            last = &figure.name;
        }
        let labels: Vec<String> =
            figure.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{}{labels} {}", figure.name, figure.value);
    }
    text
}

/// The body of a remote write.
pub(crate) fn remote_write(moment: &Moment) -> Vec<u8> {
    let mut request = Vec::new();
    for figure in &moment.figures {
        message(&mut request, 1, &series(figure, moment.unix_ms));
    }
    snap::raw::Encoder::new().compress_vec(&request).unwrap_or_default()
}

/// TimeSeries { labels = 1 (sorted, the name among them), samples = 2 }.
fn series(figure: &OutputFigure, unix_ms: u64) -> Vec<u8> {
    let mut series = Vec::new();
    let name = ("__name__", &*figure.name);
    // "__name__" sorts before every label, which begin with a lowercase letter.
    for (key, value) in
        [name].into_iter().chain(figure.labels.iter().map(|(key, value)| (*key, value.as_str())))
    {
        let mut label = Vec::new();
        message(&mut label, 1, key.as_bytes());
        message(&mut label, 2, value.as_bytes());
        message(&mut series, 1, &label);
    }
    let mut sample = vec![(1 << 3) | FIXED_64];
    sample.extend(figure.value.to_le_bytes());
    sample.push((2 << 3) | VARINT);
    varint(&mut sample, unix_ms);
    message(&mut series, 2, &sample);
    series
}

/// A field of bytes (protobuf wire type 2).
fn message(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push((field << 3) | BYTES);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FigureUnit;

    fn moment() -> Moment {
        let figure = |value: f64| OutputFigure {
            name: "a_total".into(),
            kind: OutputKind::Counter,
            unit: FigureUnit::Number,
            help: "What.",
            labels: vec![("name", "x\"\\\n".to_owned())],
            value,
        };
        Moment { unix_ms: 300, started_unix_ms: 0, figures: vec![figure(1.0), figure(2.5)] }
    }

    #[test]
    fn exposition_says_help_and_type_once_and_escapes_labels() {
        let expected = "# HELP a_total What.\n# TYPE a_total counter\na_total{name=\"x\\\"\\\\\\n\"} 1\na_total{name=\"x\\\"\\\\\\n\"} 2.5\n";
        assert_eq!(exposition(&moment()), expected);
    }

    #[test]
    fn remote_write_is_protobuf_in_snappy() {
        let one = Moment { figures: moment().figures[..1].to_vec(), ..moment() };
        let bytes = snap::raw::Decoder::new().decompress_vec(&remote_write(&one)).unwrap();
        let label = |key: &[u8], value: &[u8]| {
            [
                &[10, 4 + key.len() as u8 + value.len() as u8, 10, key.len() as u8],
                key,
                &[18, value.len() as u8],
                value,
            ]
            .concat()
        };
        let sample = [&[18, 12, 9][..], &1.0_f64.to_le_bytes(), &[16, 0xac, 2]].concat();
        let series = [label(b"__name__", b"a_total"), label(b"name", b"x\"\\\n"), sample].concat();
        assert_eq!(bytes, [vec![10, series.len() as u8], series].concat());
    }
}
