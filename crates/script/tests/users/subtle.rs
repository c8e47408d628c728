//! `crypto.subtle`, held to published vectors, and what it says of wrong use.

use squall_script::Outcome;

use crate::drive::{iterate, reply};

/// What an iteration says of an awaited value, or the name of what its promise was rejected with.
fn shown(expression: &str) -> String {
    let source = format!(
        "{PRELUDE}\nexport default async function () {{\n  try {{ console.log(await ({expression})); }} catch (error) {{ console.log(error.name); }}\n}}"
    );
    let run = iterate(&source, 1, |_| reply(200, &[], ""));
    match run.outcome {
        Outcome::Done(_) => run.said.trim_end().to_owned(),
        Outcome::Failed(error) => format!("THROWN {}", error.message),
        other => format!("{other:?}"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (expression, text) in cases {
        assert_eq!(shown(expression), *text, "{expression}");
    }
}

#[test]
fn digests_are_those_of_the_standard() {
    // FIPS 180-4, of `abc`.
    check(&[
        ("subtle.digest('SHA-1', text('abc')).then(hex)", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "subtle.digest({ name: 'sha-256' }, text('abc').buffer).then(hex)",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            "subtle.digest('SHA-384', new DataView(text('abc').buffer)).then(hex)",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "subtle.digest('SHA-512', text('xabc').subarray(1)).then((h) => hex(h).slice(0, 32))",
            "ddaf35a193617abacc417349ae204131",
        ),
        ("subtle.digest('MD5', text('abc'))", "NotSupportedError"),
        ("subtle.digest('SHA-1', 'abc')", "OperationError"),
        ("subtle.digest('SHA-1')", "TypeError"),
    ]);
}

#[test]
fn hmac_signs_and_verifies() {
    let signed = |hash: &str| {
        format!(
            "subtle.importKey('raw', text('Jefe'), {{ name: 'HMAC', hash: '{hash}' }}, true, ['sign'])
               .then((key) => subtle.sign('HMAC', key, text('what do ya want for nothing?'))).then(hex)"
        )
    };
    // RFC 2202 and RFC 4231, test case 2.
    check(&[
        (&signed("SHA-1"), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (&signed("SHA-256"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            &signed("SHA-384"),
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            "(async () => {
               const key = await subtle.generateKey({ name: 'HMAC', hash: { name: 'SHA-512' } }, true, ['sign', 'verify']);
               const signature = await subtle.sign('HMAC', key, text('a'));
               const same = await subtle.importKey('jwk', await subtle.exportKey('jwk', key), key.algorithm, true, ['verify']);
               return [key.type, key.algorithm.hash.name, key.algorithm.length, key.usages,
                 await subtle.verify('HMAC', same, signature, text('a')), await subtle.verify('HMAC', same, signature, text('b'))];
             })()",
            r#"[ "secret", "SHA-512", 1024, [ "sign", "verify" ], true, false ]"#,
        ),
        ("subtle.importKey('raw', text(''), { name: 'HMAC', hash: 'SHA-1' }, true, ['sign'])", "DataError"),
        ("subtle.importKey('raw', text('a'), { name: 'HMAC', hash: 'SHA-1', length: 9 }, true, ['sign'])", "DataError"),
        ("subtle.importKey('raw', text('a'), 'HMAC', true, ['sign'])", "SyntaxError"),
        ("subtle.importKey('raw', text('a'), { name: 'HMAC', hash: 'SHA-1' }, true, ['encrypt'])", "SyntaxError"),
        ("subtle.importKey('raw', text('a'), { name: 'HMAC', hash: 'SHA-1' }, true, [])", "SyntaxError"),
        ("subtle.importKey('jwk', { kty: 'EC' }, { name: 'HMAC', hash: 'SHA-1' }, true, ['sign'])", "DataError"),
        ("subtle.generateKey({ name: 'HMAC', hash: 'SHA-1', length: 0 }, true, ['sign'])", "OperationError"),
        ("subtle.generateKey({ name: 'HMAC', hash: 'SHA-1', length: -8 }, true, ['sign'])", "OperationError"),
        ("subtle.generateKey({ name: 'HMAC', hash: 'SHA-1', length: 4e9 }, true, ['sign'])", "OperationError"),
    ]);
}

#[test]
fn aes_gives_the_published_ciphertexts() {
    let crypted = |operation: &str, key: &str, params: &str, data: &str| {
        format!(
            "subtle.importKey('raw', bytes('{key}'), {params}, true, ['{operation}'])
               .then((key) => subtle.{operation}({params}, key, bytes('{data}'))).then(hex)"
        )
    };
    let (short, long) = (
        "2b7e151628aed2a6abf7158809cf4f3c",
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
    );
    let plain = "6bc1bee22e409f96e93d7e117393172a";
    let cbc = "{ name: 'AES-CBC', iv: bytes('000102030405060708090a0b0c0d0e0f') }";
    let ctr = "{ name: 'AES-CTR', counter: bytes('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'), length: 64 }";
    let gcm = |more: &str| {
        format!(
            "{{ name: 'AES-GCM', iv: bytes('cafebabefacedbaddecaf888'), additionalData: bytes('feedfacedeadbeeffeedfacedeadbeefabaddad2'){more} }}"
        )
    };
    let gcm_key = "feffe9928665731c6d6a8f9467308308";
    let gcm_plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    let gcm_sealed = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091";
    // NIST SP 800-38A F.2.1 with its padding, F.5.5; McGrew and Viega, The Galois/Counter Mode, test case 4, and its tag cut.
    check(&[
        (
            &crypted("encrypt", short, cbc, plain),
            "7649abac8119b246cee98e9b12e9197d8964e0b149c10b7b682e6e39aaeb731c",
        ),
        (
            &crypted(
                "decrypt",
                short,
                cbc,
                "7649abac8119b246cee98e9b12e9197d8964e0b149c10b7b682e6e39aaeb731c",
            ),
            plain,
        ),
        (&crypted("decrypt", short, cbc, plain), "OperationError"),
        (&crypted("decrypt", short, cbc, "00"), "OperationError"),
        (&crypted("encrypt", long, ctr, plain), "601ec313775789a5b7a7f504bbf3d228"),
        (&crypted("decrypt", long, ctr, "601ec313775789a5b7a7f504bbf3d228"), plain),
        (
            &crypted("encrypt", gcm_key, &gcm(""), gcm_plain),
            &format!("{gcm_sealed}5bc94fbc3221a5db94fae95ae7121a47"),
        ),
        (
            &crypted("encrypt", gcm_key, &gcm(", tagLength: 96"), gcm_plain),
            &format!("{gcm_sealed}5bc94fbc3221a5db94fae95a"),
        ),
        (
            &crypted(
                "decrypt",
                gcm_key,
                &gcm(", tagLength: 104"),
                &format!("{gcm_sealed}5bc94fbc3221a5db94fae95ae7"),
            ),
            gcm_plain,
        ),
        (
            &crypted("decrypt", gcm_key, &gcm(""), &format!("{gcm_sealed}00000000000000000000000000000000")),
            "OperationError",
        ),
        (
            &crypted(
                "decrypt",
                gcm_key,
                &gcm(", tagLength: 96"),
                &format!("{gcm_sealed}5bc94fbc3221a5db94fae95b"),
            ),
            "OperationError",
        ),
        (&crypted("decrypt", gcm_key, &gcm(""), "00"), "OperationError"),
        (&crypted("encrypt", gcm_key, &gcm(", tagLength: 64"), "00"), "NotSupportedError"),
        (&crypted("encrypt", gcm_key, &gcm(", tagLength: 1"), "00"), "OperationError"),
        (
            &crypted("encrypt", gcm_key, "{ name: 'AES-GCM', iv: new Uint8Array(16) }", "00"),
            "NotSupportedError",
        ),
        (&crypted("encrypt", short, "{ name: 'AES-CBC', iv: new Uint8Array(15) }", "00"), "OperationError"),
        (&crypted("encrypt", short, "{ name: 'AES-CBC', iv: 5 }", "00"), "SyntaxError"),
        (
            &crypted("encrypt", short, "{ name: 'AES-CTR', counter: new Uint8Array(16), length: 129 }", "00"),
            "OperationError",
        ),
        (&crypted("encrypt", "2b7e", cbc, plain), "DataError"),
    ]);
}

#[test]
fn aes_keys_are_generated_exported_and_guarded() {
    check(&[
        (
            "(async () => {
               const key = await subtle.generateKey({ name: 'aes-gcm', length: 192 }, true, ['decrypt', 'encrypt', 'decrypt']);
               const jwk = await subtle.exportKey('jwk', key);
               const raw = await subtle.exportKey('raw', await subtle.importKey('jwk', jwk, 'AES-GCM', true, ['encrypt']));
               return [key.type, key.extractable, key.algorithm, key.usages, raw.byteLength, jwk.kty, jwk.alg, jwk.ext, jwk.key_ops];
             })()",
            r#"[ "secret", true, { name: "AES-GCM", length: 192 }, [ "decrypt", "encrypt" ], 24, "oct", "A192GCM", true, [ "decrypt", "encrypt" ] ]"#,
        ),
        ("subtle.generateKey({ name: 'AES-CBC', length: 100 }, true, ['encrypt'])", "OperationError"),
        ("subtle.generateKey({ name: 'AES-CBC' }, true, ['encrypt'])", "SyntaxError"),
        ("subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, [])", "SyntaxError"),
        ("subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, ['sign'])", "SyntaxError"),
        ("subtle.generateKey({ name: 'AES-KW', length: 128 }, true, ['encrypt'])", "SyntaxError"),
        ("subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, 'encrypt')", "TypeError"),
        ("subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, new Array(4e9))", "OperationError"),
        ("subtle.generateKey({ name: 'AES-XYZ', length: 128 }, true, ['encrypt'])", "NotSupportedError"),
        ("subtle.generateKey('PBKDF2', true, ['deriveBits'])", "NotSupportedError"),
        ("subtle.generateKey(5, true, ['encrypt'])", "SyntaxError"),
        ("subtle.generateKey({ get name() { throw new RangeError('mine'); } }, true, ['encrypt'])", "RangeError"),
        (
            "subtle.generateKey({ name: 'AES-CBC', length: 128 }, false, ['encrypt']).then((key) => subtle.exportKey('raw', key))",
            "InvalidAccessError",
        ),
        (
            "subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, ['encrypt']).then((key) => subtle.exportKey('spki', key))",
            "NotSupportedError",
        ),
        (
            "subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, ['encrypt'])
               .then((key) => subtle.decrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, key, new Uint8Array(16)))",
            "InvalidAccessError",
        ),
        (
            "subtle.generateKey({ name: 'AES-CBC', length: 128 }, true, ['encrypt'])
               .then((key) => subtle.encrypt({ name: 'AES-CTR', counter: new Uint8Array(16), length: 8 }, key, new Uint8Array(16)))",
            "InvalidAccessError",
        ),
        ("subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, 5, new Uint8Array(1))", "InvalidAccessError"),
        ("subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, {}, new Uint8Array(1))", "TypeError"),
        ("subtle.importKey('hex', new Uint8Array(16), 'AES-CBC', true, ['encrypt'])", "ImplementationError"),
        ("subtle.importKey('jwk', { kty: 'oct', k: '***' }, 'AES-CBC', true, ['encrypt'])", "DataError"),
        ("subtle.importKey('jwk', 'oct', 'AES-CBC', true, ['encrypt'])", "DataError"),
        ("subtle.exportKey('raw', {})", "ImplementationError"),
    ]);
}

