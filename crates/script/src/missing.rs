//! What k6 has and squall has not: why, and what to do about it.
//!
//! Never: decides what there is; the table of modules in `api` does.

use crate::loading::LoadError;

/// Modules by the beginning of their names, the first that fits: why there is none, and what to do instead.
const MODULES: &[(&str, &str, &str)] = &[
    ("k6/browser", BROWSER, "measure pages with k6, and their requests with squall"),
    ("k6/experimental/browser", BROWSER, "measure pages with k6, and their requests with squall"),
    ("k6/net/grpc", GRPC, WITH_K6),
    ("k6/experimental/grpc", GRPC, WITH_K6),
    (
        "k6/secrets",
        "squall has no secret sources",
        "pass a secret with `-e NAME=VALUE`, and read it from `__ENV`",
    ),
    ("k6/crypto/x509", "squall cannot parse certificates", WITH_K6),
    ("k6/crypto/webcrypto", NO_MODULE, "remove the import"),
    ("k6/experimental/webcrypto", NO_MODULE, "remove the import"),
    ("k6/experimental/timers", "k6 has removed it", "import `k6/timers`, or use the global functions"),
    ("k6/experimental/tracing", "k6 has removed it", "set the tracing headers in the script"),
    ("k6/experimental/redis", EXTENSION, WITH_K6),
    ("k6/x/", EXTENSION, "run this script with k6; the supported extensions are k6/x/fasthttp and k6/x/sse"),
];

const BROWSER: &str = "it drives a browser";
const GRPC: &str = "gRPC is not supported";
const NO_MODULE: &str = "`crypto` is a global";
const EXTENSION: &str = "it is an extension of k6, written in Go";
const WITH_K6: &str = "run this script with k6";

/// Why there is no such module; `supported` are those that there are.
pub(crate) fn module(name: &str, supported: impl Iterator<Item = &'static str>) -> LoadError {
    let known = MODULES.iter().find(|(begin, ..)| name.starts_with(begin));
    let (why, help) = match known {
        Some((_, why, help)) => (*why, (*help).to_owned()),
        None => {
            let names: Vec<&str> = supported.collect();
            ("k6 has no such module", format!("supported modules: {}", names.join(", ")))
        }
    };
    LoadError::Unsupported { name: name.to_owned(), why, help }
}
