//! Log lines: for people on a terminal, JSON objects otherwise. Foreign text in them is escaped where it would not be
//! visible.

pub mod visible;
mod writer;

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::logs::writer::LineFormat;
use crate::{LogFormat, Logs};

/// Starts to write log lines to the standard error stream.
///
/// # Errors
/// The filter cannot be read.
pub fn start(config: &Logs) -> Result<()> {
    let (name, text) = filter(config, |name| std::env::var(name).ok());
    let filter = EnvFilter::builder().parse(&text);
    let filter = filter
        .with_context(|| format!("{name} = {text:?} is not allowed; allowed is a level or a list of them"))?;
    let terminal = std::io::stderr().is_terminal();
    let pretty = match config.format {
        LogFormat::Auto => terminal,
        LogFormat::Pretty => true,
        LogFormat::Json => false,
    };
    let coloured = pretty && terminal && colours_are_wanted();
    let writer = match (pretty, coloured) {
        (false, _) => LineFormat::Json,
        (true, false) => LineFormat::Plain,
        (true, true) => LineFormat::Coloured,
    };
    let lines = fmt().with_env_filter(filter).with_writer(move || writer);
    if pretty {
        lines.compact().with_target(false).with_ansi(coloured).init();
    } else {
        lines.json().flatten_event(true).with_current_span(false).init();
    }
    tell_of_panics();
    Ok(())
}

/// Logs panics.
fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        tracing::error!(thread, place, "panic: {message}");
    }));
}

/// False where NO_COLOR is set.
pub fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The filter, and where it comes from.
fn filter(config: &Logs, variable: impl Fn(&str) -> Option<String>) -> (&'static str, String) {
    let given = |name| variable(name).filter(|text| !text.is_empty()).map(|text| (name, text));
    given("EVERLOG_LOG")
        .or_else(|| given("RUST_LOG"))
        .unwrap_or_else(|| ("logs.filter", config.filter.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_variable_goes_before_the_common_one_and_both_before_the_file() {
        let config = Logs::default();
        let chosen = |ours: Option<&str>, common: Option<&str>| {
            filter(&config, |name| if name == "EVERLOG_LOG" { ours } else { common }.map(str::to_owned))
        };
        assert_eq!(chosen(Some("debug"), Some("warn")), ("EVERLOG_LOG", "debug".into()));
        assert_eq!(chosen(Some(""), Some("warn")), ("RUST_LOG", "warn".into()));
        assert_eq!(chosen(None, None), ("logs.filter", "info".into()));
    }
}
