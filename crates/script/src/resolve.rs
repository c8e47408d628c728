//! Where an import leads: k6's rules. Relative, absolute, `file://` and `https://`; bare names are k6's own modules alone.

use url::Url;

use crate::loading::LoadError;

/// The full name of what `specifier` means in the module `base`.
pub(crate) fn resolve(base: &str, specifier: &str) -> Result<String, LoadError> {
    if specifier == "k6" || specifier.starts_with("k6/") {
        return Ok(specifier.to_owned());
    }
    resolve_place(base, specifier)
}

/// The same of what lies somewhere: k6's own modules do not.
pub(crate) fn resolve_place(base: &str, specifier: &str) -> Result<String, LoadError> {
    if specifier.starts_with("file://") || specifier.starts_with("https://") {
        let allowed = !(specifier.starts_with("file://") && base.starts_with("https://"));
        return if allowed { Ok(specifier.to_owned()) } else { Err(from_remote(base, specifier)) };
    }
    let is_path = ["./", "../", "/"].iter().any(|prefix| specifier.starts_with(prefix));
    if !is_path {
        return Err(unknown(specifier));
    }
    let base = Url::parse(base).map_err(|_error| unknown(specifier))?;
    base.join(specifier).map(String::from).map_err(|_error| unknown(specifier))
}

/// The URL of a file's path, as modules are named.
pub(crate) fn file_url(path: &std::path::Path) -> String {
    Url::from_file_path(path).map_or_else(|()| format!("file://{}", path.display()), String::from)
}

/// The path of a `file://` URL.
pub(crate) fn file_path(name: &str) -> Option<std::path::PathBuf> {
    Url::parse(name).ok().filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok())
}

fn from_remote(base: &str, specifier: &str) -> LoadError {
    LoadError::FromRemote { base: base.to_owned(), specifier: specifier.to_owned() }
}

fn unknown(specifier: &str) -> LoadError {
    LoadError::Specifier(specifier.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_lead_where_k6_lets_them() {
        let base = "file:///work/tests/main.js";
        for (specifier, expected) in [
            ("k6/http", "k6/http"),
            ("./lib.js", "file:///work/tests/lib.js"),
            ("../lib.js", "file:///work/lib.js"),
            ("/abs/lib.js", "file:///abs/lib.js"),
            ("https://jslib.k6.io/x/1.0/index.js", "https://jslib.k6.io/x/1.0/index.js"),
        ] {
            assert_eq!(resolve(base, specifier).unwrap(), expected);
        }
        assert!(matches!(resolve(base, "lodash"), Err(LoadError::Specifier(_))));
        assert_eq!(resolve("https://a.example/x/y.js", "./z.js").unwrap(), "https://a.example/x/z.js");
        assert!(resolve("https://a.example/x.js", "file:///etc/passwd").is_err());
    }
}
