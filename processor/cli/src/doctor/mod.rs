//! `everlog doctor`: checks a log and what it depends on, and prints what is wrong and how to repair it. Changes
//! nothing.

mod bundle;
mod directory;
mod index;
mod kafka;
mod nodes;
mod registry;

use anyhow::Result;
use clap::Args;
use everlog_config::Config;
use everlog_log::clock::now_ms;
use serde_json::json;

use crate::public_topics::LogOptions;
use crate::{ExitStatus, write_line};

/// `everlog doctor`
#[derive(Args, Debug)]
pub struct Doctor {
    /// The file of settings [default: the environment and the defaults only].
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    /// Check the log on these brokers [default: kafka.bootstrap_servers].
    #[arg(long, value_name = "HOST:PORT[,...]")]
    kafka_bootstrap: Option<String>,
    /// Check the embedded log in this data directory [default, without brokers: server.data_dir].
    #[arg(long, value_name = "DIR", conflicts_with = "kafka_bootstrap")]
    data_dir: Option<std::path::PathBuf>,
    /// Check this schema registry too [default: registry.url].
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// Write an archive (tar.gz) for a bug report: what is found, settings without secrets, metrics, health, the state of the
    /// nodes, versions, and log lines.
    #[arg(long, value_name = "FILE")]
    bundle: Option<std::path::PathBuf>,
    /// Put the end of this file of log lines into the archive [default: what the system's journal has of the unit everlog].
    #[arg(long, value_name = "FILE", requires = "bundle")]
    logs: Vec<std::path::PathBuf>,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckVerdict {
    Good,
    /// It works, but an operator should know.
    Warn,
    Fail,
}

/// The finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// What was checked.
    about: &'static str,
    verdict: CheckVerdict,
    found: String,
    /// How to repair it.
    fix: Option<String>,
}

impl Finding {
    fn good(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, verdict: CheckVerdict::Good, found: found.into(), fix: None }
    }

    fn warn(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, verdict: CheckVerdict::Warn, found: found.into(), fix: Some(fix.into()) }
    }

    fn fail(about: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, verdict: CheckVerdict::Fail, found: found.into(), fix: Some(fix.into()) }
    }

    fn text(&self) -> String {
        let verdict = match self.verdict {
            CheckVerdict::Good => "ok",
            CheckVerdict::Warn => "warn",
            CheckVerdict::Fail => "fail",
        };
        let fix = self.fix.as_ref().map(|fix| format!("\n      fix: {fix}")).unwrap_or_default();
        format!("{verdict:<4}  {}: {}{fix}", self.about, self.found)
    }

    fn json(&self) -> String {
        let verdict = match self.verdict {
            CheckVerdict::Good => "ok",
            CheckVerdict::Warn => "warn",
            CheckVerdict::Fail => "fail",
        };
        json!({"verdict": verdict, "about": self.about, "found": self.found, "fix": self.fix}).to_string()
    }
}

/// Runs it; `release` says which one this is, and what it is built from.
///
/// # Errors
/// Nothing could be checked, or the archive cannot be written.
pub fn run(doctor: &Doctor, release: &str) -> Result<ExitStatus> {
    let place = LogOptions {
        config: doctor.config.clone(),
        kafka_bootstrap: doctor.kafka_bootstrap.clone(),
        ..LogOptions::default()
    };
    let mut config = place.settings()?;
    everlog_config::logs::start(&config.logs)?;
    if let Some(dir) = &doctor.data_dir {
        config.server.data_dir.clone_from(dir);
        config.kafka.bootstrap_servers.clear();
    }
    let findings = look(doctor, &config);
    if let Some(file) = &doctor.bundle {
        let (config, findings, logs) = (&config, &findings, doctor.logs.as_slice());
        bundle::write(file, &bundle::Sources { config, findings, release, logs })?;
    }
    let findings = findings?;
    for finding in &findings {
        if !write_line(&if doctor.json { finding.json() } else { finding.text() })? {
            break;
        }
    }
    let fails = findings.iter().any(|finding| finding.verdict == CheckVerdict::Fail);
    Ok(if fails { ExitStatus::Failure } else { ExitStatus::Success })
}

fn look(doctor: &Doctor, config: &Config) -> Result<Vec<Finding>> {
    let mut findings = if config.kafka.is_used() {
        let mut findings = kafka::look(config)?;
        findings.extend(nodes::look(config, now_ms())?);
        findings
    } else {
        directory::look(config)
    };
    findings.extend(registry::look(config, doctor.registry.as_deref())?);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_it_means_and_the_way_out() {
        let finding = Finding::fail("positions", "journal 3 ends at 5", "restore it");
        assert_eq!(finding.text(), "fail  positions: journal 3 ends at 5\n      fix: restore it");
        let value: serde_json::Value = serde_json::from_str(&finding.json()).expect("JSON");
        assert_eq!((value["verdict"].as_str(), value["fix"].as_str()), (Some("fail"), Some("restore it")));
        assert_eq!(Finding::good("topics", "9 of 9").text(), "ok    topics: 9 of 9");
    }
}
