//! What holds for every file, whatever its language.

use std::collections::BTreeMap;

use crate::tree::{File, files, none, ratchet};

const FILE_WALL_LINES: usize = 600;
/// Files beyond the wall, with their lines. May only shrink.
const LONG_FILES: &[(&str, usize)] = &[];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "imp", "manager", "misc", "util", "utils"];

/// Split, so that this file does not find itself.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tm", "p/")];

const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("proxy.", "golang.org"),
    concat!("sum.", "golang.org"),
    concat!("registry.", "npmjs.org"),
    concat!("repo.", "maven"),
    concat!("repo1.", "maven"),
    concat!("deb.", "debian.org"),
];

/// Written by a tool, with a host in every line.
const LOCK_FILES: &[&str] = &["Cargo.lock"];

#[test]
fn no_source_file_is_too_long() {
    let lengths: BTreeMap<String, usize> =
        files().iter().filter(|f| is_source(f)).map(|f| (f.path.clone(), f.text.lines().count())).collect();
    none(&ratchet(&lengths, FILE_WALL_LINES, LONG_FILES), "files are too long: find the second noun in them");
}

#[test]
fn every_rust_file_opens_with_its_purpose() {
    let silent = |f: &&File| f.is_rust() && !f.text.starts_with("//! ");
    let problems: Vec<String> = files().iter().filter(silent).map(|f| f.path.clone()).collect();
    none(&problems, "files do not open with one //! sentence of purpose:");
}

#[test]
fn every_file_is_named_after_what_it_holds() {
    let empty = |f: &&File| {
        let parts = f.path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        is_source(f) && parts.into_iter().any(|part| EMPTY_NAMES.contains(&part))
    };
    let problems: Vec<String> = files().iter().filter(empty).map(|f| f.path.clone()).collect();
    none(&problems, "names that say nothing about what is inside:");
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|f| !LOCK_FILES.contains(&f.path.as_str())) {
        for (number, line) in file.text.lines().enumerate() {
            let found = MACHINE_PATHS.iter().chain(REGISTRY_HOSTS).filter(|needle| line.contains(**needle));
            problems.extend(found.map(|needle| format!("{}:{}: {needle}", file.path, number + 1)));
        }
    }
    none(&problems, "paths of one machine or hosts of registries are named:");
}

/// Written by hand to be run: Rust, Python, Go, C, shell.
fn is_source(file: &File) -> bool {
    let extensions = [".rs", ".py", ".go", ".c", ".sh"];
    extensions.iter().any(|extension| file.path.ends_with(extension)) || file.text.starts_with("#!")
}
