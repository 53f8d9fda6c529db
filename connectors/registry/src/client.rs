//! A client for a schema registry: finds the ids of this release's own schemas, and any schema by its id.

use std::time::Duration;

use everlog_avro::PublicTopic;
use everlog_avro::schema::SCHEMA_BYTES_MAX;
use everlog_log::Backoff;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::{CompatibilityLevel, Error, Registry};

/// Timeout of one request.
const REQUEST_MS_MAX: u64 = 10_000;
/// The pause before a failed request is retried.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// The ids of this release's schemas in a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    event: u32,
    command: u32,
    outcome: u32,
    rejection: u32,
}

impl Ids {
    /// The id of a topic's schema.
    pub fn of(&self, noun: PublicTopic) -> u32 {
        match noun {
            PublicTopic::Event => self.event,
            PublicTopic::Command => self.command,
            PublicTopic::Outcome => self.outcome,
            PublicTopic::Rejection => self.rejection,
        }
    }

    /// Registers this release's schemas with the built-in registry. `topic` returns the full name of a topic. Blocks on
    /// the storage.
    ///
    /// # Errors
    /// [`Error`].
    pub fn built_in(registry: &Registry, topic: impl Fn(PublicTopic) -> String) -> Result<Self, Error> {
        let id = |noun: PublicTopic| {
            let subject = PublicTopic::subject(&topic(noun));
            if registry.with(|book| book.level_of(&subject)).is_none() {
                registry.set_level(Some(&subject), CompatibilityLevel::FullTransitive)?;
            }
            registry.register(&subject, noun.text())
        };
        Ok(Self {
            event: id(PublicTopic::Event)?,
            command: id(PublicTopic::Command)?,
            outcome: id(PublicTopic::Outcome)?,
            rejection: id(PublicTopic::Rejection)?,
        })
    }
}

/// Why a request to a registry failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// No usable response in time: retry.
    #[error("the schema registry at {url} cannot be reached: {detail}")]
    Unreachable {
        /// The registry's URL, without credentials.
        url: String,
        /// The cause, in words.
        detail: String,
    },
    /// The registry refuses the request: a retry does not help.
    #[error("the schema registry refuses {subject}: {detail} (code {code})")]
    Refused {
        /// The subject or the schema of the request.
        subject: String,
        /// The registry's error code.
        code: u64,
        /// The registry's message.
        detail: String,
    },
}

/// The result of a look-up by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The schema's text.
    Schema(String),
    /// The registry has no schema of this id.
    Unknown,
}

