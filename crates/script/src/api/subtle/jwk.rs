//! JSON Web Keys (RFC 7517): their members, read and written.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};

use super::error::{Fault, Outcome};
use crate::vm::{Ctx, JsResult, Value};

/// A key in its JSON form, of the type that the algorithm wants.
pub(super) struct Jwk<'js>(Value<'js>);

impl<'js> Jwk<'js> {
    /// The key that a value is; `kind`: its `kty`.
    pub(super) fn of(value: &Value<'js>, kind: &str) -> Outcome<Self> {
        if !value.is_object() {
            return Err(Fault::Data("a JWK must be an object".to_owned()));
        }
        let jwk = Self(value.clone());
        match jwk.text("kty")? {
            Some(text) if text == kind => Ok(jwk),
            other => {
                let other = other.unwrap_or_default();
                Err(Fault::Data(format!("the JWK's `kty` must be `{kind}`, not `{other}`")))
            }
        }
    }

    /// A member that is a text; none: there is none, or an empty one.
    pub(super) fn text(&self, member: &str) -> Outcome<Option<String>> {
        let text = self.0.get(member)?.as_text().map(|text| text.to_owned());
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// A member that is bytes in Base64.
    pub(super) fn bytes(&self, member: &str) -> Outcome<Option<Vec<u8>>> {
        let Some(text) = self.text(member)? else { return Ok(None) };
        let bytes = LENIENT.decode(text);
        bytes.map(Some).map_err(|error| Fault::Data(format!("the JWK's `{member}` is no Base64: {error}")))
    }

    /// The same of one that must be there.
    pub(super) fn required(&self, member: &str) -> Outcome<Vec<u8>> {
        self.bytes(member)?.ok_or_else(|| Fault::Data(format!("the JWK's `{member}` is missing")))
    }
}

/// A JWK of members in Base64, after those that are texts.
pub(super) fn object<'js>(
    ctx: Ctx<'js>,
    texts: &[(&str, &str)],
    members: &[(&str, &[u8])],
) -> JsResult<Value<'js>> {
    let jwk = ctx.object();
    for (member, text) in texts {
        jwk.set(member, ctx.string(text))?;
    }
    for (member, bytes) in members {
        jwk.set(member, ctx.string(&URL_SAFE_NO_PAD.encode(bytes)))?;
    }
    Ok(jwk)
}

/// Without padding, and where the last letter has unused bits, as Go reads it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);