#[test]
fn passwords_become_bits_and_keys() {
    let derived = |hash: &str, iterations: u32, bits: u32| {
        format!(
            "subtle.importKey('raw', text('password'), 'PBKDF2', false, ['deriveBits'])
               .then((key) => subtle.deriveBits({{ name: 'PBKDF2', hash: '{hash}', salt: text('salt'), iterations: {iterations} }}, key, {bits}))
               .then(hex)"
        )
    };
    // RFC 6070, and its inputs with SHA-256.
    check(&[
        (&derived("SHA-1", 1, 160), "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
        (&derived("SHA-1", 4096, 160), "4b007901b765489abead49d926f721d065a429c1"),
        (&derived("SHA-256", 4096, 256), "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"),
        (&derived("SHA-1", 0, 160), "OperationError"),
        (&derived("SHA-1", 1, 0), "OperationError"),
        (&derived("SHA-1", 1, 12), "OperationError"),
        (&derived("SHA-1", 1, 4_000_000_000), "OperationError"),
        (
            "(async () => {
               const base = await subtle.importKey('raw', text('password'), 'PBKDF2', false, ['deriveKey']);
               const how = { name: 'PBKDF2', hash: { name: 'SHA-1' }, salt: 'salt', iterations: 4096 };
               const key = await subtle.deriveKey(how, base, { name: 'AES-GCM', length: 128 }, true, ['encrypt']);
               return [hex(await subtle.exportKey('raw', key)), key.usages, base.algorithm, base.extractable];
             })()",
            r#"[ "4b007901b765489abead49d926f721d0", [ "encrypt" ], { name: "PBKDF2" }, false ]"#,
        ),
        ("subtle.importKey('raw', text('a'), 'PBKDF2', true, ['deriveKey'])", "SyntaxError"),
        ("subtle.importKey('jwk', {}, 'PBKDF2', false, ['deriveKey'])", "NotSupportedError"),
        ("subtle.importKey('raw', text('a'), 'PBKDF2', false, ['sign'])", "SyntaxError"),
    ]);
}

