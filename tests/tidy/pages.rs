//! Documents: their links and the paths that they name are there, and the first ones stay short.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::tree::{File, files, none, root};

/// Pages that are read as a whole, with the bytes that they may have.
const SHORT: &[(&str, usize)] =
    &[("ARCHITECTURE.md", 12 << 10), ("BENCHMARKS.md", 8 << 10), ("README.md", 6 << 10)];

/// Pages whose paths in backticks are those of the clone.
const MAPS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// What such a path begins with.
const FOLDERS: &[&str] =
    &["benches/", "connectors/", "docs/", "packaging/", "processor/", "schemas/", "tests/"];

#[test]
fn the_first_pages_are_short() {
    let length = |page: &str| std::fs::metadata(root().join(page)).map_or(0, |file| file.len() as usize);
    let long = SHORT.iter().filter(|(page, most)| !(1..=*most).contains(&length(page)));
    let problems: Vec<_> =
        long.map(|(page, most)| format!("{page}: {} bytes, {most} is the wall", length(page))).collect();
    none(&problems, "pages are too long: move what is not for every reader to a page of its own");
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let files = files();
    let pages: BTreeMap<_, _> = files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|page| (page.path.as_str(), page))
        .collect();
    let mut problems = Vec::new();
    for page in pages.values() {
        for target in links(&page.text) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { page.path.clone() } else { beside(&page.path, path) };
            let has_anchor =
                || pages.get(path.as_str()).is_some_and(|page| anchors(page).any(|a| a == anchor));
            if !root().join(&path).exists() {
                problems.push(format!("{}: {target}: there is no {path}", page.path));
            } else if !anchor.is_empty() && !has_anchor() {
                problems.push(format!("{}: {target}: there is no such heading", page.path));
            }
        }
    }
    none(&problems, "links lead nowhere:");
}

#[test]
fn every_path_of_a_map_is_there() {
    let files = files();
    let maps = files.iter().filter(|file| MAPS.contains(&file.path.as_str()));
    let is_path = |name: &&str| FOLDERS.iter().any(|folder| name.starts_with(folder));
    // NOUN stands for any file of the folder.
    let folder = |name: &str| name.split("NOUN").next().unwrap_or(name).to_owned();
    let named = maps.flat_map(|map| map.text.split('`').skip(1).step_by(2).map(|name| (&map.path, name)));
    let paths = named.filter(|(_, name)| is_path(name) && !name.contains([' ', '*', '(']));
    let gone = paths.filter(|(_, name)| !root().join(folder(name)).exists());
    none(&gone.map(|(map, name)| format!("{map}: {name}")).collect::<Vec<_>>(), "paths that are not there:");
}

/// Where links of a page lead within the clone, with their anchors. Code has none.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("\n```").step_by(2);
    let ends = prose.flat_map(|part| part.split("](").skip(1));
    ends.filter_map(|end| end.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://"))
}

/// A path as it is from the root, of one that stands on a page.
fn beside(page: &str, link: &str) -> String {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.to_string_lossy().into_owned()
}

/// The headings of a page as links name them: small letters, digits and hyphens.
fn anchors(page: &File) -> impl Iterator<Item = String> {
    let headings = page.text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
    })
}

#[test]
fn links_are_told_from_code() {
    assert_eq!(
        links("[a](b.md#c), `x`\n```\n[d](e)\n```\n[f](https://g) [h](#i)").collect::<Vec<_>>(),
        ["b.md#c", "#i"]
    );
    assert_eq!(beside("docs/decisions/a.md", "../b.md"), "docs/b.md");
    let page = File { path: "a.md".into(), text: "# The map, and more\n## 1. What it is\n".into() };
    assert_eq!(anchors(&page).collect::<Vec<_>>(), ["the-map-and-more", "1-what-it-is"]);
}
