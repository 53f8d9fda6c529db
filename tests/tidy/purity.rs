//! What the pure crates may not know. The engine, and what it knows of schedules: clock, randomness, IO, async, log lines, HashMap. The partition:
//! a thread, socket, timer or clock of its own.
//!
//! The crate graph (`graph.rs`) keeps other crates out; this keeps out what the standard library offers.

use crate::rust::{Parted, Token, follows, parted, tokens_outside_tests};
use crate::tree::none;

const ENGINE: &str = "processor/engine/src/";
const SCHEDULES: &str = "processor/schedules/src/";
const PARTITION: &str = "processor/partition/src/";

/// The modules of std, core and alloc that are the same on every machine and at every time.
const PURE_MODULES: &[&str] = &[
    "array",
    "ascii",
    "borrow",
    "boxed",
    "char",
    "clone",
    "cmp",
    "collections",
    "convert",
    "default",
    "error",
    "fmt",
    "iter",
    "marker",
    "matches",
    "mem",
    "num",
    "ops",
    "option",
    "rc",
    "result",
    "slice",
    "str",
    "string",
    "vec",
];

/// Words that no pure code needs, each with what it brings in.
const BANNED_WORDS: &[(&str, &str)] = &[
    ("async", "async"),
    ("await", "async"),
    ("DefaultHasher", "a hash that another release may compute otherwise"),
    ("HashMap", "an order that differs from run to run"),
    ("HashSet", "an order that differs from run to run"),
    ("Instant", "a clock"),
    ("RandomState", "randomness"),
    ("SystemTime", "a clock"),
    ("thread_local", "state outside the state"),
];

const BANNED_CRATES: &[&str] = &["log", "rand", "tokio", "tracing"];
const BANNED_MACROS: &[&str] = &["dbg", "env", "eprint", "eprintln", "option_env", "print", "println"];

/// Computed by the platform's library, so differently on different machines.
const FLOAT_CALLS: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "exp", "exp2",
    "exp_m1", "hypot", "ln", "ln_1p", "log", "log10", "log2", "mul_add", "powf", "powi", "sin", "sin_cos",
    "sinh", "sqrt", "tan", "tanh",
];

#[test]
fn the_engine_knows_no_clock_no_chance_and_no_world() {
    let problems = [problems_in(ENGINE, impurity), problems_in(SCHEDULES, impurity)].concat();
    none(&problems, "decide() may depend on nothing but the state and the journal record:");
}

#[test]
fn the_partition_owns_no_thread_socket_or_clock() {
    let problems = problems_in(PARTITION, possession);
    none(&problems, "a partition takes log, store and clock as parameters, so that it can run under a seed:");
}

fn problems_in(folder: &str, rule: fn(&[Token], usize) -> Option<String>) -> Vec<String> {
    let parted: Vec<Parted> = parted().into_iter().filter(|p| p.path.starts_with(folder)).collect();
    assert!(!parted.is_empty(), "{folder} is gone");
    let told = |p: &Parted| {
        let found = all(&p.shipped, rule).into_iter();
        found.map(|(line, why)| format!("{}:{line}: {why}", p.path)).collect::<Vec<_>>()
    };
    parted.iter().flat_map(told).collect()
}

/// Lines and reasons of all places where `rule` has something to say.
fn all(tokens: &[Token], rule: fn(&[Token], usize) -> Option<String>) -> Vec<(usize, String)> {
    let said = |at: usize| Some((tokens[at].line, rule(tokens, at)?));
    (0..tokens.len()).filter_map(said).collect()
}

fn impurity(tokens: &[Token], at: usize) -> Option<String> {
    let word = tokens[at].text.as_str();
    let after_dot = at > 0 && tokens[at - 1].text == ".";
    let in_path = at > 0 && tokens[at - 1].text == "::";
    if let Some((_, what)) = BANNED_WORDS.iter().find(|(banned, _)| *banned == word) {
        return Some(format!("{word} brings in {what}"));
    }
    if BANNED_CRATES.contains(&word) && !in_path && follows(tokens, at, &["::"]) {
        return Some(format!("the crate {word}"));
    }
    if BANNED_MACROS.contains(&word) && follows(tokens, at, &["!"]) {
        return Some(format!("{word}! speaks to the world"));
    }
    if FLOAT_CALLS.contains(&word) && after_dot && follows(tokens, at, &["("]) {
        return Some(format!(".{word}() is a floating-point library call"));
    }
    if FLOAT_CALLS.contains(&word)
        && in_path
        && at > 1
        && ["f32", "f64"].contains(&tokens[at - 2].text.as_str())
    {
        return Some(format!("{word} is a floating-point library call"));
    }
    if word == "static" && follows(tokens, at, &["mut"]) {
        return Some("a static that can change is state outside the state".to_owned());
    }
    if ["std", "core", "alloc"].contains(&word) && !after_dot && follows(tokens, at, &["::"]) {
        let impure = modules_used(&tokens[at + 2..]).find(|module| !PURE_MODULES.contains(module))?;
        return Some(format!("{word}::{impure} is not known to be pure"));
    }
    None
}

