//! The module `k6/http`. `call` is what a script calls, `params` how it says what it wants, `exchange` a request on its way through
//! redirects and authentication, `response` what it gets, `cookies` jars, `form` bodies, `batch` many at once, `state`
//! what is remembered of them.

mod batch;
mod cache;
pub(super) mod call;
pub(super) mod cookies;
mod digest;
pub(super) mod exchange;
pub(super) mod form;
mod params;
pub(super) mod response;
pub(crate) mod state;
pub(super) mod url;

use crate::host::Host;
use crate::vm::{Ctx, Fun, JsResult, Value};

pub(crate) use batch::run_replies;

const FUNCTIONS: &[Fun] = &[
    Fun::new(c"get", 2, call::get),
    Fun::new(c"head", 2, call::head),
    Fun::new(c"post", 3, call::post),
    Fun::new(c"put", 3, call::put),
    Fun::new(c"patch", 3, call::patch),
    Fun::new(c"del", 3, call::delete),
    Fun::new(c"options", 3, call::options),
    Fun::new(c"request", 4, call::request),
    Fun::new(c"asyncRequest", 4, call::async_request),
    Fun::new(c"batch", 1, batch::batch),
    Fun::new(c"url", 1, call::url),
    Fun::new(c"file", 3, form::file),
    Fun::new(c"cookieJar", 0, cookies::jar_of_user),
    Fun::new(c"setResponseCallback", 1, params::set_response_callback),
    Fun::new(c"expectedStatuses", 1, params::expected_statuses),
];

pub(super) fn exports(ctx: Ctx<'_>) -> JsResult<super::Exports<'_>> {
    super::exports_of(object(ctx)?)
}

/// The module as an object, one for each user.
fn object(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    Host::of(ctx).kept(ctx, "http", || module(ctx))
}

fn module(ctx: Ctx<'_>) -> JsResult<Value<'_>> {
    let object = ctx.object();
    ctx.set_functions(&object, FUNCTIONS)?;
    object.set("CookieJar", cookies::class(ctx)?)?;
    for (name, value) in CONSTANTS {
        object.set(name, ctx.string(value))?;
    }
    Ok(object)
}

const CONSTANTS: &[(&str, &str)] = &[
    ("TLS_1_0", "tls1.0"),
    ("TLS_1_1", "tls1.1"),
    ("TLS_1_2", "tls1.2"),
    ("TLS_1_3", "tls1.3"),
    ("OCSP_STATUS_GOOD", "good"),
    ("OCSP_STATUS_REVOKED", "revoked"),
    ("OCSP_STATUS_SERVER_FAILED", "server_failed"),
    ("OCSP_STATUS_UNKNOWN", "unknown"),
    ("OCSP_REASON_UNSPECIFIED", "unspecified"),
    ("OCSP_REASON_KEY_COMPROMISE", "key_compromise"),
    ("OCSP_REASON_CA_COMPROMISE", "ca_compromise"),
    ("OCSP_REASON_AFFILIATION_CHANGED", "affiliation_changed"),
    ("OCSP_REASON_SUPERSEDED", "superseded"),
    ("OCSP_REASON_CESSATION_OF_OPERATION", "cessation_of_operation"),
    ("OCSP_REASON_CERTIFICATE_HOLD", "certificate_hold"),
    ("OCSP_REASON_REMOVE_FROM_CRL", "remove_from_crl"),
    ("OCSP_REASON_PRIVILEGE_WITHDRAWN", "privilege_withdrawn"),
    ("OCSP_REASON_AA_COMPROMISE", "aa_compromise"),
];
