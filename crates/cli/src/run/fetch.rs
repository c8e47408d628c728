//! Modules that scripts import over `https://`: fetched as k6 does, verified, and kept in the user's cache.
//!
//! A copy is used for a day; after that it is fetched anew, and serves on where the network does not answer.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use squall_plan::files::{self, Access};
use squall_plan::limits::SCRIPT_FILE_BYTES_MAX;
use squall_script::Fetch;

use crate::output;

/// Gets modules, by the cache of the user whose environment this is.
pub(crate) fn fetcher(color: squall_report::ColorChoice) -> Fetch {
    let folder = cache_folder(|name| std::env::var_os(name).map(PathBuf::from));
    Box::new(move |url| {
        let kept = folder.as_ref().map(|folder| Kept::of(folder, url));
        if let Some(text) = kept.as_ref().filter(|kept| kept.is_fresh()).and_then(Kept::read) {
            return Ok(text);
        }
        match download(url) {
            Ok(text) => {
                if let Some(Err(error)) = kept.as_ref().map(|kept| kept.write(&text)) {
                    output::warning(color, &format!("the module `{url}` is not cached: {error}"));
                }
                Ok(text)
            }
            Err(problem) => match kept.as_ref().and_then(Kept::read) {
                Some(text) => {
                    output::warning(color, &format!("using a cached copy of the module `{url}`: {problem}"));
                    Ok(text)
                }
                None => Err(problem),
            },
        }
    })
}

/// `$XDG_CACHE_HOME/squall/modules`, else `~/.cache/squall/modules`.
fn cache_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("squall/modules"))
}

/// The copy of one module: a line with the digest of the text, then the text.
struct Kept(PathBuf);

impl Kept {
    fn of(folder: &std::path::Path, url: &str) -> Self {
        Self(folder.join(digest(url)))
    }

    fn is_fresh(&self) -> bool {
        let written = std::fs::metadata(&self.0).and_then(|metadata| metadata.modified());
        written.is_ok_and(|at| SystemTime::now().duration_since(at).unwrap_or_default() < FRESH)
    }

    /// The text, unless it is not what was written.
    fn read(&self) -> Option<String> {
        let content = files::read_text(&self.0, SCRIPT_FILE_BYTES_MAX + DIGEST_BYTES).ok()?;
        let (sum, text) = content.split_once('\n')?;
        (digest(text) == sum).then(|| text.to_owned())
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        std::fs::create_dir_all(self.0.parent().unwrap_or(&self.0))?;
        // Whole or not at all: another run may read it at the same time.
        files::replace(&self.0, format!("{}\n{text}", digest(text)).as_bytes(), Access::Shared)
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// k6 asks with `_k6=1` first, which some servers answer with a version made for it.
fn download(url: &str) -> Result<String, String> {
    let agent = squall_export::agent(TIMEOUT);
    let marked = format!("{url}{}_k6=1", if url.contains('?') { '&' } else { '?' });
    let get = |url: &str| {
        // A redirect to http would let anybody on the way put a script of theirs in.
        let mut response = agent.get(url).config().https_only(true).build().call()?;
        response.body_mut().with_config().limit(SCRIPT_FILE_BYTES_MAX).read_to_string()
    };
    get(&marked).or_else(|_| get(url)).map_err(|error| squall_export::reason(&error))
}

/// How long a copy is used without asking.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// k6's own limit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The sum in front of a kept text, and its line end.
const DIGEST_BYTES: u64 = 65;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_kept_whole_or_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::of(&folder.path().join("squall/modules"), "https://lib.example/a.js");
        assert!(!kept.is_fresh());
        assert_eq!(kept.read(), None);
        kept.write("export const a = 1;\n").unwrap();
        assert!(kept.is_fresh());
        assert_eq!(kept.read().as_deref(), Some("export const a = 1;\n"));
        let content = std::fs::read_to_string(&kept.0).unwrap();
        std::fs::write(&kept.0, content.replace("a = 1", "a = 2")).unwrap();
        assert_eq!(kept.read(), None);
    }

    #[test]
    fn the_cache_is_the_users() {
        let of = |pairs: &[(&str, &str)]| {
            let found =
                |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, path)| path.into());
            cache_folder(found)
        };
        assert_eq!(of(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c/squall/modules".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]), Some("/h/.cache/squall/modules".into()));
        assert_eq!(of(&[]), None);
    }
}
