//! A file in the data directory with the address of the node that uses it, for the doctor.
//!
//! It is valid as long as the directory is locked. A node leaves it behind, and the next one writes its own. Each
//! start has another instance, which the node sends with its responses. A server that sends another instance is
//! another server.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The header with the instance.
pub const INSTANCE_HEADER: &str = "everlog-instance";
/// Its name in the data directory.
const NAME: &str = "node.json";

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFile {
    /// Random, one for each start.
    pub instance: String,
    /// Where it serves metrics and health.
    pub metrics_address: SocketAddr,
}

impl NodeFile {
    /// Replaces the file.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self, data_dir: &Path) -> std::io::Result<()> {
        std::fs::write(data_dir.join(NAME), serde_json::to_vec(self)?)
    }

    /// Reads the file; none where it is missing or incomplete.
    pub fn read(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data_dir.join(NAME)).ok()?).ok()
    }

    /// Where health is served, for a client on the same machine.
    pub fn health_address(&self) -> SocketAddr {
        reachable(self.metrics_address)
    }
}

/// An address that is listened at, as a client on the same machine reaches it.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_reads_back_and_half_of_one_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(NodeFile::read(dir.path()), None);
        let metrics_address = "0.0.0.0:9233".parse().expect("an address");
        let file = NodeFile { instance: "one".into(), metrics_address };
        file.write(dir.path()).expect("ours");
        assert_eq!(NodeFile::read(dir.path()).as_ref(), Some(&file));
        assert_eq!(file.health_address().to_string(), "127.0.0.1:9233");
        std::fs::write(dir.path().join(NAME), "{\"instance\"").expect("ours");
        assert_eq!(NodeFile::read(dir.path()), None);
    }
}
