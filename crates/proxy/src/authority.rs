//! A certificate authority of one's own: made when it is first wanted, kept on disk, trusted by whoever is told to.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::Error;

/// The authority, and the servers it has vouched for.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem_path: PathBuf,
    configs: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("pem_path", &self.pem_path).finish_non_exhaustive()
    }
}

impl Authority {
    /// The authority that lies in this folder, made there when there is none. Its key is readable by its owner alone.
    ///
    /// # Errors
    /// When its files cannot be read or written, or are no certificate and key.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let (pem_path, key_path) = (folder.join("squall-ca.pem"), folder.join("squall-ca.key"));
        if !pem_path.exists() {
            make(folder, &pem_path, &key_path)?;
        }
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
        };
        let key =
            KeyPair::from_pem(&read(&key_path)?).map_err(|error| tls("read the authority's key", &error))?;
        // The certificate that clients trust was made of the same parameters and this key.
        let issuer = Issuer::new(params()?, key);
        Ok(Self { issuer, pem_path, configs: Mutex::default() })
    }

    /// The file with its certificate, to be trusted by clients.
    pub fn pem_path(&self) -> &Path {
        &self.pem_path
    }

    /// A TLS server for this host.
    pub(crate) fn config_for(&self, host: &str) -> Result<Arc<ServerConfig>, Error> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(host) {
            return Ok(Arc::clone(config));
        }
        if configs.len() >= HOST_COUNT_MAX {
            configs.clear();
        }
        let config = Arc::new(self.issue(host)?);
        configs.insert(host.to_owned(), Arc::clone(&config));
        Ok(config)
    }

    fn issue(&self, host: &str) -> Result<ServerConfig, Error> {
        let what = "make a certificate";
        let key = KeyPair::generate().map_err(|error| tls(what, &error))?;
        let params = CertificateParams::new(vec![host.to_owned()]).map_err(|error| tls(what, &error))?;
        let cert = params.signed_by(&key, &self.issuer).map_err(|error| tls(what, &error))?;
        let chain: Vec<CertificateDer<'static>> = vec![cert.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| tls(what, &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn make(folder: &Path, pem_path: &Path, key_path: &Path) -> Result<(), Error> {
    let what = "make a certificate authority";
    let key = KeyPair::generate().map_err(|error| tls(what, &error))?;
    let params = params()?;
    let cert = params.self_signed(&key).map_err(|error| tls(what, &error))?;
    let os = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    fs::create_dir_all(folder).map_err(os(folder))?;
    let private = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(key_path);
    private.and_then(|mut file| file.write_all(key.serialize_pem().as_bytes())).map_err(os(key_path))?;
    fs::write(pem_path, cert.pem()).map_err(os(pem_path))
}

/// What the authority's certificate says.
fn params() -> Result<CertificateParams, Error> {
    let mut params =
        CertificateParams::new(Vec::new()).map_err(|error| tls("make a certificate authority", &error))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "squall record (local)");
    Ok(params)
}

pub(crate) fn tls(what: &'static str, error: &dyn std::fmt::Display) -> Error {
    Error::Tls { what, reason: error.to_string() }
}

/// Servers with a certificate of their own that are kept.
const HOST_COUNT_MAX: usize = 10_000;