/// Of tokio the channels are welcome: they need no runtime.
fn possession(tokens: &[Token], at: usize) -> Option<String> {
    let word = tokens[at].text.as_str();
    if ["Instant", "SystemTime"].contains(&word) && follows(tokens, at, &["::", "now"]) {
        return Some(format!("{word}::now() is a clock of its own"));
    }
    if !["std", "tokio"].contains(&word) || !follows(tokens, at, &["::"]) {
        return None;
    }
    let owned = |module: &&str| match word {
        "tokio" => *module != "sync",
        _ => ["env", "fs", "net", "process", "thread"].contains(module),
    };
    let owned = modules_used(&tokens[at + 2..]).find(owned)?;
    Some(format!("{word}::{owned}"))
}

/// `x` of `std::x`, or `x, y` of `std::{x, y::z}`, where `tokens` begin after `std::`. The one part of `sync` that
/// is allowed, `Arc`, is left out.
fn modules_used(tokens: &[Token]) -> impl Iterator<Item = &str> {
    let grouped = tokens.first().is_some_and(|t| t.text == "{");
    let mut depth = 0;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "sync" if follows(tokens, at, &["::", "Arc"]) => {}
            word => {
                let begins = at == 0 || (depth == 1 && ["{", ","].contains(&tokens[at - 1].text.as_str()));
                found.extend(begins.then_some(word));
            }
        }
        if depth == 0 || !grouped {
            break;
        }
    }
    found.into_iter()
}

#[test]
fn impurities_are_found() {
    let found = |code: &str| {
        let tokens = tokens_outside_tests(&syn::parse_file(code).expect("it is Rust"));
        all(&tokens, impurity).into_iter().map(|(_, why)| why).collect::<Vec<_>>()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(found("use std::collections::BTreeMap; use std::{fmt, mem::{self, take}};"), nothing);
    assert_eq!(
        found("use std::sync::Arc; fn a(log: u8) { self.log.tan; x::exp(y.log, core::cmp::min(1, 2)) }"),
        nothing
    );
    assert_eq!(found("#[cfg(test)] mod tests { use std::time::Instant; }"), nothing);
    assert_eq!(found("use std::time::Duration;"), ["std::time is not known to be pure"]);
    assert_eq!(found("use std::{fmt, time::Duration};"), ["std::time is not known to be pure"]);
    assert_eq!(found("use std::sync::Mutex;"), ["std::sync is not known to be pure"]);
    assert_eq!(found("fn a() { let x = b.powi(2); }"), [".powi() is a floating-point library call"]);
    assert_eq!(found("fn a() { f64::exp(1.0); }"), ["exp is a floating-point library call"]);
    assert_eq!(found("fn a() { log::info!(\"b\") }"), ["the crate log"]);
    assert_eq!(found("fn a() { foo!(println!(\"b\")) }"), ["println! speaks to the world"]);
    assert_eq!(
        found("fn a() -> HashSet<u8> { b }"),
        ["HashSet brings in an order that differs from run to run"]
    );
}

#[test]
fn possessions_are_found() {
    let found = |code: &str| {
        let tokens = tokens_outside_tests(&syn::parse_file(code).expect("it is Rust"));
        all(&tokens, possession).into_iter().map(|(_, why)| why).collect::<Vec<_>>()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(found("use tokio::sync::oneshot; use std::{time::Duration, sync::Mutex};"), nothing);
    assert_eq!(found("use tokio::{sync::mpsc, time::interval};"), ["tokio::time"]);
    assert_eq!(found("use std::{fmt, thread};"), ["std::thread"]);
    assert_eq!(found("fn a() { Instant::now(); }"), ["Instant::now() is a clock of its own"]);
}
