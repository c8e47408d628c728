//! `--out json=FILE` and `--out csv=FILE` of a script: k6's own streams of samples.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::write::GzEncoder;
use squall_report::{ColorChoice, Format, OutputSpec};
use squall_script::{Options, Program, SampleForm, SampleOutput, TimeForm};

use crate::args::FaceArgs;
use crate::failure::Failure;
use crate::output;
use crate::streams::Out;

/// What `--out` names: the streams of samples, and what is written at the end.
pub(super) fn split(args: &FaceArgs) -> (Vec<OutputSpec>, Vec<OutputSpec>) {
    let is_stream = |spec: &OutputSpec| matches!(spec.format, Format::Json | Format::Csv);
    let files = args.out.iter().filter_map(Out::file).cloned();
    let (streams, mut others): (Vec<OutputSpec>, Vec<OutputSpec>) = files.partition(is_stream);
    // `--json` is squall's own result, also of a script.
    let json = args.json.as_ref().map(|path| OutputSpec::new(Format::Json, path));
    others.dedup();
    (streams, others.into_iter().chain(json).collect())
}

/// Opens the streams before the run.
pub(super) fn open(
    specs: &[OutputSpec],
    program: &Program,
    options: &Options,
) -> Result<Vec<Arc<SampleOutput>>, Failure> {
    let one = |spec: &OutputSpec| {
        let place = spec.path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let (path, times) = csv_place(&place)?;
        let form = if spec.format == Format::Json { SampleForm::Json } else { SampleForm::Csv(times) };
        Ok(Arc::new(SampleOutput::new(form, writer(path)?, program, options)))
    };
    specs.iter().map(one).collect()
}

/// Writes what is left of the streams; a full disk costs the file, not the run.
pub(super) fn finish(streams: &[Arc<SampleOutput>], color: ColorChoice) {
    for stream in streams {
        if let Err(error) = stream.finish() {
            output::warning(color, &format!("--out: samples were lost: {error}"));
        }
    }
}

/// The file in `FILE`, or in k6's `fileName=FILE,saveInterval=1s,timeFormat=unix_milli`.
fn csv_place(place: &str) -> Result<(&str, TimeForm), Failure> {
    let (mut path, mut times) = (place, TimeForm::default());
    if !place.split(',').any(|part| part.starts_with("fileName=") || part.starts_with("timeFormat=")) {
        return Ok((path, times));
    }
    for part in place.split(',') {
        match part.split_once('=') {
            Some(("fileName", name)) => path = name,
            // Lines are written every second, whatever is asked for.
            Some(("saveInterval", _)) => {}
            Some(("timeFormat", name)) => {
                let known = TIME_FORMS.iter().find(|(known, _)| *known == name);
                times = known.map(|(_, form)| *form).ok_or_else(|| bad_place(part))?;
            }
            _ => return Err(bad_place(part)),
        }
    }
    Ok((path, times))
}

fn bad_place(part: &str) -> Failure {
    Failure::usage(
        format!("`--out csv` has `{part}`"),
        "write csv=FILE, or csv=fileName=FILE,timeFormat=unix|unix_milli|unix_micro|unix_nano|rfc3339|rfc3339_nano",
    )
}

const TIME_FORMS: &[(&str, TimeForm)] = &[
    ("unix", TimeForm::Unix),
    ("unix_milli", TimeForm::UnixMilli),
    ("unix_micro", TimeForm::UnixMicro),
    ("unix_nano", TimeForm::UnixNano),
    ("rfc3339", TimeForm::Rfc3339),
    ("rfc3339_nano", TimeForm::Rfc3339Nano),
];

/// A file, compressed where its name says so; without one, standard output.
fn writer(path: &str) -> Result<Box<dyn Write + Send>, Failure> {
    if path.is_empty() {
        return Ok(Box::new(std::io::stdout()));
    }
    let file = File::create(path).map_err(|error| Failure::file("--out", Path::new(path), &error))?;
    Ok(if path.ends_with(".gz") {
        Box::new(GzEncoder::new(BufWriter::new(file), flate2::Compression::default()))
    } else {
        Box::new(BufWriter::new(file))
    })
}
