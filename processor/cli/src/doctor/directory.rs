//! The doctor's checks of the data directory of an embedded log.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use everlog_config::Config;
use everlog_config::data_dir::{DataDir, LogLocation};
use everlog_config::node_file::NodeFile;
use everlog_log::Error;
use everlog_rocks::log::Embedded;

use crate::doctor::{Finding, index};
use crate::http_client::{HttpNode, HttpOptions, NodeUrl};

/// Checks it. If no node runs, the log is opened as a node would open it. Otherwise the node is asked.
pub fn look(config: &Config) -> Vec<Finding> {
    let dir = &config.server.data_dir;
    let Ok(metadata) = std::fs::metadata(dir) else {
        let found = format!("{} is not there", dir.display());
        return vec![Finding::warn(
            "directory",
            found,
            "a node makes it at its start; else name another (--data-dir)",
        )];
    };
    let mode = metadata.permissions().mode() & 0o777;
    let mut findings = vec![if mode & 0o077 == 0 {
        Finding::good("directory", format!("{} is its owner's alone", dir.display()))
    } else {
        let found = format!(
            "{} can be entered by others (mode {mode:o}), and keys and payloads are in it",
            dir.display()
        );
        Finding::warn("directory", found, format!("chmod 700 {}", dir.display()))
    }];
    let data = DataDir::lasting(dir);
    findings.push(room(dir, data.options(config).free_bytes_kept()));
    match data.log_location() {
        Some(LogLocation::Embedded) => {}
        Some(LogLocation::Kafka) => {
            let found = "it belongs to a node whose log is on Kafka";
            findings.push(Finding::warn("log", found, "name its brokers (--kafka-bootstrap, --config)"));
            findings.extend(index::of_rows(&data.rows()));
            return findings;
        }
        None => {
            findings.push(Finding::good("log", "there is none yet: a node makes it at its start"));
            return findings;
        }
    }
    match Embedded::open(data.options(config)) {
        Ok(log) => findings.extend([recovered(&log), index::of_log(&log)]),
        Err(Error::Locked { .. }) => findings.push(node(dir)),
        Err(error) => {
            let way_out = format!("{}", data.explain(error.clone()));
            findings.push(Finding::fail("log", error.to_string(), way_out));
        }
    }
    findings
}

fn room(dir: &Path, kept_bytes: u64) -> Finding {
    match rustix::fs::statvfs(dir) {
        Ok(stat) => judge_room(stat.f_bavail.saturating_mul(stat.f_frsize), kept_bytes),
        Err(error) => Finding::fail("disk", format!("{}: {error}", dir.display()), "mount it"),
    }
}

/// The log refuses writes below `kept_bytes` of free space.
fn judge_room(free_bytes: u64, kept_bytes: u64) -> Finding {
    let found = format!("{} MiB are free on its disk", free_bytes >> 20);
    let fix = format!(
        "make room: below {} MiB nothing new is taken (log.free_bytes_min, memory.database_bytes and 8 MiB)",
        kept_bytes >> 20
    );
    if free_bytes < kept_bytes {
        Finding::fail("disk", found, fix)
    } else if free_bytes < kept_bytes.saturating_mul(2) {
        Finding::warn("disk", found, fix)
    } else {
        Finding::good("disk", found)
    }
}

fn recovered(log: &Embedded) -> Finding {
    let found = log.recovery();
    let (torn, unapplied) = (found.torn_bytes, found.unapplied_records);
    let found =
        format!("no node runs; it opens whole, {unapplied} records are not applied yet, {torn} torn bytes");
    Finding::good("log", found)
}

