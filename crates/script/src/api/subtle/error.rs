//! Why an operation of `crypto.subtle` failed: what its promise is rejected with.

use crate::vm::{Ctx, Thrown, Value};

/// What an operation gives.
pub(super) type Outcome<T> = Result<T, Fault>;

/// Why it failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    /// A key that cannot be what it is imported as.
    #[error("{0}")]
    Data(String),
    /// Not a key, or an unknown format.
    #[error("{0}")]
    Implementation(String),
    /// A key that must not be used for this.
    #[error("{0}")]
    InvalidAccess(String),
    /// What k6 has not, either.
    #[error("{0}")]
    NotSupported(String),
    /// A parameter out of bounds, or bytes that cannot be decrypted.
    #[error("{0}")]
    Operation(String),
    /// A parameter that is missing, or usages that do not fit.
    #[error("{0}")]
    Syntax(String),
    /// An argument of another type.
    #[error("{0}")]
    Type(String),
    /// The script threw while it was asked for a parameter.
    #[error("the script threw")]
    Thrown,
}

impl From<Thrown> for Fault {
    fn from(Thrown: Thrown) -> Self {
        Self::Thrown
    }
}

impl Fault {
    /// The error's `name`, as k6 has it.
    fn name(&self) -> &'static str {
        match self {
            Self::Data(_) => "DataError",
            Self::Implementation(_) => "ImplementationError",
            Self::InvalidAccess(_) => "InvalidAccessError",
            Self::NotSupported(_) => "NotSupportedError",
            Self::Operation(_) => "OperationError",
            Self::Syntax(_) => "SyntaxError",
            Self::Type(_) => "TypeError",
            Self::Thrown => "Error",
        }
    }

    /// An error with its own `name` and `message`, which `JSON.stringify` shows, as it does in k6.
    pub(super) fn into_value(self, ctx: Ctx<'_>) -> Value<'_> {
        let class = match self {
            Self::Thrown => return ctx.take_exception(),
            Self::Syntax(_) => "SyntaxError",
            Self::Type(_) => "TypeError",
            _ => "Error",
        };
        let (name, message) = (self.name(), self.to_string());
        let Thrown = ctx.throw(class, &message);
        let error = ctx.take_exception();
        let is_shown = error
            .define("name", ctx.string(name))
            .and_then(|()| error.define("message", ctx.string(&message)));
        match is_shown {
            Ok(()) => error,
            Err(Thrown) => ctx.take_exception(),
        }
    }
}
