//! Certificates made on the spot, good and bad ones, and the TLS servers that show them.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_RSA_SHA256, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate authority of one test.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, both as PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub cert_pem: String,
    /// Its private key.
    pub key_pem: String,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Today, and for long.
    Current,
    /// It ended in 2020.
    Expired,
}

impl Authority {
    /// A new authority that is not trusted yet.
    #[expect(clippy::new_without_default, reason = "making keys is work, not a default value")]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names, so none is invalid");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "squall testkit");
        let key = KeyPair::generate().expect("a P-256 key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority can sign itself") }
    }

    /// The authority's own certificate, to be trusted by the client.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A server certificate for these names and addresses.
    pub fn issue(&self, names: &[&str], validity: Validity) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the tests use valid names");
        if validity == Validity::Expired {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        self.sign(&params, &KeyPair::generate().expect("a P-256 key"))
    }

    /// A certificate for `localhost` and `127.0.0.1` with an RSA key of 2048 bits.
    pub fn issue_rsa_for_loopback(&self) -> Identity {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let params = CertificateParams::new(names).expect("two valid names");
        self.sign(&params, &KeyPair::generate_for(&PKCS_RSA_SHA256).expect("an RSA key"))
    }

    fn sign(&self, params: &CertificateParams, key: &KeyPair) -> Identity {
        let cert = params.signed_by(key, &self.issuer).expect("the authority can sign");
        Identity { cert_pem: cert.pem(), key_pem: key.serialize_pem() }
    }

    /// A certificate for `localhost` and `127.0.0.1` that is valid today.
    pub fn issue_for_loopback(&self) -> Identity {
        self.issue(&["localhost", "127.0.0.1"], Validity::Current)
    }
}

impl Identity {
    /// A server that shows this certificate to anyone, speaks these TLS versions, and asks for no client certificate.
    pub fn server_config(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> ServerConfig {
        server_config_builder(versions)
            .with_no_client_auth()
            .with_single_cert(self.chain(), self.key())
            .expect("the key belongs to the certificate")
    }

    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        let chain = CertificateDer::pem_slice_iter(self.cert_pem.as_bytes());
        chain.collect::<Result<_, _>>().expect("PEM of our own making")
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).expect("PEM of our own making")
    }
}

/// A server's configuration up to the choice of client authentication.
pub(crate) fn server_config_builder(
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("the provider speaks every version of rustls")
}