#[test]
fn ecdsa_accepts_the_published_signatures() {
    let verified = |hash: &str, signature: &str| {
        format!(
            "subtle.importKey('raw', bytes('04{RFC_6979_X}{RFC_6979_Y}'), {{ name: 'ECDSA', namedCurve: 'P-256' }}, true, ['verify'])
               .then((key) => subtle.verify({{ name: 'ECDSA', hash: '{hash}' }}, key, bytes('{signature}'), text('sample')))"
        )
    };
    // RFC 6979 A.2.5: hashes that are shorter than the curve, as long, and longer.
    check(&[
        (
            &verified(
                "SHA-1",
                "61340C88C3AAEBEB4F6D667F672CA9759A6CCAA9FA8811313039EE4A35471D326D7F147DAC089441BB2E2FE8F7A3FA264B9C475098FDCF6E00D7C996E1B8B7EB",
            ),
            "true",
        ),
        (
            &verified(
                "SHA-256",
                "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
            ),
            "true",
        ),
        (
            &verified(
                "SHA-384",
                "0EAFEA039B20E9B42309FB1D89E213057CBF973DC0CFC8F129EDDDC800EF77194861F0491E6998B9455193E34E7B0D284DDD7149A74B95B9261F13ABDE940954",
            ),
            "true",
        ),
        (
            &verified(
                "SHA-512",
                "8496A60B5E9B47C825488827E0495B0E3FA109EC4568FD3F8D1097678EB97F002362AB1ADBE2B8ADF9CB9EDAB740EA6049C028114F2460F96554F61FAE3302FE",
            ),
            "true",
        ),
        (
            &verified(
                "SHA-256",
                "8496A60B5E9B47C825488827E0495B0E3FA109EC4568FD3F8D1097678EB97F002362AB1ADBE2B8ADF9CB9EDAB740EA6049C028114F2460F96554F61FAE3302FE",
            ),
            "false",
        ),
        (&verified("SHA-256", "00"), "false"),
    ]);
}

