//! TLS settings from the plan, what went wrong in a TLS session as a cause, and the sessions themselves.

mod agreement;
mod encode;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod names;
mod records;
mod rustls_stream;
mod session;
mod stream;

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::kx_group::{
    MLKEM768, MLKEM1024, SECP256R1, SECP256R1MLKEM768, SECP384R1, X25519, X25519MLKEM768,
};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use squall_measure::Cause;
use squall_plan::files;
use squall_plan::limits::PEM_FILE_BYTES_MAX;
use squall_plan::{ClientIdentity, HttpVersion, TlsPolicy, TlsVersions};

use crate::key_log::KeyLogFile;
use crate::{Error, Remedy};

pub(crate) use agreement::{Agreement, EarlyData};
use names::{group_name, suite_name};
use session::RecordLayer;
pub(crate) use session::TlsStream;

/// The TLS library's settings for a plan's policy.
pub(crate) fn client_config(policy: &TlsPolicy) -> Result<Arc<ClientConfig>, Error> {
    RecordLayer::from_environment()?;
    config_with(policy, policy.client_identity.as_ref().map(client_identity).transpose()?)
}

/// Whether TLS can be spoken as a policy asks; nothing is written.
pub(crate) fn check_tls(policy: &TlsPolicy) -> Result<(), Error> {
    client_config(&TlsPolicy { key_log: None, ..policy.clone() }).map(drop)
}

/// The same with a client certificate and key that are given as PEM text; `what` names where they come from.
pub(crate) fn config_with_identity(
    policy: &TlsPolicy,
    (cert, key): (&str, &str),
    what: &'static str,
) -> Result<Arc<ClientConfig>, Error> {
    let bad = |part: &str, error: &dyn std::fmt::Display| Error::Plan {
        problem: format!("the {part} of {what} is not usable: {error}"),
        help: "give PEM text, for example with open()".to_owned(),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(cert.as_bytes()).collect();
    let chain = chain.map_err(|error| bad("certificate", &error))?;
    if chain.is_empty() {
        return Err(bad("certificate", &"it contains none"));
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| bad("key", &error))?;
    config_with(policy, Some((chain, key)))
}

fn config_with(policy: &TlsPolicy, identity: Option<Identity>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider(policy)?);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions(policy.versions))
        .map_err(Error::Tls)?;
    let builder = if policy.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(NoVerification { provider }))
    } else {
        builder.with_root_certificates(root_store(policy)?)
    };
    let mut config = match identity {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = match &policy.alpn[..] {
        [] => vec![b"http/1.1".to_vec()],
        names => names.iter().map(|name| name.clone().into_bytes()).collect(),
    };
    // Every new connection stands for a new client, so it makes a full handshake.
    config.resumption = Resumption::disabled();
    // Sessions take the keys over, into this process alone.
    config.enable_secret_extraction = true;
    if let Some(path) = &policy.key_log {
        config.key_log = Arc::new(KeyLogFile::open(path)?);
    }
    Ok(Arc::new(config))
}

/// The same settings with the ALPN protocols of a version of HTTP, unless the plan names others. HTTP/1.1 is offered with HTTP/2
/// even where it will not do, so that a server that lacks HTTP/2 can say so.
pub(crate) fn for_version(
    config: &Arc<ClientConfig>,
    policy: &TlsPolicy,
    http: HttpVersion,
) -> Arc<ClientConfig> {
    let names: &[&[u8]] = match http {
        HttpVersion::Http11 => &[b"http/1.1"],
        HttpVersion::Http2 | HttpVersion::Auto => &[b"h2", b"http/1.1"],
        HttpVersion::Http3 => &[b"h3"],
    };
    if config.alpn_protocols == names || !policy.alpn.is_empty() {
        return Arc::clone(config);
    }
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = names.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// The cause of a failed TLS session.
pub(crate) fn cause_of(error: &rustls::Error) -> Cause {
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Cause::TlsCertificate
        }
        rustls::Error::AlertReceived(_) => Cause::TlsAlert,
        _ => Cause::TlsProtocol,
    }
}

fn provider(policy: &TlsPolicy) -> Result<CryptoProvider, Error> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = groups(&policy.groups)?;
    let ciphers = &policy.ciphers;
    if ciphers.is_empty() {
        // AES-128 first, as browsers and Go offer them; servers without a preference of their own take the first.
        provider.cipher_suites.sort_by_key(|suite| !suite_name(suite).contains("AES_128"));
        return Ok(provider);
    }
    let known = std::mem::take(&mut provider.cipher_suites);
    for name in ciphers {
        let suite = known.iter().find(|suite| suite_name(suite).eq_ignore_ascii_case(name));
        provider.cipher_suites.push(*suite.ok_or_else(|| unknown_cipher(name, &known))?);
    }
    Ok(provider)
}