/// An HTTP client with the cryptography of this process. Its default timeout is none.
pub fn http_client() -> reqwest::ClientBuilder {
    // Set once per process: a later call fails, and the first provider stays.
    let _first = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// A client of one registry.
#[derive(Clone, Debug)]
pub struct RegistryClient {
    url: String,
    http: reqwest::Client,
}

impl RegistryClient {
    /// A client for the registry at a URL. The URL may have a user and a password, and a path such as Apicurio's
    /// `/apis/ccompat/v7`.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`]: the URL is invalid, or the system has no trusted certificates.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::by(http_client(), url)
    }

    /// The same, with a client that has options of its own.
    ///
    /// # Errors
    /// As [`RegistryClient::new`].
    pub fn by(http: reqwest::ClientBuilder, url: &str) -> Result<Self, ClientError> {
        let url = url.trim_end_matches('/').to_owned();
        let unreachable =
            |error: reqwest::Error| ClientError::Unreachable { url: bare(&url), detail: words(&error) };
        let parsed = reqwest::Url::parse(&url);
        if let Err(error) = parsed {
            return Err(ClientError::Unreachable { url: bare(&url), detail: error.to_string() });
        }
        let http = http.timeout(Duration::from_millis(REQUEST_MS_MAX)).build().map_err(unreachable)?;
        Ok(Self { url, http })
    }

    /// Registers this release's schemas unless they are registered. Retries until the deadline.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn register(
        &self,
        topic: impl Fn(PublicTopic) -> String,
        deadline: Instant,
    ) -> Result<Ids, ClientError> {
        self.ids(topic, deadline, "/versions").await
    }

    /// Finds the ids of this release's schemas, and registers nothing. Retries until the deadline.
    ///
    /// # Errors
    /// [`ClientError`]; `Refused` with 40401 or 40403: the schema is not registered.
    pub async fn check(
        &self,
        topic: impl Fn(PublicTopic) -> String,
        deadline: Instant,
    ) -> Result<Ids, ClientError> {
        self.ids(topic, deadline, "").await
    }

    async fn ids(
        &self,
        topic: impl Fn(PublicTopic) -> String,
        deadline: Instant,
        tail: &str,
    ) -> Result<Ids, ClientError> {
        let mut ids = [0; PublicTopic::ALL.len()];
        for (id, noun) in ids.iter_mut().zip(PublicTopic::ALL) {
            let subject = PublicTopic::subject(&topic(noun));
            let path = format!("/subjects/{}{tail}", escaped(&subject));
            let body = json!({"schema": noun.text()});
            let answer = self.persist(&Method::POST, &path, Some(&body), &subject, deadline).await?;
            let given = answer["id"].as_u64().and_then(|id| u32::try_from(id).ok());
            *id = given.ok_or_else(|| self.strange("the response has no id"))?;
        }
        let [event, command, outcome, rejection] = ids;
        Ok(Ids { event, command, outcome, rejection })
    }

    /// The schema of an id. Does not retry.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`]: whether the schema exists is unknown.
    pub async fn schema(&self, id: u32) -> Result<Found, ClientError> {
        let path = format!("/schemas/ids/{id}");
        match self.ask(&Method::GET, &path, None, &format!("the schema {id}")).await {
            Ok(answer) => match answer["schema"].as_str() {
                Some(text) => Ok(Found::Schema(text.to_owned())),
                None => Err(self.strange("the response has no schema")),
            },
            Err(ClientError::Refused { code: 40_400..=40_499 | 404, .. }) => Ok(Found::Unknown),
            Err(ClientError::Refused { code, detail, .. }) => {
                Err(self.strange(&format!("{detail} (code {code})")))
            }
            Err(away @ ClientError::Unreachable { .. }) => Err(away),
        }
    }

    async fn persist(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        subject: &str,
        deadline: Instant,
    ) -> Result<Value, ClientError> {
        let mut backoff = BACKOFF;
        loop {
            let away = match timeout_at(deadline, self.ask(method, path, body, subject)).await {
                Ok(Err(away @ ClientError::Unreachable { .. })) => away,
                Ok(answer) => return answer,
                Err(_elapsed) => return Err(self.strange("no response in time")),
            };
            let next = Instant::now() + backoff.failed();
            if next >= deadline {
                return Err(away);
            }
            tokio::time::sleep_until(next).await;
        }
    }

    async fn ask(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        subject: &str,
    ) -> Result<Value, ClientError> {
        let mut request = self.http.request(method.clone(), format!("{}{path}", self.url));
        request = request.header("accept", "application/vnd.schemaregistry.v1+json, application/json");
        if let Some(body) = body {
            request = request
                .header("content-type", "application/vnd.schemaregistry.v1+json")
                .body(body.to_string());
        }
        let away = |error: reqwest::Error| self.strange(&words(&error));
        let mut response = request.send().await.map_err(away)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(away)? {
            // JSON escapes each quote in the text of a schema, which takes two bytes.
            if bytes.len() + chunk.len() > 2 * SCHEMA_BYTES_MAX + 4_096 {
                return Err(self.strange("the response is too long"));
            }
            bytes.extend_from_slice(&chunk);
        }
        let answer: Result<Value, _> = serde_json::from_slice(&bytes);
        if status.is_success() {
            return answer.map_err(|_error| self.strange("the response is not JSON"));
        }
        let answer = answer.unwrap_or_default();
        let detail =
            answer["message"].as_str().unwrap_or(status.canonical_reason().unwrap_or_default()).to_owned();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.strange(&detail));
        }
        let code = answer["error_code"].as_u64().unwrap_or(u64::from(status.as_u16()));
        Err(ClientError::Refused { subject: subject.into(), code, detail })
    }

    fn strange(&self, detail: &str) -> ClientError {
        ClientError::Unreachable { url: bare(&self.url), detail: detail.to_owned() }
    }
}

/// The error with its causes, because the outermost text says only that the request failed.
fn words(error: &reqwest::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// A URL without its user and password.
fn bare(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// A subject as one segment of a path, percent-encoded.
fn escaped(subject: &str) -> String {
    let mut escaped = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_told() {
        assert_eq!(bare("https://ann:secret@registry:8081/v1@2"), "https://registry:8081/v1@2");
        assert_eq!(bare("http://registry:8081"), "http://registry:8081");
    }

    #[test]
    fn a_subject_stays_one_part_of_the_path() {
        assert_eq!(escaped("everlog.events-value"), "everlog.events-value");
        assert_eq!(escaped("a/b ü"), "a%2Fb%20%C3%BC");
    }
}
