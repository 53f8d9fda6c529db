//! No test judges the machine's speed: what must come is waited for by the patience module, and no time is a verdict.

use crate::rust::{Token, follows, found};
use crate::tree::{File, files, none};

/// The only files of the tests that may say for how long something is waited for, or let time pass.
pub const PATIENCE: &[&str] = &["tests/patience/src/lib.rs", "tests/patience/patience.py"];

/// Programs for users, who have no patience module.
const SAMPLES: &str = "tests/samples/";

/// Macros whose first argument is a verdict.
const VERDICTS: &[&str] = &["assert", "assert_eq", "assert_ne", "debug_assert", "ensure"];
/// Names of how long something took, in whatever unit.
const DURATIONS: &[&str] = &["elapsed", "lasted", "took"];
/// Calls that end a wait when a span is over, or begin one.
const WAITS: &[&str] =
    &["interval_at", "park_timeout", "recv_timeout", "timeout", "timeout_at", "wait_timeout"];

#[test]
fn no_test_judges_how_long_something_took() {
    let problems = found(false, true, |_, tokens, at| is_bounded(tokens, at) || is_judged(tokens, at));
    none(&problems, "a slow machine fails these: say what must have happened, or what came first:");
}

#[test]
fn no_test_has_deadlines_or_waits_of_its_own() {
    let problems = found(false, true, |path, tokens, at| {
        let is_call =
            follows(tokens, at, &["("]) && at > 0 && ![".", "fn"].contains(&tokens[at - 1].text.as_str());
        let is_wait = is_call && WAITS.contains(&tokens[at].text.as_str());
        let is_deadline = tokens[at].text == "Instant" && follows(tokens, at, &["::", "now", "(", ")", "+"]);
        (is_wait || is_deadline) && !PATIENCE.contains(&path)
    });
    none(&problems, "tests wait by the patience module, and for nothing a span of their own:");
}

#[test]
fn no_python_test_has_deadlines_or_sleeps_of_its_own() {
    let mut problems = Vec::new();
    for file in files().iter().filter(|file| is_python_test(file) && !PATIENCE.contains(&file.path.as_str()))
    {
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| is_impatient(line)) {
            problems.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
        }
    }
    none(&problems, "tests wait by patience.py, and judge by no time:");
}

/// `elapsed() <`: a bound from above. One from below is kept by a slow machine as well.
fn is_bounded(tokens: &[Token], at: usize) -> bool {
    tokens[at].text == "elapsed" && follows(tokens, at, &["(", ")", "<"])
}

/// A duration in a verdict, but for one that is at least so long.
fn is_judged(tokens: &[Token], at: usize) -> bool {
    let is_verdict = VERDICTS.contains(&tokens[at].text.as_str()) && follows(tokens, at, &["!", "("]);
    is_verdict
        && verdict(&tokens[at + 3..]).windows(4).any(|words| {
            let [name, next, after, last] = words else { return false };
            let is_call = next.text == "(" && after.text == ")";
            let compared = if is_call { last } else { next };
            DURATIONS.contains(&name.text.as_str()) && compared.text != ">"
        })
}

/// The first argument of a macro, whose tokens begin behind its bracket, and three tokens behind it.
fn verdict(tokens: &[Token]) -> &[Token] {
    let mut depth = 0_usize;
    let end = tokens.iter().position(|token| match token.text.as_str() {
        "(" | "[" | "{" => {
            depth += 1;
            false
        }
        ")" | "]" | "}" if depth > 0 => {
            depth -= 1;
            false
        }
        sign => depth == 0 && [",", ")", "]", "}"].contains(&sign),
    });
    &tokens[..(end.unwrap_or(tokens.len()) + 3).min(tokens.len())]
}

fn is_python_test(file: &File) -> bool {
    let is_python = file.path.ends_with(".py") || file.text.starts_with("#!/usr/bin/env python3");
    file.is_test() && is_python && !file.path.starts_with(SAMPLES)
}

/// A sleep, a deadline, or a bound from above.
fn is_impatient(line: &str) -> bool {
    let clocks = ["time.monotonic()", "time.time()", "time.perf_counter()"];
    let is_clock = |sign: &str| clocks.iter().any(|clock| line.contains(&format!("{clock} {sign} ")));
    let is_bound = is_clock("-") && !line.contains("abs(") && line.contains(" < ");
    line.contains("time.sleep(") || is_clock("+") || is_clock(">") || is_clock("<") || is_bound
}

#[test]
fn what_judges_speed_is_told_from_what_does_not() {
    let judges = |code: &str| {
        let tokens = crate::rust::tokens_of(code);
        (0..tokens.len()).any(|at| is_bounded(&tokens, at) || is_judged(&tokens, at))
    };
    for code in [
        "fn a() { assert!(begun.elapsed() < most); }",
        "fn a() { while begun.elapsed() < most {} }",
        "fn a() { ensure!(took <= most, \"late\"); }",
        "fn a() { assert!((a..b).contains(&begun.elapsed()), \"late\"); }",
    ] {
        assert!(judges(code), "{code}");
    }
    for code in [
        "fn a() { assert!(begun.elapsed() >= span); }",
        "fn a() { ensure!(is_done, \"after {:?}\", begun.elapsed()); }",
        "fn a() { println!(\"{:?}\", begun.elapsed()); }",
    ] {
        assert!(!judges(code), "{code}");
    }
    assert!(is_impatient("    expect.that(time.monotonic() - begun < 4, \"soon\")"));
    assert!(is_impatient("deadline = time.monotonic() + within_s"));
    assert!(!is_impatient("expect.that(time.monotonic() - begun >= 2.95, \"not before\")"));
}
