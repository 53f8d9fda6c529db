//! What is refused, each with a sentence that says why: a bad export, and a place where something is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use everlog_log::{IMPORT_MARK, Log};
use everlog_rocks::log::{Embedded, Options};
use serde_json::Value;

use crate::tool::{Ended, export_from, import_into, state, try_import_into};

/// A data directory with a log that no node has served.
fn log(dir: &Path) -> anyhow::Result<()> {
    drop(Embedded::open(Options::new(dir))?);
    Ok(())
}

fn copy_of(export: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(export)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(to.into())
}

fn refused(ended: &Ended, why: &str) -> anyhow::Result<()> {
    ensure!(ended.code == Some(1) && ended.err.contains(why), "not {why}: {ended:?}");
    Ok(())
}

#[test]
fn a_bad_export_is_refused_before_anything_is_made() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    log(&place("data"))?;
    export_from(&place("data"), &place("good"))?;
    let bad = |name: &str, spoil: &dyn Fn(&Path) -> anyhow::Result<()>, why: &str| {
        let export = copy_of(&place("good"), &place(name))?;
        spoil(&export)?;
        refused(&try_import_into(&export, &place("new"), 8)?, why)?;
        ensure!(!place("new").join("db").exists(), "{name}: a log was made");
        anyhow::Ok(())
    };
    let rows = "changelog-00003.rows";
    bad(
        "changed",
        &|export| {
            let mut bytes = fs::read(export.join(rows))?;
            *bytes.last_mut().context("it has some")? ^= 1;
            Ok(fs::write(export.join(rows), bytes)?)
        },
        "is not what was exported",
    )?;
    bad(
        "cut",
        &|export| {
            let bytes = fs::read(export.join(rows))?;
            Ok(fs::write(export.join(rows), &bytes[..bytes.len() - 1])?)
        },
        "it was cut or changed",
    )?;
    bad("gone", &|export| Ok(fs::remove_file(export.join(rows))?), "is missing")?;
    bad(
        "unfinished",
        &|export| Ok(fs::remove_file(export.join("manifest.json"))?),
        "it has no manifest.json",
    )?;
    let rewritten = |export: &Path, key: &str, value: Value| {
        let path = export.join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path)?)?;
        manifest[key] = value;
        anyhow::Ok(fs::write(path, manifest.to_string())?)
    };
    bad("later", &|export| rewritten(export, "format", 2.into()), "this release reads up to 1")?;
    bad("damaged", &|export| rewritten(export, "files", "none".into()), "is damaged")?;
    import_into(&place("good"), &place("new"), 8)
}

#[test]
fn nothing_is_imported_into_a_log_or_exported_over_files() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    log(&place("data"))?;
    export_from(&place("data"), &place("export"))?;
    refused(
        &try_import_into(&place("export"), &place("data"), 8)?,
        "has a log; import into a new directory",
    )?;
    let shown = |path: PathBuf| path.display().to_string();
    let words = ["export", "--to", &shown(place("export")), "--data-dir", &shown(place("data"))];
    refused(&state(&words, &[])?, "is not empty")?;
    let words = ["export", "--to", &shown(place("other")), "--data-dir", &shown(place("nothing"))];
    refused(&state(&words, &[])?, "has no log")?;
    ensure!(!place("data").join("export").exists(), "the copy of an export is removed");
    refused(&try_import_into(&place("export"), &place("many"), 257)?, "allowed")
}

#[test]
fn an_import_that_was_not_finished_is_served_by_nobody() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let place = |name: &str| dir.path().join(name);
    log(&place("data"))?;
    export_from(&place("data"), &place("export"))?;
    {
        let half = Embedded::open(Options::new(place("half")))?;
        half.control_put(IMPORT_MARK, Some(b"0"))?;
    }
    refused(&try_import_into(&place("export"), &place("half"), 8)?, "was not finished")?;
    let mut serve = std::process::Command::new(everlog_tests::server::binary()?);
    let ended = serve.arg("serve").env("EVERLOG_SERVER__DATA_DIR", place("half")).output()?;
    let err = String::from_utf8_lossy(&ended.stderr).into_owned();
    ensure!(ended.status.code() == Some(1) && err.contains("was not finished"), "{:?}: {err}", ended.status);
    Ok(())
}
