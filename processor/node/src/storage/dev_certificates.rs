//! Certificates for development: an authority of one's own and a certificate for this machine, in the data directory. The
//! authority's key is thrown away once it has signed, so that nobody can make others that its clients trust.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use everlog_config::Tls;
use everlog_listen::tls::ServerTls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// The folder in the data directory.
const FOLDER: &str = "tls";
/// How long certificates are valid.
const VALID: Duration = Duration::days(365);
/// A certificate that ends sooner is made anew at the next start.
const LEFT_S_MIN: i64 = 30 * 24 * 3_600;
/// A client's clock may be behind by this.
const CLOCK_BEHIND: Duration = Duration::hours(1);
/// The names that every certificate has.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The files of certificates for development.
pub struct DevCertificates {
    /// What clients trust.
    pub authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    /// The names that the certificate is for, a line each.
    names: PathBuf,
}

impl DevCertificates {
    /// Those of a data directory; made where there are none, or where they end soon or are for other addresses.
    ///
    /// # Errors
    /// The directory cannot be written, or the system gives no random bytes.
    pub fn provide(data_dir: &Path, addresses: &[IpAddr]) -> Result<Self> {
        let dir = data_dir.join(FOLDER);
        let file = |name| dir.join(name);
        let files = Self {
            authority: file("ca.pem"),
            certificate: file("server.pem"),
            key: file("server.key"),
            names: file("names"),
        };
        let mut names: Vec<String> = NAMES.map(str::to_owned).into();
        for address in addresses.iter().filter(|address| !address.is_unspecified()) {
            let name = address.to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !files.are_usable(&names) {
            files.make(&dir, &names).with_context(|| format!("certificates in {}", dir.display()))?;
        }
        Ok(files)
    }

    /// Settings by which a node serves with them.
    pub fn settings(&self) -> Tls {
        Tls {
            certificate_file: Some(self.certificate.clone()),
            key_file: Some(self.key.clone()),
            ..Tls::default()
        }
    }

    fn are_usable(&self, names: &[String]) -> bool {
        let options = self.settings().options().expect("both files are set");
        let lasts = |tls: std::sync::Arc<ServerTls>| {
            tls.certificates().iter().all(|one| one.left_s(SystemTime::now()) >= LEFT_S_MIN)
        };
        self.authority.exists()
            && fs::read_to_string(&self.names).is_ok_and(|kept| kept.lines().eq(names))
            && ServerTls::new(options).is_ok_and(lasts)
    }

    fn make(&self, dir: &Path, names: &[String]) -> Result<()> {
        let now = OffsetDateTime::now_utc();
        let lasting = |params: &mut CertificateParams| {
            (params.not_before, params.not_after) = (now - CLOCK_BEHIND, now + VALID);
        };
        let mut authority = CertificateParams::default();
        lasting(&mut authority);
        authority.distinguished_name.push(DnType::CommonName, "Everlog development authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut server = CertificateParams::new(names)?;
        lasting(&mut server);
        server.distinguished_name.push(DnType::CommonName, "Everlog development server");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // The names come last: without them the next start makes all files anew.
        remove(&self.names)?;
        write(&self.key, &key.serialize_pem(), 0o600)?;
        write(&self.certificate, &certificate.pem(), 0o644)?;
        write(&self.authority, &authority.pem(), 0o644)?;
        write(&self.names, &(names.join("\n") + "\n"), 0o644)?;
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Replaces a file.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    remove(path)?;
    let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn certificates_stay_while_they_are_good() {
        let dir = tempfile::tempdir().expect("a directory");
        let provided = |addresses: &[&str]| {
            let addresses: Vec<_> = addresses.iter().map(|one| one.parse().expect("an address")).collect();
            let files = DevCertificates::provide(dir.path(), &addresses).expect("it can be written");
            let read = |path| fs::read_to_string(path).expect("it is there");
            [read(&files.authority), read(&files.certificate), read(&files.key)]
        };
        let first = provided(&["127.0.0.1"]);
        assert_eq!(provided(&["0.0.0.0", "::1"]), first, "it has no more names than before");
        let second = provided(&["10.0.0.1", "127.0.0.1"]);
        assert!(first.iter().zip(&second).all(|(first, second)| first != second), "another name");
        assert_eq!(provided(&["10.0.0.1"]), second);
        for file in ["names", "ca.pem", "server.pem", "server.key"] {
            fs::remove_file(dir.path().join(FOLDER).join(file)).expect("it was there");
            let now = provided(&["10.0.0.1"]);
            assert_eq!(provided(&["10.0.0.1"]), now);
        }
        let key = fs::metadata(dir.path().join("tls/server.key")).expect("it is there");
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
        for file in fs::read_dir(dir.path().join(FOLDER)).expect("it is there") {
            let text = fs::read_to_string(file.expect("it is there").path()).expect("text");
            assert!(text.matches("PRIVATE KEY").count() <= 2, "one key, the server's");
        }
    }
}
