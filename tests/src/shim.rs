//! The shims of tests/shim: libraries that a process loads before all others, so that they answer for the system.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `shim/NAME.c` into a folder, and gives the library, which is for `LD_PRELOAD`.
///
/// # Errors
/// There is no compiler, or it does not take it.
pub fn build(name: &str, folder: &str) -> anyhow::Result<PathBuf> {
    let source = format!("{}/shim/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let library = Path::new(folder).join(name).with_extension("so");
    let new = library.with_extension(std::process::id().to_string());
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&new).arg(source);
    anyhow::ensure!(cc.status()?.success(), "cc cannot build the shim");
    std::fs::rename(&new, &library)?;
    Ok(library)
}
