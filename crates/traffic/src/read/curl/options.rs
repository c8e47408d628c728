//! The options of curl (8.x): which take a value, and which say nothing about the request.

/// What an option is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CurlOption {
    /// Its whole name.
    pub(super) name: &'static str,
    pub(super) takes_value: bool,
    pub(super) effect: Effect,
}

/// What it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The request.
    Request,
    /// How curl connects, or what it does with responses: the replay has its own flags.
    Connection,
    /// What is shown or saved.
    Output,
}

/// The option of that name: `-X`, `--request`, `--no-buffer`, or the beginning of one: `--sil`.
pub(super) fn option(name: &str) -> Option<CurlOption> {
    let all = || {
        let of_row = |(names, takes_value, effect): &Row| {
            let option = |name| CurlOption { name, takes_value: *takes_value, effect: *effect };
            names.split_ascii_whitespace().map(option).collect::<Vec<_>>()
        };
        TABLE.iter().flat_map(of_row)
    };
    let of = |name: &str| all().find(|option| option.name == name);
    let by_beginning = || {
        let mut found = all().filter(|option| name.len() > 3 && option.name.starts_with(name));
        found.next().filter(|_| found.next().is_none())
    };
    let negated = || {
        let positive = of(&format!("--{}", name.strip_prefix("--no-")?))?;
        (!positive.takes_value).then_some(CurlOption { effect: Effect::Output, ..positive })
    };
    of(name).or_else(negated).or_else(by_beginning)
}

type Row = (&'static str, bool, Effect);

const TABLE: &[Row] = &[
    (
        "-X --request --url -A --user-agent -e --referer -b --cookie -u --user --oauth2-bearer -H --header \
         -d --data --data-ascii --data-binary --data-raw --data-urlencode --json -F --form --form-string \
         -T --upload-file -r --range --url-query --request-target --aws-sigv4 -K --config --etag-compare \
         -z --time-cond -C --continue-at --proto-default",
        true,
        Effect::Request,
    ),
    (
        "-I --head -G --get --compressed --digest --ntlm --negotiate --anyauth --basic -n --netrc --netrc-optional \
         -0 --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --http3-only",
        false,
        Effect::Request,
    ),
    (
        "-x --proxy --preproxy --proxy1.0 -U --proxy-user --proxy-header --proxy-cacert --proxy-cert --socks4 --socks4a \
         --socks5 --socks5-hostname --noproxy --cacert --capath -E --cert --cert-type --key --key-type --pass \
         --pinnedpubkey --ciphers --tls13-ciphers --curves --tls-max --resolve --connect-to --interface --unix-socket \
         --abstract-unix-socket --dns-servers --doh-url --netrc-file --max-redirs --retry --rate --haproxy-clientip",
        true,
        Effect::Connection,
    ),
    (
        "-k --insecure -L --location --location-trusted -p --proxytunnel --haproxy-protocol --proxy-insecure --retry-all-errors \
         --retry-connrefused --post301 --post302 --post303",
        false,
        Effect::Connection,
    ),
    (
        "-c --cookie-jar -D --dump-header -o --output --output-dir -w --write-out -m --max-time --connect-timeout \
         --stderr --trace --trace-ascii --libcurl --limit-rate -Y --speed-limit -y --speed-time --keepalive-time \
         --keepalive-cnt --max-filesize --retry-delay --retry-max-time --alt-svc --hsts --etag-save --create-file-mode \
         --happy-eyeballs-timeout-ms --expect100-timeout --parallel-max --local-port --proto --proto-redir --dns-interface \
         --dns-ipv4-addr --dns-ipv6-addr --crlfile --delegation --engine --egd-file --random-file --login-options \
         --service-name --trace-config --variable --ip-tos --vlan-priority --tlsauthtype --tlsuser --tlspassword \
         -h --help --ech --sasl-authzid",
        true,
        Effect::Output,
    ),
    (
        "-s --silent -S --show-error -v --verbose -i --include -f --fail --fail-with-body --fail-early -N --no-buffer \
         -O --remote-name --remote-name-all -J --remote-header-name -R --remote-time -# --progress-bar \
         --no-progress-meter --progress-meter --styled-output --xattr --remove-on-error --create-dirs --no-clobber --clobber -q --disable \
         -g --globoff --path-as-is -j --junk-session-cookies -4 --ipv4 -6 --ipv6 -1 --tlsv1 --tlsv1.0 --tlsv1.1 \
         --tlsv1.2 --tlsv1.3 -2 --sslv2 -3 --sslv3 --ssl --ssl-reqd --ssl-no-revoke --ssl-revoke-best-effort \
         --ssl-allow-beast --cert-status --false-start --alpn --npn --sessionid --keepalive --tcp-fastopen \
         --tcp-nodelay --tr-encoding --raw --ignore-content-length --http0.9 -Z --parallel --parallel-immediate -V --version \
         -M --manual --trace-time --trace-ids --suppress-connect-headers --disallow-username-in-url --form-escape -a --append \
         -B --use-ascii --crlf --metalink --buffer --ca-native --compressed-ssh --mptcp --skip-existing --doh-insecure",
        false,
        Effect::Output,
    ),
];