#[test]
fn every_curve_signs_with_every_hash_and_its_keys_travel_in_every_format() {
    let round = "(async () => {
        const seen = [];
        for (const namedCurve of ['P-256', 'P-384', 'P-521']) {
          const how = { name: 'ECDSA', namedCurve };
          const pair = await subtle.generateKey(how, true, ['sign', 'verify']);
          const again = async (format, key) => subtle.importKey(format, await subtle.exportKey(format, key), how, true, key.usages);
          const signers = [pair.privateKey, await again('pkcs8', pair.privateKey), await again('jwk', pair.privateKey)];
          const verifiers = [pair.publicKey, await again('spki', pair.publicKey), await again('raw', pair.publicKey), await again('jwk', pair.publicKey)];
          for (const hash of ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512']) {
            const name = { name: 'ECDSA', hash: { name: hash } };
            for (const signer of signers) {
              const signature = await subtle.sign(name, signer, text('a'));
              for (const verifier of verifiers) {
                seen.push(await subtle.verify(name, verifier, signature, text('a')), !(await subtle.verify(name, verifier, signature, text('b'))));
              }
            }
          }
        }
        return [seen.length, seen.every((ok) => ok)];
      })()";
    check(&[(round, "[ 288, true ]")]);
}

#[test]
fn ecdh_agrees_on_the_published_bits() {
    // RFC 5903 8.1; the key of one side with its public part, as a JWK has it.
    let agreed = |bits: &str| {
        format!(
            "(async () => {{
               const b64 = (text) => encoding.b64encode(bytes(text), 'rawurl');
               const how = {{ name: 'ECDH', namedCurve: 'P-256' }};
               const own = await subtle.importKey('jwk', {{ kty: 'EC', crv: 'P-256',
                 x: b64('DAD0B65394221CF9B051E1FECA5787D098DFE637FC90B9EF945D0C3772581180'),
                 y: b64('5271A0461CDB8252D61F1C456FA3E59AB1F45B33ACCF5F58389E0577B8990BB3'),
                 d: b64('C88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433') }}, how, true, ['deriveBits']);
               const other = await subtle.importKey('raw', bytes('04D12DFB5289C8D4F81208B70270398C342296970A0BCCB74C736FC7554494BF6356FBF3CA366CC23E8157854C13C58D6AAC23F046ADA30F8353E74F33039872AB'), how, true, []);
               return hex(await subtle.deriveBits({{ name: 'ECDH', public: other }}, own, {bits}));
             }})()"
        )
    };
    let pair = "subtle.generateKey({ name: 'ECDH', namedCurve: 'P-521' }, true, ['deriveBits'])";
    check(&[
        (&agreed("256"), "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"),
        (&agreed("128"), "d6840f6b42f6edafd13116e0e1256520"),
        (&agreed("264"), "OperationError"),
        (&agreed("undefined"), "OperationError"),
        (
            &format!(
                "{pair}.then((p) => [p.privateKey.usages, p.publicKey.usages, p.publicKey.type, p.privateKey.algorithm])"
            ),
            r#"[ [ "deriveBits" ], [], "public", { name: "ECDH", namedCurve: "P-521" } ]"#,
        ),
        (
            &format!(
                "{pair}.then((p) => subtle.deriveBits({{ name: 'ECDH', public: p.publicKey }}, p.privateKey, 528)).then((b) => b.byteLength)"
            ),
            "66",
        ),
        (&format!("{pair}.then((p) => subtle.deriveBits({{ name: 'ECDH' }}, p.privateKey, 8))"), "TypeError"),
        (
            &format!(
                "{pair}.then((p) => subtle.deriveBits({{ name: 'ECDH', public: p.privateKey }}, p.privateKey, 8))"
            ),
            "InvalidAccessError",
        ),
        (
            &format!(
                "{pair}.then((p) => subtle.deriveBits({{ name: 'ECDH', public: p.publicKey }}, p.publicKey, 8))"
            ),
            "InvalidAccessError",
        ),
        (&format!("{pair}.then((p) => subtle.exportKey('raw', p.privateKey))"), "InvalidAccessError"),
        (&format!("{pair}.then((p) => subtle.exportKey('pkcs8', p.publicKey))"), "InvalidAccessError"),
        (
            "subtle.generateKey({ name: 'ECDH', namedCurve: 'P-1' }, true, ['deriveBits'])",
            "NotSupportedError",
        ),
        ("subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['sign'])", "SyntaxError"),
        ("subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, [])", "SyntaxError"),
    ]);
}

