//! A node with certificates in files of the test's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use everlog_tests::certificates::{Authority, Certified};
use everlog_tests::server::{Server, free_address};
use rcgen::SanType;

use crate::client::Client;

/// A node that speaks TLS.
pub struct Secured {
    pub server: Server,
    pub authority: Authority,
    pub http_address: SocketAddr,
    dir: tempfile::TempDir,
}

impl Secured {
    /// Starts one, and waits until it serves.
    pub async fn start() -> anyhow::Result<Self> {
        let (dir, authority, http_address) =
            (tempfile::tempdir()?, Authority::new("authority"), free_address()?);
        show(dir.path(), &certified(&authority, http_address))?;
        std::fs::write(dir.path().join("ca.pem"), authority.certificate())?;
        let [certificate, key] = ["server.pem", "server.key"].map(|file| dir.path().join(file));
        let variables = [
            ("EVERLOG_TLS__CERTIFICATE_FILE", &*certificate.to_string_lossy()),
            ("EVERLOG_TLS__KEY_FILE", &*key.to_string_lossy()),
        ];
        let server = Server::begin(&dir.path().join("data"), &variables, http_address)?;
        let secured = Self { server, authority, http_address, dir };
        secured.calls()?.served().await?;
        Ok(secured)
    }

    /// A client of calls.
    pub fn calls(&self) -> anyhow::Result<Client> {
        Client::new(self.server.address(), &self.authority.certificate(), "h2")
    }

    /// A client of HTTP.
    pub fn face(&self) -> anyhow::Result<Client> {
        Client::new(self.http_address, &self.authority.certificate(), "http/1.1")
    }

    /// The file with its authority.
    pub fn authority_file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// Another certificate, in its files from now on.
    pub fn rotate(&self) -> anyhow::Result<Certified> {
        let next = certified(&self.authority, self.http_address);
        show(self.dir.path(), &next)?;
        Ok(next)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn certified(authority: &Authority, http_address: SocketAddr) -> Certified {
    let address = SanType::IpAddress(http_address.ip());
    authority.certify_as("localhost", |asked| asked.subject_alt_names.push(address))
}

fn show(dir: &Path, shown: &Certified) -> anyhow::Result<()> {
    std::fs::write(dir.join("server.pem"), &shown.certificate)?;
    Ok(std::fs::write(dir.join("server.key"), &shown.key)?)
}
