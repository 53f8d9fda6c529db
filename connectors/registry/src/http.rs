//! Confluent's REST interface.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::book::Book;
use crate::compatibility::Level;
use crate::error::Error;
use crate::{Registry, Schema};

const CONTENT_TYPE: &str = "application/vnd.schemaregistry.v1+json";

#[derive(Clone)]
struct Shop {
    registry: Registry,
    requests: Arc<Semaphore>,
}

type Asked = HashMap<String, String>;

/// The registry's routes, from the root of the URL that clients are given.
pub fn router(registry: Registry) -> Router {
    let limits = registry.with(|book| book.limits);
    // The text of a schema stands in JSON, where each of its quotes takes two bytes.
    let body_bytes_max = limits.schema_bytes_max.saturating_mul(2).saturating_add(4_096);
    Router::new()
        .route("/", get(async || answer(Ok(json!({})))))
        .route("/mode", get(async || answer(Ok(json!({"mode": "READWRITE"})))))
        .route("/schemas/types", get(async || answer(Ok(json!(["AVRO"])))))
        .route("/schemas/ids/{id}", get(by_id))
        .route("/schemas/ids/{id}/schema", get(text_by_id))
        .route("/schemas/ids/{id}/versions", get(versions_of_id))
        .route("/schemas/ids/{id}/subjects", get(subjects_of_id))
        .route("/subjects", get(subjects))
        .route("/subjects/{subject}", post(find))
        .route("/subjects/{subject}/versions", get(versions).post(register))
        .route("/subjects/{subject}/versions/{version}", get(version))
        .route("/subjects/{subject}/versions/{version}/schema", get(version_text))
        .route("/compatibility/subjects/{subject}/versions", post(check))
        .route("/compatibility/subjects/{subject}/versions/{version}", post(check_with))
        .route("/config", get(level).put(set_level))
        .route("/config/{subject}", get(level_of).put(set_level_of))
        .fallback(async || failure(StatusCode::NOT_FOUND, 404, "HTTP 404 Not Found"))
        .layer(DefaultBodyLimit::max(body_bytes_max))
        .with_state(Shop { registry, requests: Arc::new(Semaphore::new(limits.requests_max)) })
}

fn answer(result: Result<Value, Error>) -> Response {
    match result {
        Ok(value) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], value.to_string()).into_response(),
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            failure(status, error.code(), &error.to_string())
        }
    }
}

fn failure(status: StatusCode, code: u32, message: &str) -> Response {
    let body = json!({"error_code": code, "message": message}).to_string();
    (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response()
}

impl Shop {
    /// Does it on a thread that may wait: for the lock, for the storage.
    async fn serve(self, work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static) -> Response {
        let Ok(permit) = self.requests.clone().try_acquire_owned() else { return answer(Err(Error::Busy)) };
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&self.registry)
        });
        match work.await {
            Ok(result) => answer(result),
            Err(_panic) => answer(Err(Error::Storage("the request broke off".into()))),
        }
    }

    async fn look(self, look: impl FnOnce(&Book) -> Result<Value, Error> + Send + 'static) -> Response {
        self.serve(|registry| registry.with(|book| look(book))).await
    }
}

/// The body of a request that brings a schema.
#[derive(Deserialize)]
struct Given {
    schema: String,
    #[serde(rename = "schemaType")]
    kind: Option<String>,
    references: Option<Vec<Value>>,
}

fn given(body: &[u8]) -> Result<String, Error> {
    let given: Given = serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    if let Some(kind) = given.kind.filter(|kind| kind != "AVRO") {
        return Err(Error::SchemaInvalid(format!("schemas of the type {kind} are not taken, only AVRO")));
    }
    if given.references.is_some_and(|references| !references.is_empty()) {
        return Err(Error::SchemaInvalid("references are not taken: a schema has to be whole".into()));
    }
    Ok(given.schema)
}

fn level_given(body: &[u8]) -> Result<Level, Error> {
    let body: Value = serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    body["compatibility"].as_str().and_then(Level::parse).ok_or(Error::LevelInvalid)
}

fn version_given(version: &str) -> Result<Option<u32>, Error> {
    match version {
        "latest" | "-1" => Ok(None),
        number => match number.parse::<u32>() {
            Ok(version) if (1..=i32::MAX as u32).contains(&version) => Ok(Some(version)),
            _other => Err(Error::VersionInvalid(version.into())),
        },
    }
}