/// The key-exchange groups of these names. A post-quantum key share doubles the ClientHello, so it is offered only when asked
/// for.
fn groups(names: &[String]) -> Result<Vec<&'static dyn SupportedKxGroup>, Error> {
    if names.is_empty() {
        return Ok(vec![X25519, SECP256R1, SECP384R1]);
    }
    let group = |name: &String| {
        let iana = GROUP_ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        let iana = iana.map_or(name.as_str(), |(_, iana)| iana);
        let known = GROUPS.iter().find(|group| group_name(**group).eq_ignore_ascii_case(iana));
        known.copied().ok_or_else(|| unknown_group(name))
    };
    names.iter().map(group).collect()
}

fn unknown_group(name: &str) -> Error {
    let names: Vec<String> = GROUPS.iter().map(|group| group_name(*group)).collect();
    let problem = format!("unknown key-exchange group `{name}`");
    Error::Option { option: "groups", problem, remedy: Remedy::OneOf(names) }
}

static GROUPS: &[&dyn SupportedKxGroup] =
    &[X25519, SECP256R1, SECP384R1, X25519MLKEM768, SECP256R1MLKEM768, MLKEM768, MLKEM1024];

/// NIST's and OpenSSL's names.
const GROUP_ALIASES: &[(&str, &str)] =
    &[("P-256", "secp256r1"), ("prime256v1", "secp256r1"), ("P-384", "secp384r1")];

fn unknown_cipher(name: &str, known: &[rustls::SupportedCipherSuite]) -> Error {
    let names: Vec<String> = known.iter().map(suite_name).collect();
    let problem = format!("unknown cipher suite `{name}`");
    Error::Option { option: "ciphers", problem, remedy: Remedy::OneOf(names) }
}

fn versions(versions: TlsVersions) -> &'static [&'static SupportedProtocolVersion] {
    match versions {
        TlsVersions::Any => rustls::ALL_VERSIONS,
        TlsVersions::Tls12 => ONLY_TLS12,
        TlsVersions::Tls13 => ONLY_TLS13,
    }
}

static ONLY_TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];
static ONLY_TLS13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

fn root_store(policy: &TlsPolicy) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    if policy.ca_files.is_empty() {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for path in &policy.ca_files {
        for certificate in certificates(path, "CA file")? {
            store.add(certificate).map_err(|error| {
                bad_content(
                    "CA file",
                    path,
                    &format_args!("contains a certificate that cannot be used: {error}"),
                )
            })?;
        }
    }
    Ok(store)
}

/// A client's certificate chain and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_identity(identity: &ClientIdentity) -> Result<Identity, Error> {
    let chain = certificates(&identity.cert_file, "client certificate")?;
    let path = &identity.key_file;
    let key = PrivateKeyDer::from_pem_slice(&pem_text("client key", path)?)
        .map_err(|error| pem_error("client key", path, error))?;
    Ok((chain, key))
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = pem_text(what, path)?;
    let items = CertificateDer::pem_slice_iter(&text);
    let certificates: Vec<_> =
        items.collect::<Result<_, _>>().map_err(|error| pem_error(what, path, error))?;
    if certificates.is_empty() {
        return Err(bad_content(what, path, &"contains no certificate"));
    }
    Ok(certificates)
}

fn pem_text(what: &'static str, path: &Path) -> Result<Vec<u8>, Error> {
    files::read(path, PEM_FILE_BYTES_MAX).map_err(|source| Error::PlanFile {
        what,
        path: path.to_owned(),
        source,
    })
}

fn pem_error(what: &'static str, path: &Path, error: pem::Error) -> Error {
    match error {
        pem::Error::Io(source) => Error::PlanFile { what, path: path.to_owned(), source },
        pem::Error::NoItemsFound => bad_content(what, path, &"holds none"),
        other => bad_content(what, path, &format_args!("is not valid PEM: {other}")),
    }
}

fn bad_content(what: &'static str, path: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::PlanFileContent { what, path: path.to_owned(), problem: problem.to_string() }
}

/// `--insecure`: accepts any certificate, and does not check the signature made with it either, which is a third of
/// the cost of a full handshake and proves nothing about a certificate that was not verified.
#[derive(Debug)]
struct NoVerification {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for NoVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
