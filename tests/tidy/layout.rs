//! How the code is laid out: few files in a folder, folders that do not import each other, one word for one thing.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;

use crate::rust::{Token, follows, parse, parted};
use crate::tree::{File, files, none, ratchet};

/// Rust files of a folder, without its `mod.rs`.
const FOLDER_WALL_FILES: usize = 25;
/// Folders beyond the wall, with their files. May only shrink.
const FULL_FOLDERS: &[(&str, usize)] = &[];

/// Words that no type and no file is named by, and what is said instead.
const RETIRED: &[(&str, &str)] = &[
    ("Asked", "the request's name"),
    ("House", "Harness"),
    ("Kept", "what is kept, and for whom"),
    ("Lane", "RequestClass, or the kind of queue"),
    ("Look", "what is checked"),
    ("People", "Clients"),
    ("Place", "a position, a slot, or a context"),
    ("Standing", "a status"),
    ("Teeth", "mutations of a checker or a rule"),
    ("Told", "a reply, or who sent it"),
    ("Voice", "ResponseContext, or a log"),
];

/// Type names that several crates have, outside of the engine's machines. The list may only shrink.
const SHARED_NAMES: &[&str] = &[
    // What a crate calls its own failures, settings and counters.
    "Error",
    "Limits",
    "Options",
    "Stats",
    // To be told apart.
    "ActivityTask",
    "Application",
    "Attempt",
    "Batch",
    "Change",
    "Command",
    "Config",
    "Empty",
    "Ended",
    "Failure",
    "Fault",
    "Field",
    "Fields",
    "Found",
    "Given",
    "Header",
    "Info",
    "Key",
    "Outcome",
    "Payload",
    "Priority",
    "Record",
    "Rejection",
    "ReplyTo",
    "Request",
    "Restored",
    "RetryPolicy",
    "Row",
    "Server",
    "Settings",
    "Shared",
    "Start",
    "Timeout",
];

#[test]
fn no_folder_has_too_many_files() {
    let mut counts = BTreeMap::<String, usize>::new();
    for file in files().iter().filter(|file| file.is_rust() && !file.path.ends_with("/mod.rs")) {
        let (folder, _) = file.path.rsplit_once('/').expect("no Rust file lies in the root");
        *counts.entry(folder.to_owned()).or_default() += 1;
    }
    let problems = ratchet(&counts, FOLDER_WALL_FILES, FULL_FOLDERS);
    none(&problems, "folders have too many files (counted as lines here): part them by what they own");
}

#[test]
fn no_type_or_file_has_a_retired_name() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        for (word, instead) in RETIRED {
            let is_named = types(file).iter().any(|name| name == word);
            if is_named || stem.eq_ignore_ascii_case(word) {
                problems.push(format!("{}: {word}: say {instead}", file.path));
            }
        }
    }
    none(&problems, "retired words:");
}

#[test]
fn a_type_has_one_name_of_its_own() {
    let mut crates = BTreeMap::<String, BTreeSet<String>>::new();
    let is_shipped = |file: &&File| {
        let is_ours = file.path.starts_with("processor/") || file.path.starts_with("connectors/");
        file.is_rust() && is_ours && !file.is_test() && !file.path.contains("/machine/")
    };
    for file in files().iter().filter(is_shipped) {
        for name in types(file) {
            crates.entry(name).or_default().insert(file.path.clone());
        }
    }
    let is_shared = |name: &str| SHARED_NAMES.contains(&name);
    let mut problems: Vec<_> = crates
        .iter()
        .filter(|(name, paths)| paths.len() > 1 && !is_shared(name))
        .map(|(name, paths)| format!("{name}: {}", paths.iter().cloned().collect::<Vec<_>>().join(", ")))
        .collect();
    let is_single = |name: &&&str| crates.get(**name).is_none_or(|paths| paths.len() < 2);
    let single = SHARED_NAMES.iter().filter(is_single);
    problems.extend(single.map(|name| format!("{name}: is shared no more, remove it from SHARED_NAMES")));
    none(&problems, "types of one name in several files:");
}

/// Names of the types that a file defines at its top level, outside of tests.
fn types(file: &File) -> Vec<String> {
    let name = |item: Item| match item {
        Item::Enum(item) => Some(item.ident),
        Item::Struct(item) => Some(item.ident),
        Item::Trait(item) => Some(item.ident),
        Item::Type(item) => Some(item.ident),
        Item::Union(item) => Some(item.ident),
        _no_type => None,
    };
    parse(file).items.into_iter().filter_map(name).map(|ident| ident.to_string()).collect()
}

#[test]
fn no_two_folders_of_a_crate_import_each_other() {
    let mut imports = BTreeMap::<(String, String), BTreeSet<String>>::new();
    for file in parted() {
        let Some((source, inner)) = file.path.split_once("/src/") else { continue };
        let Some((folder, _)) = inner.split_once('/') else { continue };
        for target in imported(&file.shipped) {
            imports.entry((source.to_owned(), folder.to_owned())).or_default().insert(target);
        }
    }
    let mut problems = Vec::new();
    for ((source, folder), targets) in &imports {
        for target in targets.iter().filter(|target| folder < *target) {
            let back = imports.get(&(source.clone(), target.clone()));
            if back.is_some_and(|back| back.contains(folder)) {
                problems.push(format!("{source}: {folder} and {target}"));
            }
        }
    }
    none(&problems, "folders import each other: move what both need below both");
}

/// The modules of the root that a file names: `a` of `crate::a::...`.
fn imported(tokens: &[Token]) -> Vec<String> {
    let is_path = |at: &usize| tokens[*at].text == "crate" && follows(tokens, *at, &["::"]);
    let named = (0..tokens.len()).filter(is_path).filter_map(|at| tokens.get(at + 2));
    named.map(|token| token.text.clone()).collect()
}
