//! Arbitrary text as each of a plan's smaller texts: headers, statuses, addresses, proxies. Nothing panics, errors point into the
//! text, and what is accepted can be sent.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_fuzz::accepted;
use squall_plan::rules::{
    parse_connect_to, parse_header, parse_proxy, parse_resolve, parse_source, parse_statuses,
};
use squall_wire::h1::{RequestHead, encode_head};

fuzz_target!(|text: &str| {
    if let Some(header) = accepted(text, parse_header(text)) {
        let headers = &[(header.name.as_str(), header.value.as_str())];
        let head = RequestHead { method: "GET", target: "/", host: None, headers, content_length: None };
        encode_head(&head, &mut Vec::new()).expect("an accepted header can be sent");
    }
    if let Some(ranges) = accepted(text, parse_statuses(text)) {
        assert!(!ranges.is_empty() && ranges.iter().all(|(from, to)| from <= to));
    }
    if let Some(rule) = accepted(text, parse_resolve(text)) {
        assert!(!rule.addresses.is_empty());
    }
    if let Some(proxy) = accepted(text, parse_proxy(text)) {
        assert!(!proxy.host.is_empty());
    }
    accepted(text, parse_connect_to(text));
    accepted(text, parse_source(text));
});