#[test]
fn a_key_that_is_no_point_of_its_curve_is_refused() {
    let import = |format: &str, data: &str| {
        format!(
            "subtle.importKey('{format}', {data}, {{ name: 'ECDSA', namedCurve: 'P-256' }}, true, ['verify'])"
        )
    };
    check(&[
        (&import("raw", &format!("bytes('04{RFC_6979_X}{RFC_6979_X}')")), "DataError"),
        (&import("raw", &format!("bytes('02{RFC_6979_X}')")), "DataError"),
        (&import("raw", "new Uint8Array(0)"), "DataError"),
        (&import("spki", "new Uint8Array(91)"), "DataError"),
        (&import("pkcs8", "new Uint8Array(138)"), "DataError"),
        (&import("jwk", "{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' }"), "DataError"),
        (&import("jwk", "{ kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', d: 'AA' }"), "DataError"),
        (&import("jwk", "{ kty: 'EC', crv: 'P-256', x: 'A'.repeat(200), y: 'AA' }"), "DataError"),
        (&import("jwk", "{ kty: 'EC', crv: 'P-256', x: 'AA' }"), "DataError"),
    ]);
}

#[test]
fn rsa_signs_as_published() {
    // RFC 7515 A.2: the key, what is signed, and the signature, which has no salt.
    let signed = format!(
        "(async () => {{
           const key = await subtle.importKey('jwk', {RFC_7515_KEY}, {{ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }}, true, ['sign']);
           const signature = await subtle.sign('RSASSA-PKCS1-v1_5', key, text('eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'));
           return encoding.b64encode(signature, 'rawurl');
         }})()"
    );
    let exported = format!(
        "(async () => {{
           const jwk = {RFC_7515_KEY}, how = {{ name: 'RSA-PSS', hash: 'SHA-256' }};
           const key = await subtle.importKey('jwk', jwk, how, true, ['sign']);
           const again = await subtle.importKey('pkcs8', await subtle.exportKey('pkcs8', key), how, true, ['sign']);
           const out = await subtle.exportKey('jwk', again);
           return [again.type, again.algorithm, Object.keys(jwk).every((member) => jwk[member] === out[member])];
         }})()"
    );
    check(&[
        (
            &signed,
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        ),
        (
            &exported,
            r#"[ "private", { name: "RSA-PSS", modulusLength: 2048, hash: { name: "SHA-256" } }, true ]"#,
        ),
    ]);
}

