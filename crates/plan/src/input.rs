//! What is wrong with a text that a person wrote: where, why, and what to write instead.

/// A text that cannot be read as what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (column {column})")]
pub struct InputError {
    /// Where the error starts, in characters, from 1.
    pub column: usize,
    /// Why: lowercase, without a final period.
    pub reason: String,
    /// What to write instead.
    pub help: String,
}

impl InputError {
    /// An error at byte `offset` of `text`.
    pub(crate) fn at(text: &str, offset: usize, reason: impl Into<String>, help: impl Into<String>) -> Self {
        let column = text.char_indices().take_while(|&(byte, _)| byte < offset).count() + 1;
        Self { column, reason: reason.into(), help: help.into() }
    }

    /// The same error in a longer text, of which the first `characters` precede the part that was read.
    pub(crate) fn behind(mut self, characters: usize) -> Self {
        self.column += characters;
        self
    }
}
