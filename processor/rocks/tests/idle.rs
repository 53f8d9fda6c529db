//! An idle log needs little memory; alone in its process, because it looks at the whole of it.

use std::sync::mpsc::channel;

use everlog_log::Log;
use everlog_rocks::log::{Embedded, Options};

const RESIDENT_KIB_MAX: u64 = 40 << 10;

#[test]
fn an_idle_log_needs_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let log = Embedded::open(Options::new(dir.path())).unwrap();
    let (done, wait) = channel();
    log.append(0, vec!["a".into()], Box::new(move |outcome| done.send(outcome).unwrap()));
    wait.recv().unwrap().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident_kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    println!("resident: {resident_kib} KiB");
    assert!(resident_kib < RESIDENT_KIB_MAX, "{resident_kib} KiB");
}