#[test]
fn rsa_works_with_every_hash_padding_and_format() {
    let round = "(async () => {
        const seen = [];
        for (const hash of ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512']) {
          for (const name of ['RSASSA-PKCS1-v1_5', 'RSA-PSS']) {
            const how = { name, modulusLength: 1536, publicExponent: new Uint8Array([1, 0, 1]), hash };
            const pair = await subtle.generateKey(how, true, ['sign', 'verify']);
            const verifier = await subtle.importKey('spki', await subtle.exportKey('spki', pair.publicKey), how, true, ['verify']);
            for (const saltLength of name === 'RSA-PSS' ? [0, 20, 32] : [0]) {
              const signature = await subtle.sign({ name, saltLength }, pair.privateKey, text('a'));
              seen.push(await subtle.verify({ name, saltLength }, verifier, signature, text('a')), !(await subtle.verify({ name, saltLength }, verifier, signature, text('b'))));
            }
          }
          const how = { name: 'RSA-OAEP', modulusLength: 1536, publicExponent: new Uint8Array([1, 0, 1]), hash };
          const pair = await subtle.generateKey(how, true, ['encrypt', 'decrypt']);
          const sealer = await subtle.importKey('jwk', await subtle.exportKey('jwk', pair.publicKey), how, true, ['encrypt']);
          const label = text('label');
          const sealed = await subtle.encrypt({ name: 'RSA-OAEP', label }, sealer, text('a'));
          seen.push(hex(await subtle.decrypt({ name: 'RSA-OAEP', label }, pair.privateKey, sealed)) === '61');
          seen.push(await subtle.decrypt({ name: 'RSA-OAEP' }, pair.privateKey, sealed).catch((error) => error.name === 'OperationError'));
        }
        return [seen.length, seen.every((ok) => ok)];
      })()";
    check(&[(round, "[ 40, true ]")]);
}

