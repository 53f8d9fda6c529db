//! What a Temporal server answered to the queries of one seed: a line each, as `list 3<tab>query<tab>answer`.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::QueryAnswers;
use super::queries::ListQuery;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("differential/lists/recorded.txt")
}

pub fn write(told: &QueryAnswers) -> Result<()> {
    let mut text = String::new();
    for (query, answer) in told {
        let ListQuery { is_count, page_size, text: asked } = query;
        ensure!(!asked.contains(['\t', '\n']) && !answer.contains(['\t', '\n']), "{query}: {answer}");
        let call = if *is_count { "count" } else { "list" };
        text.push_str(&format!("{call} {page_size}\t{asked}\t{answer}\n"));
    }
    Ok(std::fs::write(path(), text)?)
}

pub fn read() -> Result<QueryAnswers> {
    let text = std::fs::read_to_string(path()).context("differential/lists/recorded.txt")?;
    let line = |line: &str| {
        let (call, rest) = line.split_once('\t')?;
        let (asked, answer) = rest.split_once('\t')?;
        let (call, page_size) = call.split_once(' ')?;
        let page_size = page_size.parse().ok()?;
        Some((ListQuery { is_count: call == "count", page_size, text: asked.to_owned() }, answer.to_owned()))
    };
    text.lines().map(|each| line(each).with_context(|| each.to_owned())).collect()
}
