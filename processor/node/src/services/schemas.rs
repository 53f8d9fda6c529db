//! The schema registry that the node uses: the built-in one, or another.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use everlog_avro::PublicTopic;
use everlog_config::Config;
use everlog_log::Outage;
use everlog_registry::{Found, Ids, Registry, RegistryClient};
use tokio::time::Instant;

use crate::storage::control_rows::ControlRows;
use crate::storage::log_backend::LogBackend;

/// How long one attempt to get the ids of our schemas may take, and the pause between two.
const ASK_WITHIN: Duration = Duration::from_secs(2);
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A registry and its health.
pub struct Schemas {
    place: RegistryLocation,
    /// Why the ids of our schemas are not known yet.
    lacking: Mutex<Option<String>>,
    stats: Stats,
}

/// Counters of requests to the registry.
#[derive(Debug, Default)]
pub struct Stats {
    /// Requests.
    pub questions: AtomicU64,
    /// Requests that it did not answer.
    pub failures: AtomicU64,
}

enum RegistryLocation {
    BuiltIn(Registry),
    RemotePartitions { client: RegistryClient, shown: String },
}

impl Schemas {
    /// Opens the registry of the settings. The built-in one reads the log.
    ///
    /// # Errors
    /// The log cannot be read, or the URL cannot be used.
    pub fn open(config: &Config, backend: &LogBackend) -> Result<Self> {
        let url = &config.registry.url;
        let place = if url.0.is_empty() {
            let rows = Arc::new(ControlRows::of(&backend.log()));
            let opened = Registry::open(rows, config.registry.limits());
            RegistryLocation::BuiltIn(opened.context("the built-in schema registry cannot be read")?)
        } else {
            let client = RegistryClient::new(&url.0).context("registry.url cannot be used")?;
            RegistryLocation::RemotePartitions { client, shown: url.shown() }
        };
        let lacking = Mutex::new(Some("the ids of the schemas are not known yet".into()));
        Ok(Self { place, lacking, stats: Stats::default() })
    }

    /// The ids of our schemas, which are registered where they are missing. Retried until there is an answer.
    pub async fn ids(self: &Arc<Self>, config: &Config) -> Ids {
        tokio::task::spawn_blocking(PublicTopic::prepare);
        let mut outage = Outage::default();
        loop {
            match self.ask(config).await {
                Ok(ids) => {
                    *self.lacking.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    if let Some(lasted) = outage.works(std::time::Instant::now()) {
                        tracing::info!(after_s = lasted.as_secs(), "ids of the schemas known");
                    }
                    return ids;
                }
                Err(reason) => {
                    if let Some(lasts) = outage.fails(std::time::Instant::now()) {
                        let for_s = lasts.as_secs();
                        tracing::warn!(reason, for_s, "ids of the schemas unknown");
                    }
                    *self.lacking.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                    tokio::time::sleep(ASK_AGAIN_AFTER).await;
                }
            }
        }
    }

    async fn ask(&self, config: &Config) -> Result<Ids, String> {
        let topic = |noun| config.topic(noun);
        let asked = match &self.place {
            RegistryLocation::BuiltIn(registry) => {
                tokio::task::block_in_place(|| Ids::built_in(registry, topic))
                    .map_err(|error| error.to_string())
            }
            RegistryLocation::RemotePartitions { client, .. } => {
                client.register(topic, Instant::now() + ASK_WITHIN).await.map_err(|error| error.to_string())
            }
        };
        self.count(asked)
    }

    /// Why the node cannot serve without ids; none where it can.
    pub fn trouble(&self) -> Option<String> {
        self.lacking.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The counters of the built-in registry, if it is used.
    pub fn work(&self) -> Option<Arc<everlog_registry::Stats>> {
        match &self.place {
            RegistryLocation::BuiltIn(registry) => Some(Arc::clone(registry.stats())),
            RegistryLocation::RemotePartitions { .. } => None,
        }
    }

    /// What is served at the root: the registry, or where it is.
    pub fn routes(&self) -> Router {
        match &self.place {
            RegistryLocation::BuiltIn(registry) => everlog_registry::router(registry.clone()),
            RegistryLocation::RemotePartitions { shown, .. } => {
                let message = format!("no registry is served here: this node uses the one at {shown}");
                let body = serde_json::json!({"error_code": 404, "message": message}).to_string();
                let json = [(header::CONTENT_TYPE, "application/vnd.schemaregistry.v1+json")];
                Router::new().fallback(async move || (StatusCode::NOT_FOUND, json, body).into_response())
            }
        }
    }

    fn count<T>(&self, answer: Result<T, String>) -> Result<T, String> {
        self.stats.questions.fetch_add(1, Ordering::Relaxed);
        self.stats.failures.fetch_add(u64::from(answer.is_err()), Ordering::Relaxed);
        answer
    }
}

/// The registry for the reader of commands.
#[derive(Clone)]
pub struct Lookup(pub Arc<Schemas>);

impl everlog_ingress::SchemaRegistry for Lookup {
    async fn schema(&self, id: u32) -> Result<Option<String>, String> {
        let answer = match &self.0.place {
            RegistryLocation::BuiltIn(registry) => Ok(registry.text(id)),
            RegistryLocation::RemotePartitions { client, .. } => match client.schema(id).await {
                Ok(Found::Schema(text)) => Ok(Some(text)),
                Ok(Found::Unknown) => Ok(None),
                Err(away) => Err(away.to_string()),
            },
        };
        self.0.count(answer)
    }
}