#[test]
fn wrong_keys_of_rsa_are_refused() {
    let generate = |params: &str, usages: &str| {
        format!(
            "subtle.generateKey({{ name: 'RSA-PSS', hash: 'SHA-256', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), {params} }}, true, {usages})"
        )
    };
    let import = |jwk: &str| {
        format!("subtle.importKey('jwk', {jwk}, {{ name: 'RSA-PSS', hash: 'SHA-256' }}, true, ['sign'])")
    };
    let changed = |change: &str| import(&format!("{{ ...{RFC_7515_KEY}, {change} }}"));
    check(&[
        (&generate("modulusLength: 512", "['sign']"), "OperationError"),
        (&generate("modulusLength: 1e9", "['sign']"), "OperationError"),
        (&generate("modulusLength: 2049", "['sign']"), "OperationError"),
        (&generate("publicExponent: new Uint8Array([3])", "['sign']"), "OperationError"),
        (&generate("publicExponent: 3", "['sign']"), "OperationError"),
        (&generate("hash: undefined", "['sign']"), "SyntaxError"),
        (&generate("hash: 'MD5'", "['sign']"), "NotSupportedError"),
        (&generate("", "[]"), "SyntaxError"),
        (&generate("", "['encrypt']"), "SyntaxError"),
        (&import("{ kty: 'RSA' }"), "DataError"),
        (&import("{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }"), "DataError"),
        (&import("{ kty: 'RSA', n: '_'.repeat(9000), e: 'AQAB' }"), "DataError"),
        (&changed("e: 'AA'"), "DataError"),
        (&changed("e: 'AQ'"), "DataError"),
        (&changed("e: 'Ag'"), "DataError"),
        (&changed("e: '_'.repeat(300)"), "DataError"),
        (&changed("d: 'AA'"), "DataError"),
        (&changed("d: 'AQ'"), "DataError"),
        (&changed("d: '_'.repeat(300)"), "DataError"),
        (&changed("p: 'AA'"), "DataError"),
        (&changed("p: 'AQ'"), "DataError"),
        (&changed("p: undefined"), "DataError"),
        (&changed("p: 'Ag', q: 'Ag'"), "DataError"),
        (&changed("dp: undefined"), "DataError"),
        (&changed("dq: 'AQ'"), "DataError"),
        (&changed("qi: ''"), "DataError"),
        (&changed("n: '_'.repeat(341) + 'g'"), "DataError"),
        (&changed("n: '_'.repeat(341) + 'w'"), "DataError"),
        (
            "subtle.importKey('pkcs8', new Uint8Array(1000), { name: 'RSA-PSS', hash: 'SHA-1' }, true, ['sign'])",
            "DataError",
        ),
        (
            "subtle.importKey('spki', new Uint8Array(0), { name: 'RSA-PSS', hash: 'SHA-1' }, true, ['sign'])",
            "DataError",
        ),
        (
            "subtle.importKey('raw', new Uint8Array(0), { name: 'RSA-PSS', hash: 'SHA-1' }, true, ['sign'])",
            "NotSupportedError",
        ),
    ]);
}

#[test]
fn a_damaged_key_is_refused_or_works_but_ends_nothing() {
    let damaged = |name: &str, key: &str, formats: &str, step: u32| {
        format!(
            "(async () => {{
               const how = {{ name: '{name}', hash: 'SHA-256', namedCurve: 'P-256' }}, others = new Set();
               const key = await subtle.importKey('jwk', {key}, how, true, ['sign']);
               for (const format of {formats}) {{
                 const whole = new Uint8Array(await subtle.exportKey(format, key));
                 for (let at = 0; at < whole.length; at += {step}) {{
                   const part = whole.slice();
                   part[at] ^= 1 << at % 8;
                   for (const data of [part, whole.slice(0, at)]) {{
                     try {{
                       const key = await subtle.importKey(format, data, how, true, ['sign', 'verify']);
                       await (format === 'spki' ? subtle.verify(how, key, new Uint8Array(64), text('a')) : subtle.sign(how, key, text('a')));
                     }} catch (error) {{ others.add(error.name); }}
                   }}
                 }}
               }}
               others.delete('DataError');
               others.delete('OperationError');
               return others.size;
             }})()"
        )
    };
    let point = format!(
        "x: encoding.b64encode(bytes('{RFC_6979_X}'), 'rawurl'), y: encoding.b64encode(bytes('{RFC_6979_Y}'), 'rawurl')"
    );
    let public = format!("{{ kty: 'EC', crv: 'P-256', {point} }}");
    let private = format!(
        "{{ kty: 'EC', crv: 'P-256', {point}, d: encoding.b64encode(bytes('{RFC_6979_SECRET}'), 'rawurl') }}"
    );
    check(&[
        (&damaged("ECDSA", &public, "['spki']", 1), "0"),
        (&damaged("ECDSA", &private, "['pkcs8']", 1), "0"),
        (&damaged("RSASSA-PKCS1-v1_5", RFC_7515_KEY, "['pkcs8']", 5), "0"),
    ]);
}

