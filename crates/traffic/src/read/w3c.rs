//! The W3C's extended log format: the file names its columns (`#Fields:`). IIS and CloudFront write it.

use percent_encoding::percent_decode_str;

use super::log_line::{Line, Var};
use super::time;

/// The columns that the file has named last.
#[derive(Debug, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    /// CloudFront's: values are percent-encoded, and times are in seconds.
    is_cloudfront: bool,
}

impl Columns {
    /// Reads a line that begins with `#`.
    pub(super) fn read_directive(&mut self, text: &str) {
        if let Some(names) = text.strip_prefix("#Fields:") {
            self.names = names.split_ascii_whitespace().map(str::to_owned).collect();
            self.is_cloudfront = self.names.iter().any(|name| name == "x-edge-location");
        }
    }

    /// Reads a line of values.
    pub(super) fn read(&self, text: &str, line: &mut Line) -> Result<(), String> {
        let separator = if text.contains('\t') { '\t' } else { ' ' };
        let values: Vec<&str> = text.split(separator).collect();
        let names: Vec<&str> = match self.names.as_slice() {
            // Collectors of logs drop the line that names them.
            [] => IIS_COLUMNS.split(' ').collect(),
            names => names.iter().map(String::as_str).collect(),
        };
        if values.len() != names.len() {
            let named = if self.names.is_empty() { " of IIS, and no `#Fields:` before it" } else { "" };
            let (found, wanted) = (values.len(), names.len());
            return Err(format!("{found} values for {wanted} columns{named}: `{}`", time::cut(text)));
        }
        for (name, value) in names.into_iter().zip(values) {
            let Some(var) = self.var(name) else { continue };
            let value = match &var {
                Var::Header(_) if self.is_cloudfront => decoded(&decoded(value)),
                Var::Header(_) => value.replace('+', " "),
                _ => value.to_owned(),
            };
            if matches!(var, Var::Port) && value == "443" {
                line.set(&Var::Scheme, "https".to_owned())?;
            }
            line.set(&var, value)?;
        }
        Ok(())
    }

    fn var(&self, name: &str) -> Option<Var> {
        Some(match name {
            "date" => Var::Date,
            "time" => Var::TimeOfDay,
            "c-ip" => Var::Client,
            "cs-method" => Var::Method,
            "cs-uri-stem" => Var::Target,
            "cs-uri-query" => Var::Query,
            "cs-host" | "cs(Host)" | "x-host-header" => Var::Host,
            "s-port" => Var::Port,
            "cs-protocol" => Var::Scheme,
            "cs-version" | "cs-protocol-version" => Var::Protocol,
            "sc-status" => Var::Status,
            "sc-bytes" => Var::Bytes,
            "time-taken" if self.is_cloudfront => Var::Seconds,
            "time-taken" => Var::Millis,
            "cs(User-Agent)" => Var::Header("User-Agent".to_owned()),
            "cs(Referer)" => Var::Header("Referer".to_owned()),
            "cs(Cookie)" => Var::Header("Cookie".to_owned()),
            _ => return None,
        })
    }
}

/// What IIS writes by default.
const IIS_COLUMNS: &str = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) \
                           sc-status sc-substatus sc-win32-status time-taken";

/// CloudFront encodes values, some of them twice.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
