//! Puts the commit and the versions of what the binary is built from where `everlog --version` finds them. Only the binary's own
//! crate is compiled again for another commit.

use std::path::Path;
use std::process::Command;

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

/// Names the commit where the clone is not at hand, as in the build of an image.
const COMMIT: &str = "EVERLOG_COMMIT";

/// What the binary is compiled from. A change elsewhere does not make a commit a modified one.
const SOURCES: &[&str] =
    &["processor", "connectors", "schemas", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = root.join("Cargo.lock");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let named = std::env::var(COMMIT).ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(|| commit(&root)).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env={COMMIT}={commit}");
    println!("cargo:rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock).expect("a workspace has a lock file");
    let versions: Vec<String> = NAMED
        .iter()
        .filter_map(|name| version(&text, name).map(|version| format!("{name} {version}")))
        .collect();
    println!("cargo:rustc-env=EVERLOG_BUILT_FROM={}", versions.join(", "));
}

/// The commit that the clone is at, and whether its sources are others. A folder that is no clone of its own has none: a
/// source archive may lie in a clone of something else.
fn commit(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    for file in ["HEAD", "refs/heads", "packed-refs"] {
        watch(&root.join(git(root, &["rev-parse", "--git-path", file])?));
    }
    SOURCES.iter().for_each(|source| watch(&root.join(source)));
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let modified = git(root, &[&["status", "--porcelain", "--"], SOURCES].concat())?;
    Some(if modified.is_empty() { commit } else { format!("{commit}, modified") })
}

/// Has this run again when the file, or one in the folder, changes. Cargo takes a file that is not there for changed.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// What git says, where there is one.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(["--no-optional-locks", "-C"]).arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// The version of a package in a lock file.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}
