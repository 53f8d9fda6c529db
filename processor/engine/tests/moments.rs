//! Moments of schedules, against those that the library of Temporal's server finds (robfig's cron 3.0.1, IANA 2025b).
//!
//! Each line of `moments.tsv` is a schedule, a moment, and the first moment of the schedule behind it, in seconds since
//! 1970, as that library was asked for them: schedules drawn by dice, often near a change of the clocks.
//! `EVERLOG_MOMENTS` may name another such file.

use everlog_engine::cron;

/// What is wrong with a line, if anything.
fn wrong(line: &str) -> Option<String> {
    let mut parts = line.split('\t');
    let (Some(schedule), Some(from), Some(expected)) = (parts.next(), parts.next(), parts.next()) else {
        return Some(format!("{line:?} has not three parts"));
    };
    let from_ms = from.parse::<i64>().expect("a moment is a number") * 1_000;
    let found = match cron::backoff_ms(schedule, from_ms, from_ms) {
        Some(wait_ms) => ((from_ms + wait_ms) / 1_000).to_string(),
        None if cron::check(schedule) == Err("invalid CronSchedule.") => "error".into(),
        None => "never".into(),
    };
    (found != expected).then(|| format!("{line}: found {found}"))
}

#[test]
fn schedules_come_when_they_come_on_temporals_server() {
    let given = std::env::var("EVERLOG_MOMENTS").ok();
    let given = given.map(|path| std::fs::read_to_string(path).expect("the file can be read"));
    let table = given.as_deref().unwrap_or(include_str!("moments.tsv"));
    let problems: Vec<_> = table.lines().filter_map(wrong).collect();
    assert!(table.lines().count() >= 800, "the table is gone");
    let shown = &problems[..problems.len().min(20)];
    assert!(problems.is_empty(), "{} moments differ:\n{}", problems.len(), shown.join("\n"));
}
