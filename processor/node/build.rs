//! Puts the versions of what the binary is built from where `everlog --version` finds them.

use std::path::Path;

/// What a bug report should name.
const NAMED: &[&str] = &[
    "rocksdb",
    "librocksdb-sys",
    "rdkafka",
    "rdkafka-sys",
    "lz4-sys",
    "mimalloc",
    "libmimalloc-sys",
    "tokio",
    "tonic",
    "h2",
    "prost",
];

fn main() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).expect("a workspace has a lock file");
    let versions: Vec<String> = NAMED
        .iter()
        .filter_map(|name| version(&text, name).map(|version| format!("{name} {version}")))
        .collect();
    println!("cargo:rustc-env=EVERLOG_BUILT_FROM={}", versions.join(", "));
}

/// The version of a package in a lock file.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}
