//! Secrets of texts without a grammar of their own here: HTML, XML, scripts, GraphQL, logs. Found by what comes before them: the name of
//! an attribute, an element, a variable or a parameter.

use std::sync::LazyLock;

use regex::Regex;
use squall_plan::secret::{Secrecy, looks_random};

use super::find::{Edits, Finder, applied};
use crate::markup;

impl Finder<'_> {
    /// A text of any kind.
    pub(super) fn text(&mut self, text: &str, depth: u8) -> Option<String> {
        let mut edits = Edits::new();
        for tag in markup::fields(text) {
            let secrecy = if tag.is_password {
                Secrecy::Any
            } else {
                self.rules.secrecy(&tag.name, Secrecy::of(&tag.name))
            };
            let value = markup::unescaped(&text[tag.value.clone()]);
            edits.extend(self.secret(secrecy, &value).map(|placeholder| (tag.value, placeholder)));
        }
        for (name, range) in markup::named(text) {
            let value = markup::unescaped(&markup::unescaped_script(&text[range.clone()]));
            let secrecy = self.rules.secrecy(name, Secrecy::of(name));
            edits.extend(self.likely_secret(secrecy, &value).map(|placeholder| (range, placeholder)));
        }
        for (name, range) in markup::parameters(text) {
            let plain = percent_encoding::percent_decode_str(&text[range.clone()]).decode_utf8_lossy();
            let secrecy = self.rules.secrecy(name, Secrecy::of_parameter(name));
            let is_encoded = plain != text[range.clone()];
            let placeholder = self.likely_secret(secrecy, &plain);
            let written =
                |placeholder: String| if is_encoded { placeholder.replace('=', "%3D") } else { placeholder };
            edits.extend(placeholder.map(|placeholder| (range, written(placeholder))));
        }
        // User information of a URL that is the whole text.
        let whole_url = depth > 0
            && text.len() <= URL_BYTES_MAX
            && text.contains("://")
            && !text.contains([' ', '\n', '<']);
        let redacted = applied(text, edits);
        let text = redacted.as_deref().unwrap_or(text);
        let redacted_more = if whole_url { self.url(text, depth) } else { self.patterns_and_tokens(text) };
        redacted_more.or(redacted)
    }

    /// What a script calls `password` may be the word that a page shows.
    fn likely_secret(&mut self, secrecy: Secrecy, value: &str) -> Option<String> {
        let is_likely = self.is_request || looks_random(value.as_bytes());
        if is_likely { self.secret(secrecy, value) } else { None }
    }

    /// What the user's patterns match, and JSON web tokens, which are secrets wherever they stand.
    pub(super) fn patterns_and_tokens(&mut self, text: &str) -> Option<String> {
        let mut edits = Edits::new();
        let rules = self.rules;
        for pattern in rules.patterns() {
            for found in pattern.captures_iter(text.as_bytes()) {
                let Some(part) = found.get(1).or_else(|| found.get(0)) else { continue };
                // A pattern for bytes may end within a character.
                let Some(value) = text.get(part.range()) else { continue };
                edits.extend(self.secret(Secrecy::Any, value).map(|placeholder| (part.range(), placeholder)));
            }
        }
        if text.contains("eyJ") {
            for found in TOKEN.find_iter(text) {
                let placeholder = self.secret(Secrecy::Any, found.as_str());
                edits.extend(placeholder.map(|placeholder| (found.range(), placeholder)));
            }
        }
        applied(text, edits)
    }
}

/// A JSON web token.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"eyJ[0-9A-Za-z_\-]+\.eyJ[0-9A-Za-z_\-]+\.[0-9A-Za-z_\-]*";
    Regex::new(pattern).expect("the pattern is constant")
});

/// A longer text is no URL.
const URL_BYTES_MAX: usize = 16 << 10;