fn id_given(id: &str) -> Result<u32, Error> {
    id.parse().map_err(|_error| Error::SchemaUnknown(format!("{id} ")))
}

fn told(subject: &str, schema: &Schema) -> Value {
    json!({"subject": subject, "version": schema.version, "id": schema.id, "schema": schema.text})
}

fn json_of(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::Storage(error.to_string()))
}

async fn by_id(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    shop.look(move |book| Ok(json!({"schema": text_of(book, &id)?}))).await
}

async fn text_by_id(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    shop.look(move |book| json_of(text_of(book, &id)?)).await
}

fn text_of<'b>(book: &'b Book, id: &str) -> Result<&'b str, Error> {
    book.text(id_given(id)?).ok_or_else(|| Error::SchemaUnknown(format!("{id} ")))
}

async fn versions_of_id(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    shop.look(move |book| {
        text_of(book, &id)?;
        let id = id_given(&id)?;
        let places = book.subjects().flat_map(|(subject, versions)| {
            let found = versions.iter().filter(move |(_, other)| **other == id);
            found.map(move |(version, _)| json!({"subject": subject, "version": version}))
        });
        Ok(places.collect())
    })
    .await
}

async fn subjects_of_id(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    shop.look(move |book| {
        text_of(book, &id)?;
        let id = id_given(&id)?;
        let found = book.subjects().filter(|(_, versions)| versions.values().any(|other| *other == id));
        Ok(found.map(|(subject, _)| json!(subject)).collect())
    })
    .await
}

async fn subjects(State(shop): State<Shop>, Query(asked): Query<Asked>) -> Response {
    shop.look(move |book| {
        let prefix = asked.get("subjectPrefix").map(String::as_str).unwrap_or_default();
        let found = book.subjects().filter(|(subject, _)| subject.starts_with(prefix));
        Ok(found.map(|(subject, _)| json!(subject)).collect())
    })
    .await
}

async fn find(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.look(move |book| {
        let schema = given(&body)?;
        Ok(told(&subject, &book.find(&subject, &schema)?))
    })
    .await
}

async fn versions(State(shop): State<Shop>, Path(subject): Path<String>) -> Response {
    shop.look(move |book| Ok(book.versions(&subject)?.keys().map(|version| json!(version)).collect())).await
}

async fn register(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.serve(move |registry| Ok(json!({"id": registry.register(&subject, &given(&body)?)?}))).await
}

async fn version(State(shop): State<Shop>, Path((subject, version)): Path<(String, String)>) -> Response {
    shop.look(move |book| Ok(told(&subject, &book.version(&subject, version_given(&version)?)?))).await
}

async fn version_text(
    State(shop): State<Shop>,
    Path((subject, version)): Path<(String, String)>,
) -> Response {
    shop.look(move |book| json_of(&book.version(&subject, version_given(&version)?)?.text)).await
}

async fn check(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.look(move |book| Ok(verdict(book.check(&subject, &given(&body)?)?))).await
}

async fn check_with(
    State(shop): State<Shop>,
    Path((subject, version)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    shop.look(move |book| Ok(verdict(book.check_with(&subject, version_given(&version)?, &given(&body)?)?)))
        .await
}

fn verdict(checked: Result<(), Vec<String>>) -> Value {
    match checked {
        Ok(()) => json!({"is_compatible": true}),
        Err(found) => json!({"is_compatible": false, "messages": found}),
    }
}

async fn level(State(shop): State<Shop>) -> Response {
    shop.look(|book| Ok(json!({"compatibilityLevel": book.level().name()}))).await
}

async fn level_of(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<Asked>,
) -> Response {
    shop.look(move |book| {
        let or_global = asked.get("defaultToGlobal").is_some_and(|given| given == "true");
        let level = book.level_of(&subject).or_else(|| or_global.then(|| book.level()));
        let level = level.ok_or(Error::LevelUnknown(subject))?;
        Ok(json!({"compatibilityLevel": level.name()}))
    })
    .await
}

async fn set_level(State(shop): State<Shop>, body: Bytes) -> Response {
    shop.serve(move |registry| leveled(registry, None, &body)).await
}

async fn set_level_of(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.serve(move |registry| leveled(registry, Some(&subject), &body)).await
}

fn leveled(registry: &Registry, subject: Option<&str>, body: &[u8]) -> Result<Value, Error> {
    let level = level_given(body)?;
    registry.set_level(subject, level)?;
    Ok(json!({"compatibility": level.name()}))
}
