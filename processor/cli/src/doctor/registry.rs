//! The doctor's check of a schema registry.

use std::time::Duration;

use anyhow::Result;
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_registry::{ClientError, RegistryClient};
use tokio::time::Instant;

use crate::doctor::Finding;

/// How long the registry may take to answer.
const WITHIN: Duration = Duration::from_secs(10);

/// Checks it, if there is one.
///
/// # Errors
/// The system gives no runtime.
pub fn look(config: &Config, url: Option<&str>) -> Result<Option<Finding>> {
    let configured = Some(config.registry.url.0.as_str()).filter(|url| !url.is_empty());
    let Some(url) = url.or(configured) else { return Ok(None) };
    let about = "registry";
    let away = "start it, or name another; until then new producers of commands in Avro wait, and no node starts that \
                needs it";
    let client = match RegistryClient::new(url) {
        Ok(client) => client,
        Err(error) => return Ok(Some(Finding::fail(about, error.to_string(), away))),
    };
    let prefix = &config.kafka.prefix;
    let topic = |noun: PublicTopic| format!("{prefix}{}", noun.topic());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checked = runtime.block_on(async { client.check(topic, Instant::now() + WITHIN).await });
    Ok(Some(match checked {
        Ok(_ids) => Finding::good(about, "it is there, and knows the schemas of this release"),
        Err(error @ ClientError::Refused { .. }) => Finding::warn(
            about,
            error.to_string(),
            "everlog schemas register --registry URL; a node does it at its start",
        ),
        Err(error @ ClientError::Unreachable { .. }) => Finding::fail(about, error.to_string(), away),
    }))
}