#[test]
fn large_keys_fit_on_a_users_stack_however_deep_the_script_is() {
    let deep = "(async () => {
        const how = { name: 'RSA-PSS', hash: 'SHA-512', modulusLength: 4096, publicExponent: new Uint8Array([1, 0, 1]) };
        const floor = (depth) => { try { return floor(depth + 1); } catch (error) { return depth; } };
        const at = (depth, work) => depth === 0 ? work() : at(depth - 1, work);
        const depth = floor(0) - 20;
        const pair = await at(depth, () => subtle.generateKey(how, true, ['sign', 'verify']));
        const sign = { name: 'RSA-PSS', saltLength: 64 };
        const signature = await at(depth, () => subtle.sign(sign, pair.privateKey, text('a')));
        const curve = await at(depth, () => subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-521' }, true, ['sign', 'verify']));
        const curved = await at(depth, () => subtle.sign({ name: 'ECDSA', hash: 'SHA-512' }, curve.privateKey, text('a')));
        const gcm = { name: 'AES-GCM', length: 256, iv: new Uint8Array(12) };
        const sealed = await subtle.generateKey(gcm, true, ['encrypt'])
          .then((key) => at(depth, () => subtle.encrypt(gcm, key, new Uint8Array(1000))));
        const written = await at(depth, () => subtle.exportKey('jwk', pair.privateKey));
        await at(depth, () => subtle.importKey('jwk', written, how, true, ['sign']));
        return [depth > 500, curved.byteLength, sealed.byteLength, signature.byteLength, await at(depth, () => subtle.verify(sign, pair.publicKey, signature, text('a')))];
      })()";
    check(&[(deep, "[ true, 132, 1016, 512, true ]")]);
}

#[test]
fn an_error_is_reported_by_its_name_and_message() {
    let source = "export default async function () { await crypto.subtle.importKey('raw', new Uint8Array(3), 'AES-CBC', true, ['encrypt']); }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    let first = error.message.lines().next().unwrap_or_default();
    assert_eq!(first, "Uncaught (in promise) DataError: a key of AES has 16, 24 or 32 bytes, not 3");
    check(&[
        (
            "subtle.digest('MD5', text('')).catch((e) => JSON.stringify(e))",
            r#"{"message":"`MD5` is no hash: there are SHA-1, SHA-256, SHA-384 and SHA-512","name":"NotSupportedError"}"#,
        ),
        (
            "(() => { try { subtle.wrapKey(); } catch (error) { return error.message; } })()",
            "`crypto.subtle.wrapKey` is not supported, as in k6",
        ),
    ]);
}

const PRELUDE: &str = "import encoding from 'k6/encoding';
const subtle = crypto.subtle;
const bytes = (hex) => new Uint8Array(hex.match(/../g).map((pair) => parseInt(pair, 16)));
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const text = (text) => new TextEncoder().encode(text);";

/// RFC 6979 A.2.5.
const RFC_6979_X: &str = "60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6";
const RFC_6979_Y: &str = "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299";
const RFC_6979_SECRET: &str = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721";

/// RFC 7515 A.2.1.
const RFC_7515_KEY: &str = "{ kty: 'RSA', e: 'AQAB',
  n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
  d: 'Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ',
  p: '4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc',
  q: 'uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc',
  dp: 'BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0',
  dq: 'h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU',
  qi: 'IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U' }";