/// Asks the node that owns the directory. Another server at its address is not reported on.
fn node(dir: &Path) -> Finding {
    let about = "node";
    let Some(file) = NodeFile::read(dir) else {
        let found = "one runs on it, and does not say there where it is reached";
        return Finding::warn(about, found, "ask it for /health/ready (server.metrics_address)");
    };
    let address = file.health_address();
    let node = HttpNode::new(NodeUrl::new(address, false), HttpOptions::default());
    match node.get("/health/ready") {
        Ok(answer) if answer.instance.as_ref() != Some(&file.instance) => {
            let found = format!("one runs on it, and it is another server that answers at {address}");
            Finding::warn(about, found, "it starts or ends: look again, and at its log lines")
        }
        Ok(answer) if answer.status == 200 => {
            Finding::good(about, format!("one runs on it, and is ready ({address})"))
        }
        Ok(answer) => {
            let found = format!(
                "one runs on it, and is not ready (http://{address}/health/ready: {})",
                answer.status
            );
            Finding::fail(about, found, "its log lines and that page say why")
        }
        Err(_error) => {
            let found = format!("one runs on it, and does not tell how it fares at {address}");
            Finding::warn(about, found, "it starts or ends, or hangs: look again, and at its log lines")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use everlog_config::node_file::INSTANCE_HEADER;

    use super::*;
    use crate::doctor::CheckVerdict;

    fn verdicts(config: &Config) -> Vec<(&'static str, CheckVerdict)> {
        look(config).iter().map(|finding| (finding.about, finding.verdict)).collect()
    }

    #[test]
    fn a_directory_is_opened_only_where_no_node_has_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        config.server.data_dir = dir.path().join("data");
        assert_eq!(verdicts(&config), [("directory", CheckVerdict::Warn)]);
        let held = DataDir::lasting(&config.server.data_dir).open(&config).expect("it is new");
        let good = [("directory", CheckVerdict::Good), ("disk", CheckVerdict::Good)];
        assert_eq!(verdicts(&config), [&good[..], &[("node", CheckVerdict::Warn)]].concat());
        drop(held);
        // Nobody has served its partitions.
        let opened = [("log", CheckVerdict::Good), ("index", CheckVerdict::Warn)];
        assert_eq!(verdicts(&config), [&good[..], &opened].concat());
        std::fs::set_permissions(&config.server.data_dir, PermissionsExt::from_mode(0o755)).expect("ours");
        assert_eq!(verdicts(&config)[0], ("directory", CheckVerdict::Warn));
        config.log.free_bytes_min = u64::MAX / 4;
        assert!(verdicts(&config).contains(&("disk", CheckVerdict::Fail)));
    }

    /// A server that answers every request as a healthy node of this instance.
    fn healthy(instance: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it has one");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 4_096];
                let _ = stream.read(&mut request);
                let head = format!("HTTP/1.1 200 OK\r\n{INSTANCE_HEADER}: {instance}\r\nContent-Length: 0");
                let _ = stream.write_all(format!("{head}\r\n\r\n").as_bytes());
            }
        });
        address
    }

    #[test]
    fn another_server_is_never_reported_on() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        config.server.data_dir = dir.path().join("data");
        let _held = DataDir::lasting(&config.server.data_dir).open(&config).expect("it is new");
        let (own, other) = (healthy("own"), healthy("other"));
        config.server.metrics_address = other;
        let finding = || look(&config).pop().expect("the node is looked at last");
        let says = |finding: &Finding, address| finding.found.contains(&format!("is ready ({address})"));
        let without = finding();
        assert_eq!((without.about, without.verdict), ("node", CheckVerdict::Warn));
        assert!(!without.found.contains(&other.to_string()), "{without:?}");
        let file = |metrics_address| NodeFile { instance: "own".into(), metrics_address };
        file(other).write(&config.server.data_dir).expect("ours");
        let mistaken = finding();
        assert!(mistaken.verdict == CheckVerdict::Warn && !says(&mistaken, other), "{mistaken:?}");
        file(own).write(&config.server.data_dir).expect("ours");
        let asked = finding();
        assert!(asked.verdict == CheckVerdict::Good && says(&asked, own), "{asked:?}");
        file("127.0.0.1:1".parse().expect("an address")).write(&config.server.data_dir).expect("ours");
        assert_eq!(finding().verdict, CheckVerdict::Warn);
    }

    #[test]
    fn the_disk_is_judged_by_what_the_log_keeps_free() {
        let kept_bytes = DataDir::lasting(Path::new("x")).options(&Config::default()).free_bytes_kept();
        let judged = |free_mib: u64| judge_room(free_mib << 20, kept_bytes);
        assert_eq!(
            [263, 264, 528].map(|mib| judged(mib).verdict),
            [CheckVerdict::Fail, CheckVerdict::Warn, CheckVerdict::Good]
        );
        assert!(judged(100).fix.is_some_and(|fix| fix.starts_with("make room: below 264 MiB ")));
    }

    #[test]
    fn no_log_is_made_by_looking_for_one() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).expect("ours");
        let mut config = Config::default();
        config.server.data_dir = dir.path().into();
        let good = [("directory", CheckVerdict::Good), ("disk", CheckVerdict::Good)];
        assert_eq!(verdicts(&config), [&good[..], &[("log", CheckVerdict::Good)]].concat());
        assert_eq!(std::fs::read_dir(dir.path()).expect("ours").count(), 0);
        std::fs::create_dir(dir.path().join("rows")).expect("ours");
        assert_eq!(verdicts(&config), [&good[..], &[("log", CheckVerdict::Warn)]].concat());
        assert_eq!(std::fs::read_dir(dir.path()).expect("ours").count(), 1);
    }

    #[test]
    fn a_log_that_cannot_be_opened_fails_with_the_way_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        config.server.data_dir = dir.path().into();
        drop(DataDir::lasting(dir.path()).open(&config).expect("it is new"));
        config.log.partitions = 3;
        let findings = look(&config);
        let log = findings.iter().find(|finding| finding.about == "log").expect("it was looked at");
        assert_eq!(log.verdict, CheckVerdict::Fail);
        assert!(log.fix.as_deref().unwrap_or_default().contains("set it to 8"), "{log:?}");
    }
}
