//! The calls of Apicurio's serializers (version 2 of its API). An artifact of the group `default` is a subject. The id of a schema is
//! its content id and its global id.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::error::Error;
use crate::http::serve::RequestRunner;
use crate::http::{QueryParameters, json_of, text_of, version_given};
use crate::subjects::{Subjects, Which};
use crate::submitted_schema::SubmittedSchema;

const ROOT: &str = "/apis/registry/v2";
/// Where a client names no group.
const GROUP: &str = "default";

pub(super) fn routes() -> Router<RequestRunner> {
    let artifact = format!("{ROOT}/groups/{{group}}/artifacts/{{artifact}}");
    let routes = Router::new()
        .route(&format!("{ROOT}/groups/{{group}}/artifacts"), post(register))
        .route(&format!("{artifact}/meta"), get(latest).post(find))
        .route(&format!("{artifact}/versions/{{version}}/meta"), get(version));
    ["contentIds", "globalIds"].into_iter().fold(routes, |routes, ids| {
        let id = format!("{ROOT}/ids/{ids}/{{id}}");
        routes.route(&id, get(text_by_id)).route(&format!("{id}/references"), get(references))
    })
}

/// Registers a schema, or finds it among the versions of its subject.
async fn register(
    State(runner): State<RequestRunner>,
    Path(group): Path<String>,
    Query(asked): Query<QueryParameters>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    runner
        .check(move |registry, steps| {
            let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
            let subject = header("x-registry-artifactid").unwrap_or_default().to_owned();
            let is_avro = header("x-registry-artifacttype").is_none_or(|kind| kind == "AVRO");
            let refused = match asked.get("ifExists").map(String::as_str) {
                _ if group != GROUP => Some("the only group is `default`"),
                _ if subject.is_empty() => Some("the header X-Registry-ArtifactId is missing"),
                _ if !is_avro => Some("the only artifact type is AVRO"),
                _ if header("x-registry-version").is_some() => Some("a version is given by the registry"),
                Some("RETURN_OR_UPDATE") => None,
                _other => Some("ifExists must be RETURN_OR_UPDATE"),
            };
            if let Some(refused) = refused {
                return Err(Error::Request(refused.into()));
            }
            let id = registry.register_for(steps, &subject, text(&body)?)?;
            registry.with(|book| {
                let versions = book.versions(&subject, Which::Live)?;
                let version = versions.iter().find(|(_, version)| version.id == id && !version.is_deleted);
                let (version, _) = version.ok_or_else(|| Error::SubjectUnknown(subject.clone()))?;
                Ok(metadata(&subject, *version, id))
            })
        })
        .await
}

async fn latest(State(runner): State<RequestRunner>, Path(path): Path<(String, String)>) -> Response {
    runner.look(move |book| version_of(book, subject_of(path)?, "latest")).await
}

async fn version(
    State(runner): State<RequestRunner>,
    Path((group, artifact, version)): Path<(String, String, String)>,
) -> Response {
    runner.look(move |book| version_of(book, subject_of((group, artifact))?, &version)).await
}

/// The version of a subject that has a schema.
async fn find(
    State(runner): State<RequestRunner>,
    Path(path): Path<(String, String)>,
    body: Bytes,
) -> Response {
    runner
        .check(move |registry, steps| {
            let subject = subject_of(path)?;
            let new = SubmittedSchema::read(text(&body)?, &registry.limits, steps)?;
            let found = registry.with(|book| book.find(&subject, &new, Which::Live))?;
            Ok(metadata(&subject, found.version, found.id))
        })
        .await
}

async fn text_by_id(State(runner): State<RequestRunner>, Path(id): Path<String>) -> Response {
    runner.look(move |book| json_of(text_of(book, &id)?)).await
}

/// References are not supported, so no schema has any.
async fn references(State(runner): State<RequestRunner>, Path(id): Path<String>) -> Response {
    runner.look(move |book| text_of(book, &id).map(|_text| json!([]))).await
}

fn text(body: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(body).map_err(|error| Error::Request(error.to_string()))
}

/// The subject of a group and an artifact.
fn subject_of((group, artifact): (String, String)) -> Result<String, Error> {
    if group == GROUP { Ok(artifact) } else { Err(Error::SubjectUnknown(format!("{group}/{artifact}"))) }
}

fn version_of(book: &Subjects, subject: String, version: &str) -> Result<Value, Error> {
    let found = book.version(&subject, version_given(version)?, Which::Live)?;
    Ok(metadata(&subject, found.version, found.id))
}

fn metadata(subject: &str, version: u32, id: u32) -> Value {
    json!({
        "groupId": GROUP,
        "id": subject,
        "version": version.to_string(),
        "type": "AVRO",
        "state": "ENABLED",
        "globalId": id,
        "contentId": id,
        "references": [],
    })
}
