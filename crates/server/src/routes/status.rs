//! Any status, or a known mix of them.

use hyper::{
    StatusCode,
    header::{LOCATION, PROXY_AUTHENTICATE, WWW_AUTHENTICATE},
};

use crate::{
    call::Call,
    reply::{Refusal, Reply},
};

pub(super) fn status(call: &Call<'_>) -> Result<Reply, Refusal> {
    let codes = call.arg(0)?;
    let mix = parse_mix(if codes == "random" { RANDOM } else { &codes })?;
    let code = match mix.as_slice() {
        [(code, _)] => *code,
        several => choose(several, call.shared.sequences.status.draw()),
    };
    Ok(dress(code))
}

/// What `random` stands for: the answers that a server under load gives.
const RANDOM: &str = "200,201,400,403,404,429,500,502,503";

/// A status that can end an exchange: 1xx cannot, and beyond 599 RFC 9110 15 knows none.
pub(super) fn parse_code(text: &str) -> Result<StatusCode, Refusal> {
    let code = text.parse::<u16>().ok().filter(|code| (200..=599).contains(code));
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    code.ok_or_else(|| Refusal::new(format!("`{text}` is not a status from 200 to 599")))
}

/// Codes with their weights; without one a code weighs 1.
fn parse_mix(text: &str) -> Result<Vec<(StatusCode, f64)>, Refusal> {
    let mix: Vec<_> = text.split(',').map(parse_weighted).collect::<Result<_, _>>()?;
    if mix.iter().map(|(_, weight)| weight).sum::<f64>() > 0.0 {
        return Ok(mix);
    }
    Err(Refusal::new("at least one weight must be more than zero"))
}

fn parse_weighted(text: &str) -> Result<(StatusCode, f64), Refusal> {
    let (code, weight) = text.split_once(':').unwrap_or((text, "1"));
    let known = weight.parse::<f64>().ok().filter(|weight| (0.0..=1e9).contains(weight));
    let weight = known.ok_or_else(|| Refusal::new(format!("`{weight}` is not a weight such as 0.9")))?;
    Ok((parse_code(code)?, weight))
}

/// The code on which `share` of the summed weights falls.
fn choose(mix: &[(StatusCode, f64)], share: f64) -> StatusCode {
    let mut left = share * mix.iter().map(|(_, weight)| weight).sum::<f64>();
    for (code, weight) in mix {
        if left < *weight {
            return *code;
        }
        left -= weight;
    }
    mix[mix.len() - 1].0 // rounding may leave a trace
}

/// Adds what makes clients act on the status, as httpbin does.
fn dress(code: StatusCode) -> Reply {
    let reply = Reply::empty(code);
    match code.as_u16() {
        301 | 302 | 303 | 305 | 307 | 308 => reply.with(LOCATION, "/redirect/1"),
        401 => reply.with(WWW_AUTHENTICATE, "Basic realm=\"squall\""),
        407 => reply.with(PROXY_AUTHENTICATE, "Basic realm=\"squall\""),
        _ => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_chosen_by_weight() {
        let mix = parse_mix("200:0.9,500:0.1").unwrap();
        for (share, expected) in [(0.0, 200), (0.899, 200), (0.901, 500), (0.9999, 500)] {
            assert_eq!(choose(&mix, share).as_u16(), expected, "{share}");
        }
    }

    #[test]
    fn impossible_codes_are_refused() {
        for text in
            ["", "99", "100", "600", "abc", "200:", "200:-1", "200:nan", "200,", "200:0", "-200", "99999"]
        {
            assert!(parse_mix(text).is_err(), "{text}");
        }
    }
}
