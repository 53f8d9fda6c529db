//! `everlog schemas`: registers or checks this release's schemas.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_config::logs::visible;
use everlog_registry::{ClientError, RegistryClient};
use tokio::time::Instant;

use crate::http_client::HttpOptions;
use crate::{ExitStatus, write_line};

/// `everlog schemas`
#[derive(Debug, Subcommand)]
pub enum SchemasCommand {
    /// Register the schemas of the public topics that are not registered.
    ///
    /// Prints each subject with its id. Exit codes: 0: all are registered. 3: the registry refuses. 1: it does not answer.
    Register(RegistryOptions),
    /// Check that the schemas of the public topics are registered. Changes nothing.
    ///
    /// Prints each subject with its id. Exit codes: 0: all are registered. 3: one is missing. 1: the registry does not
    /// answer.
    Check(RegistryOptions),
}

/// The registry and the names of its subjects.
#[derive(Args, Debug)]
pub struct RegistryOptions {
    /// The registry, which has Confluent's API: http://registry:8081 or http://registry:8080/apis/ccompat/v7.
    #[arg(long, value_name = "URL")]
    registry: String,
    /// The prefix of the names of the topics [default: kafka.prefix].
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// How long to retry while the registry does not answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout_ms: u64,
    #[command(flatten)]
    http: HttpOptions,
}

/// Runs it.
///
/// # Errors
/// The registry does not answer.
pub fn run(schemas: &SchemasCommand) -> Result<ExitStatus> {
    let (SchemasCommand::Register(asked) | SchemasCommand::Check(asked)) = schemas;
    let config = Config::load(None, &everlog_config::environment())?;
    let prefix = asked.prefix.clone().unwrap_or_else(|| config.kafka.prefix.clone());
    let topic = |noun: PublicTopic| format!("{prefix}{}", noun.topic());
    let client = RegistryClient::by(asked.http.client(&asked.registry)?, &asked.registry)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(async {
        let deadline = Instant::now() + Duration::from_millis(asked.timeout_ms);
        match schemas {
            SchemasCommand::Register(_) => client.register(topic, deadline).await,
            SchemasCommand::Check(_) => client.check(topic, deadline).await,
        }
    });
    match found {
        Ok(ids) => {
            for noun in PublicTopic::ALL {
                write_line(&format!("{}\t{}", PublicTopic::subject(&topic(noun)), ids.of(noun)))?;
            }
            Ok(ExitStatus::Success)
        }
        Err(error @ ClientError::Refused { .. }) => {
            eprintln!("everlog: {}", visible::lines(&error.to_string()));
            if matches!(schemas, SchemasCommand::Check(_)) {
                eprintln!("everlog: register them with everlog schemas register");
            }
            Ok(ExitStatus::Failure)
        }
        Err(error @ ClientError::Unreachable { .. }) => Err(error.into()),
    }
}
