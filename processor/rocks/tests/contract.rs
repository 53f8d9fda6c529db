//! The embedded home passes the contract of every log, whatever its sync and number of partitions.

#![allow(clippy::unwrap_used, reason = "a test ends at the first thing that is not as expected")]

use everlog_log::contract::{self, Backend};
use everlog_rocks::log::{Embedded, Options, Sync};

struct Dir {
    dir: tempfile::TempDir,
    partitions: u32,
    sync: Sync,
}

impl Backend for Dir {
    type Home = Embedded;
    fn open(&self) -> Embedded {
        let options =
            Options { partitions: self.partitions, sync: self.sync, ..Options::new(self.dir.path()) };
        Embedded::open(options).unwrap()
    }
}

#[test]
fn the_embedded_log_keeps_the_contract() {
    contract::check(|| Dir { dir: tempfile::tempdir().unwrap(), partitions: 8, sync: Sync::Always });
}

#[test]
fn the_embedded_log_keeps_the_contract_without_syncs_and_with_odd_partitions() {
    contract::check(|| Dir { dir: tempfile::tempdir().unwrap(), partitions: 3, sync: Sync::Never });
}
