//! What each change makes of a request, and what is refused.

use super::*;

const NOW_NS: u64 = 1_700_000_000_123_000_000;

/// Recorded 30 days and 1000 s before.
const RECORDED_NS: u64 = NOW_NS - (30 * 86_400 + 1000) * 1_000_000_000;

fn context(user: u32) -> Context<'static> {
    Context { user, round: 0, ordinal: 4, unique: 99, recorded_ns: RECORDED_NS, now_ns: NOW_NS, live: None }
}

fn changed_for(user: u32, request: &Request, changes: &[Change]) -> Request {
    let mut request = request.clone();
    Changes::new(changes, 7).unwrap().apply(&mut request, &context(user));
    request
}

fn changed(changes: &[Change]) -> Request {
    let request = Request {
        target: "/a/7?x=1&y=2".into(),
        headers: vec![Field::new("A", "1"), Field::new("Cookie", "s=1; t=2"), Field::new("a", "2")],
        body: br#"{"id":1,"n":{"m":"x"},"l":[{"k":1},{"k":2},3]}"#.to_vec(),
        ..Request::default()
    };
    changed_for(1, &request, changes)
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn each_change_does_what_it_says() {
    let request = changed(&[
        Change::SetHeader { name: text("a"), value: text("u{user}-{{{record}") },
        Change::SetQuery { name: text("y"), value: text("{unique} z") },
        Change::SetQuery { name: text("w"), value: text("{now_ms}") },
        Change::SetJson { pointer: text("/n/m"), value: text("{now_s}") },
        Change::SetJson { pointer: text("/l/*/k"), value: text("\"all\"") },
        Change::SetJson { pointer: text("/absent"), value: text("1") },
        Change::SetCookie { name: text("t"), value: text("9") },
        Change::Replace { pattern: text(r"/a/(\d)"), with: text("/b/${1}0{user}$1") },
    ]);
    assert_eq!(request.target, "/b/7027?x=1&y=99+z&w=1700000000123");
    assert_eq!(request.headers, [Field::new("A", "u2-{5"), Field::new("Cookie", "s=1; t=9")]);
    assert_eq!(request.body, br#"{"id":1,"n":{"m":1700000000},"l":[{"k":"all"},{"k":"all"},3]}"#);
    assert_eq!(changed(&[Change::DropHeader { name: text("COOKIE") }]).headers.len(), 2);
}

#[test]
fn fields_of_forms_are_set_where_they_are() {
    let parts = "--b\r\nContent-Disposition: form-data; name=\"pw\"\r\n\r\nold\r\n--b\r\nContent-Disposition: form-data; name=q\r\n\r\nx\r\n--b--\r\n";
    for (content_type, body, expected) in [
        ("", "user=u&pw=old&x", "user=u&pw=a%26+b&x"),
        ("application/x-www-form-urlencoded", "p%77=old", "p%77=a%26+b"),
        ("application/x-www-form-urlencoded", "user=u", "user=u"),
        ("application/json", r#"{"pw":1}"#, r#"{"pw":1}"#),
        ("multipart/form-data; boundary=b", parts, &parts.replace("old", "a& b")),
        ("", "", ""),
    ] {
        let headers = vec![Field::new("Content-Type", content_type)];
        let request = Request { headers, body: body.into(), ..Request::default() };
        let set = Change::SetForm { name: text("pw"), value: text("a& b") };
        let request = changed_for(0, &request, &[set]);
        assert_eq!(String::from_utf8_lossy(&request.body), expected, "{content_type} {body}");
    }
}

#[test]
fn values_of_tables_keep_the_types_of_json() {
    let table = Change::Table { text: text("pin\n0042\n"), is_per_request: false };
    let request = Request {
        body: br#"{"pin":"11","n":11,"hidden":"redacted-number-00"}"#.to_vec(),
        ..Request::default()
    };
    let set = |pointer: &str| Change::SetJson { pointer: text(pointer), value: text("1{csv.pin}") };
    let request = changed_for(0, &request, &[set("/pin"), set("/n"), set("/hidden"), table]);
    assert_eq!(String::from_utf8_lossy(&request.body), r#"{"pin":"10042","n":10042,"hidden":10042}"#);
}

#[test]
fn what_is_filled_into_a_replacement_is_no_group() {
    let table = Change::Table { text: text("price\n$1\n"), is_per_request: false };
    let replace = Change::Replace { pattern: text(r"(\w+)é\p{Lu}"), with: text("{csv.price}-$1-{{") };
    let request = Request { body: "aéÄ".into(), ..Request::default() };
    let request = changed_for(0, &request, &[replace, table]);
    assert_eq!(String::from_utf8_lossy(&request.body), "$1-a-{");
}

#[test]
fn columns_are_dealt_out_to_copies_or_to_requests() {
    let csv = "name,word\nanna,\"a, b\"\nben,c\n";
    let set = Change::SetHeader { name: text("a"), value: text("{csv.name}:{csv.word}") };
    for (user, is_per_request, expected) in [
        (0, false, "anna:a, b"),
        (1, false, "ben:c"),
        (2, false, "anna:a, b"),
        (0, true, "anna:a, b"),
        (1, true, "anna:a, b"),
    ] {
        let table = Change::Table { text: text(csv), is_per_request };
        let request = changed_for(user, &Request::default(), &[set.clone(), table]);
        assert_eq!(request.header("a"), Some(expected.as_bytes()), "copy {user}");
    }
}

#[test]
fn bad_changes_are_refused() {
    let set = |value: &str| Change::SetHeader { name: text("a"), value: text(value) };
    let table = |csv: &str| Change::Table { text: text(csv), is_per_request: false };
    for (changes, reason) in [
        (vec![set("{")], "open brace"),
        (vec![set("{user")], "open brace"),
        (vec![set("{nobody}")], "no such name"),
        (vec![set("{csv.x}")], "without a table"),
        (vec![set("{csv.x}"), table("y\n1\n")], "no column `x`"),
        (vec![table("y\n")], "no rows"),
        (vec![table("y,z\n1\n")], "bad table"),
        (vec![Change::Replace { pattern: text("("), with: String::new() }], "bad regular expression"),
        (vec![Change::UniqueIds { pattern: Some(text("[")) }], "bad regular expression"),
        (vec![Change::SignJwt { key: String::new(), claims: Vec::new() }], "empty"),
        (
            vec![Change::SignJwt {
                key: text("-----BEGIN PRIVATE KEY-----\nAA==\n-----END"),
                claims: Vec::new(),
            }],
            "neither RSA nor EC",
        ),
    ] {
        let error = Changes::new(&changes, 0).expect_err(reason);
        assert!(error.reason.contains(reason), "{reason}: {error:?}");
    }
}

#[test]
fn recorded_times_move_to_the_present() {
    // RECORDED_NS is 2023-10-15T21:56:40.123Z, NOW_NS 2023-11-14T22:13:20.123Z.
    for (before, after) in [
        (r#"{"at":"2023-10-15T21:56:40.123Z"}"#, r#"{"at":"2023-11-14T22:13:20.123Z"}"#),
        ("t=2023-10-15T23:56:40+02:00;", "t=2023-11-15T00:13:20+02:00;"),
        ("from=2023-10-15T00%3A00%3A00%2B00%3A00&x", "from=2023-11-14T00%3A16%3A40%2B00%3A00&x"),
        ("2023-10-01T00:00:00", "2023-10-31T00:16:40"),
        ("day=2023-10-16", "day=2023-11-15"),
        ("ts=1697407000&ms=1697407000123", "ts=1700000000&ms=1700000000123"),
        ("%3A1697407000", "%3A1700000000"),
        // Not times, or none of this traffic.
        (
            "1234567890 x2023-10-15 11697407000 2016-01-01 2023-13-45",
            "1234567890 x2023-10-15 11697407000 2016-01-01 2023-13-45",
        ),
    ] {
        let request = Request { body: before.into(), ..Request::default() };
        let request = changed_for(0, &request, &[Change::ShiftTimes]);
        assert_eq!(String::from_utf8_lossy(&request.body), after, "{before}");
    }
}

#[test]
fn ids_differ_between_copies_and_stay_the_same_within_one() {
    let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
    let request = Request {
        target: format!("/x/{id}?n=AB-1234"),
        body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
        ..Request::default()
    };
    let uuids = [Change::UniqueIds { pattern: None }];
    let (one, other) = (changed_for(0, &request, &uuids), changed_for(1, &request, &uuids));
    let id_of = |request: &Request| request.target[3..39].to_owned();
    assert!(id_of(&one) != id && id_of(&one) != id_of(&other));
    for made in [&one, &other] {
        assert!(String::from_utf8_lossy(&made.body).contains(&id_of(made)), "the same id in both places");
        assert_eq!((&id_of(made)[14..15], &id_of(made)[19..20], id_of(made).len()), ("4", "9", 36));
        assert!(made.target.ends_with("?n=AB-1234"));
    }
    let mut live = Live::default();
    live.set(b"recorded".to_vec(), id.as_bytes().to_vec());
    let mut given = request.clone();
    let changes = Changes::new(&uuids, 7).unwrap();
    changes.apply(&mut given, &Context { live: Some(&live), ..context(0) });
    assert_eq!(given, request, "what the server gave stays");
    let own = changed_for(0, &request, &[Change::UniqueIds { pattern: Some(text("[A-Z]{2}-[0-9]{4}")) }]);
    let number = own.target.rsplit_once('=').unwrap().1;
    assert!(number != "AB-1234" && number.len() == 7 && number[3..].parse::<u16>().is_ok(), "{number}");
}

#[cfg(feature = "sign")]
mod jwt {
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::signature::{self, EcdsaKeyPair, KeyPair, RsaKeyPair, UnparsedPublicKey};
    use aws_lc_rs::{hmac, rsa};
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    fn token(algorithm: &str) -> String {
        let recorded_s = RECORDED_NS / 1_000_000_000;
        let parts = [
            serde_json::json!({"alg": algorithm, "typ": "JWT"}).to_string(),
            serde_json::json!({"sub": "u", "iat": recorded_s - 60, "exp": recorded_s + 3600}).to_string(),
        ];
        format!("{}.{}.old", URL_SAFE_NO_PAD.encode(&parts[0]), URL_SAFE_NO_PAD.encode(&parts[1]))
    }

    /// Header, claims, what was signed, and the signature of the token that a request for `algorithm` leaves with.
    fn signed(algorithm: &str, key: &str) -> (Value, Value, Vec<u8>, Vec<u8>) {
        let headers = vec![Field::new("Authorization", format!("Bearer {}", token(algorithm)))];
        let claims = vec![(text("sub"), text("user-{user}"))];
        let change = Change::SignJwt { key: text(key), claims };
        let request = changed_for(2, &Request { headers, ..Request::default() }, &[change]);
        let value = String::from_utf8(request.header("authorization").unwrap().to_vec()).unwrap();
        let token = value.strip_prefix("Bearer ").unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let part = |nth: usize| URL_SAFE_NO_PAD.decode(text.split('.').nth(nth).unwrap()).unwrap();
        let json = |nth: usize| serde_json::from_slice(&part(nth)).unwrap();
        (json(0), json(1), text.into(), URL_SAFE_NO_PAD.decode(signature).unwrap())
    }

    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    #[test]
    fn tokens_are_valid_now_and_signed_by_the_given_key() {
        let (header, claims, text, signature) = signed("HS512", "secret\n");
        let now_s = NOW_NS / 1_000_000_000;
        assert_eq!(header["alg"], "HS512");
        assert_eq!(claims, serde_json::json!({"sub": "user-3", "iat": now_s - 60, "exp": now_s + 3600}));
        hmac::verify(&hmac::Key::new(hmac::HMAC_SHA512, b"secret"), &text, &signature).unwrap();

        let pair = RsaKeyPair::generate(rsa::KeySize::Rsa2048).unwrap();
        let key = pem(pair.as_der().unwrap().as_ref());
        for (asked, made, verify) in [
            ("RS256", "RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
            ("PS384", "PS384", &signature::RSA_PSS_2048_8192_SHA384),
            ("HS256", "RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
        ] {
            let (header, _, text, signature) = signed(asked, &key);
            assert_eq!(header["alg"], made);
            UnparsedPublicKey::new(verify, pair.public_key().as_ref()).verify(&text, &signature).unwrap();
        }

        let pair = EcdsaKeyPair::generate(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let (header, _, text, signature) = signed("ES256", &pem(pair.to_pkcs8v1().unwrap().as_ref()));
        assert_eq!(header["alg"], "ES256");
        let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        key.verify(&text, &signature).unwrap();
    }
}
