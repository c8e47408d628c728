//! A local certificate authority: created when first needed, kept on disk, trusted by the clients that are configured to.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use squall_plan::files;
use squall_plan::limits::PEM_FILE_BYTES_MAX;

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
        if !pem_path.exists() || is_expired(&pem_path) {
            make(folder, &pem_path, &key_path)?;
        }
        let read = |path: &Path| {
            files::read_text(path, PEM_FILE_BYTES_MAX)
                .map_err(|source| Error::File { path: path.to_owned(), source })
        };
        let key =
            KeyPair::from_pem(&read(&key_path)?).map_err(|error| tls("read the authority's key", &error))?;
        check(&read(&pem_path)?, &key)?;
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
        let (chain, key) = self.certificate(host)?;
        let mut config = builder()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| tls(CERTIFICATE, &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// A TLS server for QUIC, where one socket is for all names; `default_name`: for clients that name none.
    pub(crate) fn quic_config(self: &Arc<Self>, default_name: String) -> Result<ServerConfig, Error> {
        let names = Names { authority: Arc::clone(self), default_name, keys: Mutex::default() };
        let builder = builder().map_err(|error| tls(CERTIFICATE, &error))?;
        Ok(builder.with_no_client_auth().with_cert_resolver(Arc::new(names)))
    }

    fn certificate(
        &self,
        host: &str,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let what = CERTIFICATE;
        let key = KeyPair::generate().map_err(|error| tls(what, &error))?;
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(|error| tls(what, &error))?;
        set_validity(&mut params);
        let cert = params.signed_by(&key, &self.issuer).map_err(|error| tls(what, &error))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((vec![cert.der().clone()], key))
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier>, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
}

/// Certificates by the name that a client asks for.
#[derive(Debug)]
struct Names {
    authority: Arc<Authority>,
    default_name: String,
    keys: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for Names {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or(&self.default_name);
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(name) {
            return Some(Arc::clone(key));
        }
        if keys.len() >= HOST_COUNT_MAX {
            keys.clear();
        }
        let (chain, key) = self.authority.certificate(name).ok()?;
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).ok()?;
        let key = Arc::new(key);
        keys.insert(name.to_owned(), Arc::clone(&key));
        Some(key)
    }
}

fn make(folder: &Path, pem_path: &Path, key_path: &Path) -> Result<(), Error> {
    let what = "make a certificate authority";
    fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
    let key = match kept_key(key_path)? {
        Some(key) => key,
        None => {
            let key = KeyPair::generate().map_err(|error| tls(what, &error))?;
            write_whole(key_path, &key.serialize_pem(), 0o600)?;
            key
        }
    };
    let cert = params()?.self_signed(&key).map_err(|error| tls(what, &error))?;
    write_whole(pem_path, &cert.pem(), 0o644)
}

/// A key whose certificate is not there. One that was not written to its end is none.
fn kept_key(path: &Path) -> Result<Option<KeyPair>, Error> {
    match files::read_text(path, PEM_FILE_BYTES_MAX) {
        Ok(pem) => Ok(KeyPair::from_pem(&pem).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File { path: path.to_owned(), source }),
    }
}

/// Clients trust the certificate in the file: it must be whole, and of this key.
fn check(pem: &str, key: &KeyPair) -> Result<(), Error> {
    let what = "read the authority's certificate";
    let cert = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| tls(what, &error))?;
    let public = key.subject_public_key_info();
    match cert.windows(public.len()).any(|part| part == public) {
        true => Ok(()),
        false => Err(tls(what, &"it is of another key")),
    }
}

/// Written whole or not at all.
fn write_whole(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let written = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.as_file().sync_data()?;
            Ok(file.persist(path)?)
        });
    written.map(drop).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// What the authority's certificate says.
fn params() -> Result<CertificateParams, Error> {
    let mut params =
        CertificateParams::new(Vec::new()).map_err(|error| tls("make a certificate authority", &error))?;
    set_validity(&mut params);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "squall record (local)");
    Ok(params)
}

/// A year from now; an hour back, because clocks differ.
fn set_validity(params: &mut CertificateParams) {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_before = now - Duration::from_secs(3600);
    params.not_after = now + VALIDITY;
}

/// How long the authority, and what it vouches for, is to be trusted.
const VALIDITY: Duration = Duration::from_secs(365 * 86_400);

/// Whether the certificate in a file was made so long ago that clients refuse it.
fn is_expired(path: &Path) -> bool {
    let age = path.metadata().and_then(|metadata| metadata.modified()).map(|made| made.elapsed());
    matches!(age, Ok(Ok(age)) if age >= VALIDITY)
}

pub(crate) fn tls(what: &'static str, error: &dyn std::fmt::Display) -> Error {
    Error::Tls { what, reason: error.to_string() }
}

/// What fails where a server's certificate cannot be made.
const CERTIFICATE: &str = "make a certificate";

/// Servers with a certificate of their own that are kept.
const HOST_COUNT_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_to_its_end_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (pem, key) = (folder.path().join("squall-ca.pem"), folder.path().join("squall-ca.key"));
        let written = || (fs::read(&pem).unwrap(), fs::read(&key).unwrap());
        fs::write(&key, "-----BEGIN PRIVATE KEY-----\nMIG").unwrap();
        Authority::open(folder.path()).unwrap();
        let first = written();
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        Authority::open(folder.path()).unwrap();
        assert_eq!(written(), first);
        fs::remove_file(&pem).unwrap();
        Authority::open(folder.path()).unwrap();
        assert_eq!(written().1, first.1, "the key is kept");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_certificate_must_be_whole_and_of_the_key() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Authority::open(folder.path()).unwrap();
        Authority::open(other.path()).unwrap();
        let pem = folder.path().join("squall-ca.pem");
        let whole = fs::read(&pem).unwrap();
        for bytes in
            [&b""[..], &whole[..whole.len() / 2], &fs::read(other.path().join("squall-ca.pem")).unwrap()]
        {
            fs::write(&pem, bytes).unwrap();
            let error = Authority::open(folder.path()).unwrap_err();
            assert!(error.to_string().starts_with("read the authority's certificate: "), "{error}");
        }
    }

    #[test]
    fn an_authority_is_valid_for_a_year_from_its_making() {
        let folder = tempfile::tempdir().unwrap();
        Authority::open(folder.path()).unwrap();
        let pem = folder.path().join("squall-ca.pem");
        let days_left = |days: u64| {
            let mut openssl = std::process::Command::new("openssl");
            openssl.args(["x509", "-noout", "-checkend", &(days * 86_400).to_string(), "-in"]).arg(&pem);
            openssl.output().unwrap().status.success()
        };
        assert!(days_left(364) && !days_left(366));
    }
}
