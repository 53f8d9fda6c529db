//! `everlog auth`: makes API keys.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use everlog_auth::NewApiKey;
use everlog_log::clock::now_ms;

use crate::{ExitStatus, write_line};

/// A later expiry is none.
const EXPIRES_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// `everlog auth`
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Make an API key. Nothing is stored.
    ///
    /// Prints two lines: the key, which its user needs and nothing shows again, and the line for the file of
    /// auth.api_keys_file, which has the key's SHA-256.
    Key(KeyOptions),
}

/// What the key is for.
#[derive(Args, Debug)]
pub struct KeyOptions {
    /// The name by which log lines call its user; one word.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it may do: read, write, worker or admin in a namespace, or in all of them with the namespace temporal-system.
    #[arg(long = "grant", value_name = "NAMESPACE:ROLE", required = true)]
    grants: Vec<String>,
    /// How long it is accepted, in days, hours or minutes, such as 90d, 12h, 30m [default: for ever].
    #[arg(long, value_name = "TIME", value_parser = span)]
    expires: Option<Duration>,
}

/// Runs it.
///
/// # Errors
/// The name or a grant is not allowed.
pub fn run(command: &AuthCommand) -> Result<ExitStatus> {
    let AuthCommand::Key(options) = command;
    let expires = options.expires.map(expiry).transpose()?;
    let made =
        NewApiKey::generate(&options.name, &options.grants, expires).map_err(|fault| anyhow!(fault))?;
    write_line(&made.key)?;
    write_line(&made.line)?;
    eprintln!(
        "everlog: the first line is the key, and is not shown again; the second is for auth.api_keys_file"
    );
    Ok(ExitStatus::Success)
}

fn expiry(span: Duration) -> Result<DateTime<Utc>> {
    let at_ms = i64::try_from(span.as_millis()).ok().and_then(|span_ms| now_ms().checked_add(span_ms));
    at_ms.and_then(DateTime::from_timestamp_millis).context("the time of expiry is too far ahead")
}

fn span(text: &str) -> Result<Duration, String> {
    let allowed = || "expected a number of days, hours or minutes, such as 90d, 12h, 30m".to_owned();
    let unit = text.chars().next_back().ok_or_else(allowed)?;
    let seconds = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        _ => return Err(allowed()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_unparsed| allowed())?;
    let span = Duration::from_secs(number.checked_mul(seconds).ok_or_else(allowed)?);
    if span.is_zero() || span > EXPIRES_MAX { Err(allowed()) } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_a_unit() {
        for (text, seconds) in
            [("90d", 7_776_000), ("12h", 43_200), ("30m", 1_800), ("36500d", 3_153_600_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "d",
            "90",
            "90s",
            "0d",
            "-1d",
            "1.5h",
            "36501d",
            "99999999999999999999d",
            "18446744073709551615d",
            "9é",
        ] {
            assert!(span(text).is_err_and(|told| told.contains("such as 90d")), "{text}");
        }
    }
}
