//! Certificates and keys in files of PEM. An error names the file, the setting that names the file, and what is wrong.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file of PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFile {
    /// Where it is.
    pub path: PathBuf,
    /// The setting that names it.
    pub setting: &'static str,
}

/// Why certificates cannot be used: the file, the setting that names it, and what is wrong.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl TlsError {
    /// Certificate and key do not belong together, or are of a kind that is not supported.
    pub fn pair(certificate: &PemFile, key: &PemFile, why: &rustls::Error) -> Self {
        Self(format!("{certificate} cannot be used with {key}: {why}"))
    }
}

impl fmt::Display for PemFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.path.display(), self.setting)
    }
}

impl PemFile {
    /// The certificates in it: one or more.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.read()?).collect();
        let found = found.map_err(|error| self.unusable(&error))?;
        if found.is_empty() { Err(self.missing("certificate")) } else { Ok(found) }
    }

    /// The certificates in it, as the authorities that others must be certified by.
    ///
    /// # Errors
    /// It cannot be read, has none, or has one that cannot be an authority.
    pub fn authorities(&self) -> Result<Arc<RootCertStore>, TlsError> {
        let mut roots = RootCertStore::empty();
        for authority in self.certificates()? {
            roots.add(authority).map_err(|error| self.unusable(&error))?;
        }
        Ok(Arc::new(roots))
    }

    /// The private key in it.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|_error| self.missing("private key"))
    }

    /// The error for a file whose content is wrong.
    pub fn unusable(&self, why: &impl fmt::Display) -> TlsError {
        TlsError(format!("{self} cannot be used: {why}"))
    }

    fn missing(&self, what: &'static str) -> TlsError {
        TlsError(format!("{self} holds no {what} in PEM"))
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        std::fs::read(&self.path).map_err(|error| TlsError(format!("{self} cannot be read: {error}")))
    }
}
