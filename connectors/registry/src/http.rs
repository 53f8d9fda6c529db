//! Confluent's REST API: the routes, their parameters and their bodies. What Apicurio's serializers call is in `apicurio`.

mod apicurio;
mod serve;

use std::collections::HashMap;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::compatibility::{Against, CompatibilityLevel};
use crate::error::Error;
use crate::http::serve::{RequestRunner, answer, failure};
use crate::mode::Mode;
use crate::subjects::{Subjects, Version, Which};
use crate::submitted_schema::SubmittedSchema;
use crate::work_budget::WorkBudget;
use crate::{Registry, Schema};

/// Schemas in one list.
const SCHEMAS_MAX: usize = 1_000;

type QueryParameters = HashMap<String, String>;

/// The registry's routes, at the root of the registry's URL.
pub fn router(registry: Registry) -> Router {
    let limits = registry.limits;
    // JSON escapes each quote in the text of a schema, which takes two bytes.
    let body_bytes_max = limits.schema_bytes_max.saturating_mul(2).saturating_add(4_096);
    Router::new()
        .route("/", get(async || answer(Ok(json!({})))))
        .route("/contexts", get(async || answer(Ok(json!(["."])))))
        .route("/schemas", get(schemas))
        .route("/schemas/types", get(async || answer(Ok(json!(["AVRO"])))))
        .route("/schemas/guids/{guid}", get(by_guid))
        .route("/schemas/ids/{id}", get(by_id))
        .route("/schemas/ids/{id}/schema", get(text_by_id))
        .route("/schemas/ids/{id}/versions", get(versions_of_id))
        .route("/schemas/ids/{id}/subjects", get(subjects_of_id))
        .route("/subjects", get(subjects))
        .route("/subjects/{subject}", post(find).delete(delete_subject))
        .route("/subjects/{subject}/metadata", get(latest_with_metadata))
        .route("/subjects/{subject}/versions", get(versions).post(register))
        .route("/subjects/{subject}/versions/{version}", get(version).delete(delete_version))
        .route("/subjects/{subject}/versions/{version}/schema", get(version_text))
        .route("/subjects/{subject}/versions/{version}/referencedby", get(referenced_by))
        .route("/compatibility/subjects/{subject}/versions", post(check))
        .route("/compatibility/subjects/{subject}/versions/{version}", post(check_with))
        .route("/config", get(level).put(set_level).delete(unset_level))
        .route("/config/{subject}", get(level_of).put(set_level_of).delete(unset_level_of))
        .route("/mode", get(mode).put(set_mode).delete(unset_mode))
        .route("/mode/{subject}", get(mode_of).put(set_mode_of).delete(unset_mode_of))
        .merge(apicurio::routes())
        .fallback(async || failure(StatusCode::NOT_FOUND, 404, "HTTP 404 Not Found"))
        .method_not_allowed_fallback(async || {
            failure(StatusCode::METHOD_NOT_ALLOWED, 405, "HTTP 405 Method Not Allowed")
        })
        .layer(DefaultBodyLimit::max(body_bytes_max))
        .with_state(RequestRunner::of(registry))
}

/// Whether a parameter is true, in any case of letters.
fn is_true(asked: &QueryParameters, name: &str) -> bool {
    asked.get(name).is_some_and(|given| given.eq_ignore_ascii_case("true"))
}

fn which(asked: &QueryParameters) -> Which {
    match is_true(asked, "deleted") {
        true => Which::All,
        false => Which::Live,
    }
}

/// Which members of a list: live ones, all, or deleted ones only.
fn which_of_a_list(asked: &QueryParameters) -> Which {
    match is_true(asked, "deletedOnly") || is_true(asked, "deleted_only") {
        true => Which::Deleted,
        false => which(asked),
    }
}

/// The requested part of a list: from `offset`, at most `limit`. A negative `limit` is no limit.
fn part<T>(asked: &QueryParameters, list: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let number = |name: &str| asked.get(name).and_then(|given| given.parse::<usize>().ok());
    list.skip(number("offset").unwrap_or(0)).take(number("limit").unwrap_or(usize::MAX))
}

fn page(asked: &QueryParameters, list: impl Iterator<Item = Value>) -> Value {
    part(asked, list).collect()
}

/// The prefix of the requested subjects. A leading `:*:` means all contexts; there is only one.
fn prefix(asked: &QueryParameters) -> &str {
    let given = asked.get("subjectPrefix").map(String::as_str).unwrap_or_default();
    given.strip_prefix(":*:").unwrap_or(given)
}

/// The body of a request with a schema.
#[derive(Deserialize)]
struct SubmittedBody {
    schema: String,
    #[serde(rename = "schemaType")]
    kind: Option<String>,
    references: Option<Vec<Value>>,
    metadata: Option<Value>,
    #[serde(rename = "ruleSet")]
    rules: Option<Value>,
}

fn submitted_text(body: &[u8]) -> Result<String, Error> {
    let given: SubmittedBody =
        serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    if let Some(kind) = given.kind.filter(|kind| kind != "AVRO") {
        return Err(Error::SchemaInvalid(format!("the schema type {kind} is not supported; use AVRO")));
    }
    if given.references.is_some_and(|references| !references.is_empty()) {
        return Err(Error::SchemaInvalid(
            "references are not supported; include the referenced types".into(),
        ));
    }
    if given.metadata.is_some() || given.rules.is_some() {
        return Err(Error::SchemaInvalid("metadata and rules are not supported".into()));
    }
    Ok(given.schema)
}

fn level_given(body: &[u8]) -> Result<CompatibilityLevel, Error> {
    let body: Value = serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    let level = body.get("compatibility").or(body.get("compatibilityLevel")).and_then(Value::as_str);
    level.and_then(CompatibilityLevel::parse).ok_or(Error::LevelInvalid)
}

fn mode_given(body: &[u8]) -> Result<Mode, Error> {
    let body: Value = serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    body["mode"].as_str().and_then(Mode::parse).ok_or(Error::ModeInvalid)
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

fn schema_json(subject: &str, schema: &Schema) -> Value {
    let Schema { id, version, text, is_deleted } = schema;
    let mut told = json!({"subject": subject, "version": version, "id": id, "schema": &**text});
    if *is_deleted {
        told["deleted"] = json!(true);
    }
    told
}

fn json_of(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::Storage(error.to_string()))
}

async fn schemas(State(runner): State<RequestRunner>, Query(asked): Query<QueryParameters>) -> Response {
    runner
        .serve(move |registry| {
            let found = registry.with(|book| schemas_of(book, &asked))?;
            Ok(found.iter().map(|(subject, schema)| schema_json(subject, schema)).collect())
        })
        .await
}

/// The requested schemas, with their subjects.
fn schemas_of(book: &Subjects, asked: &QueryParameters) -> Result<Vec<(String, Schema)>, Error> {
    let (which, latest) = (which(asked), is_true(asked, "latestOnly"));
    let subjects = book.subjects(which).filter(|(subject, _)| subject.starts_with(prefix(asked)));
    let found = subjects.flat_map(|(subject, versions)| {
        let taken = versions.iter().rev().filter(move |(_, version)| which.takes(version.is_deleted));
        let taken: Vec<_> = taken.take(if latest { 1 } else { usize::MAX }).collect();
        let schema =
            |(number, version): (&u32, &Version)| (subject.to_owned(), book.schema(*number, *version));
        taken.into_iter().rev().map(schema)
    });
    let (mut list, mut bytes) = (Vec::new(), 0);
    for (subject, schema) in part(asked, found).take(SCHEMAS_MAX) {
        bytes += subject.len() + schema.text.len();
        if bytes > book.limits.list_bytes_max && !list.is_empty() {
            return Err(Error::ListTooLong(book.limits.list_bytes_max));
        }
        list.push((subject, schema));
    }
    Ok(list)
}

async fn by_guid(Path(guid): Path<String>) -> Response {
    answer(Err(Error::SchemaUnknown(format!("{guid} "))))
}

async fn by_id(
    State(runner): State<RequestRunner>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let mut found = json!({"schema": text_of(book, &id)?});
            if is_true(&asked, "fetchMaxId") {
                found["maxId"] = json!(book.last_id());
            }
            Ok(found)
        })
        .await
}

async fn text_by_id(State(runner): State<RequestRunner>, Path(id): Path<String>) -> Response {
    runner.look(move |book| json_of(text_of(book, &id)?)).await
}

fn text_of<'b>(book: &'b Subjects, id: &str) -> Result<&'b str, Error> {
    book.text(id_given(id)?).ok_or_else(|| Error::SchemaUnknown(format!("{id} ")))
}

/// The versions (subject, number) that use an id.
fn places<'b>(book: &'b Subjects, id: &str, asked: &QueryParameters) -> Result<Vec<(&'b str, u32)>, Error> {
    text_of(book, id)?;
    let (id, which, only) = (id_given(id)?, which(asked), asked.get("subject"));
    let subjects = book.subjects(Which::All).filter(|(subject, _)| only.is_none_or(|only| only == subject));
    let all = subjects.flat_map(|(subject, versions)| versions.iter().map(move |one| (subject, one)));
    let found = all.filter(|(_, (_, version))| version.id == id && which.takes(version.is_deleted));
    Ok(found.map(|(subject, (number, _))| (subject, *number)).collect())
}

async fn versions_of_id(
    State(runner): State<RequestRunner>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let found = places(book, &id, &asked)?.into_iter();
            Ok(page(&asked, found.map(|(subject, version)| json!({"subject": subject, "version": version}))))
        })
        .await
}

async fn subjects_of_id(
    State(runner): State<RequestRunner>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let mut found = places(book, &id, &asked)?;
            found.dedup_by_key(|(subject, _)| *subject);
            Ok(page(&asked, found.into_iter().map(|(subject, _)| json!(subject))))
        })
        .await
}

async fn subjects(State(runner): State<RequestRunner>, Query(asked): Query<QueryParameters>) -> Response {
    runner
        .look(move |book| {
            let found = book.subjects(which_of_a_list(&asked)).map(|(subject, _)| subject);
            let found = found.filter(|subject| subject.starts_with(prefix(&asked)));
            Ok(page(&asked, found.map(|subject| json!(subject))))
        })
        .await
}

async fn find(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    runner
        .check(move |registry, steps| {
            let text = submitted_text(&body)?;
            let new = SubmittedSchema::read(&text, &registry.limits, steps)?;
            let found = registry.with(|book| book.find(&subject, &new, which(&asked)))?;
            Ok(schema_json(&subject, &found))
        })
        .await
}

async fn delete_subject(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    let for_good = is_true(&asked, "permanent");
    runner
        .change(move |registry| {
            registry.change(|book| book.delete_subject(&subject, for_good)).map(|versions| json!(versions))
        })
        .await
}

/// No schema has metadata, so a search by metadata finds nothing.
async fn latest_with_metadata(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let latest = book.version(&subject, None, which(&asked))?;
            match asked.contains_key("key") {
                true => Err(Error::SchemaUnknown(String::new())),
                false => Ok(schema_json(&subject, &latest)),
            }
        })
        .await
}

async fn versions(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let which = which_of_a_list(&asked);
            let found = book.versions(&subject, which)?.iter();
            let found = found.filter(|(_, version)| which.takes(version.is_deleted));
            Ok(page(&asked, found.map(|(number, _)| json!(number))))
        })
        .await
}

async fn register(State(runner): State<RequestRunner>, Path(subject): Path<String>, body: Bytes) -> Response {
    runner
        .check(move |registry, steps| {
            Ok(json!({"id": registry.register_for(steps, &subject, &submitted_text(&body)?)?}))
        })
        .await
}

/// The subject and the version of a path.
type VersionPath = Path<(String, String)>;

async fn version(
    State(runner): State<RequestRunner>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            Ok(schema_json(&subject, &book.version(&subject, version_given(&version)?, which(&asked))?))
        })
        .await
}

async fn delete_version(
    State(runner): State<RequestRunner>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    let for_good = is_true(&asked, "permanent");
    runner
        .change(move |registry| {
            let version = version_given(&version)?;
            registry
                .change(|book| book.delete_version(&subject, version, for_good))
                .map(|version| json!(version))
        })
        .await
}

async fn version_text(
    State(runner): State<RequestRunner>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| json_of(&book.version(&subject, version_given(&version)?, which(&asked))?.text))
        .await
}

/// References are not supported, so no schema is referenced.
async fn referenced_by(
    State(runner): State<RequestRunner>,
    Path((subject, version)): VersionPath,
) -> Response {
    runner
        .look(move |book| {
            book.version(&subject, version_given(&version)?, Which::All)?;
            Ok(json!([]))
        })
        .await
}

async fn check(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    runner
        .check(move |registry, steps| {
            let against = |book: &Subjects| Ok(book.against(&subject));
            verdict(registry, steps, &asked, (&submitted_text(&body)?, &against))
        })
        .await
}

async fn check_with(
    State(runner): State<RequestRunner>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    runner
        .check(move |registry, steps| {
            let version = version_given(&version)?;
            let against = |book: &Subjects| book.against_one(&subject, version);
            verdict(registry, steps, &asked, (&submitted_text(&body)?, &against))
        })
        .await
}

/// Finds the versions that a schema is compared with.
type Finds<'a> = &'a dyn Fn(&Subjects) -> Result<Against, Error>;

/// Whether a schema is compatible. `verbose=true` requests the reasons.
fn verdict(
    registry: &Registry,
    steps: &WorkBudget,
    asked: &QueryParameters,
    (text, against): (&str, Finds<'_>),
) -> Result<Value, Error> {
    let new = SubmittedSchema::read(text, &registry.limits, steps)?;
    let found = registry.with(|book| against(book))?.check(&new.avro, steps)?;
    let mut told = json!({"is_compatible": found.is_empty()});
    if !found.is_empty() && is_true(asked, "verbose") {
        told["messages"] = json!(found);
    }
    Ok(told)
}

/// The setting of a subject, or the global one if `defaultToGlobal=true`.
fn own_or_global<T>(asked: &QueryParameters, own: Option<T>, global: T) -> Option<T> {
    own.or_else(|| is_true(asked, "defaultToGlobal").then_some(global))
}

async fn level(State(runner): State<RequestRunner>) -> Response {
    runner.look(|book| Ok(json!({"compatibilityLevel": book.level().name()}))).await
}

async fn level_of(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let level = own_or_global(&asked, book.level_of(&subject), book.level());
            let level = level.ok_or(Error::LevelUnknown(subject))?;
            Ok(json!({"compatibilityLevel": level.name()}))
        })
        .await
}

async fn set_level(State(runner): State<RequestRunner>, body: Bytes) -> Response {
    runner.change(move |registry| leveled(registry, None, &body)).await
}

async fn set_level_of(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    body: Bytes,
) -> Response {
    runner.change(move |registry| leveled(registry, Some(&subject), &body)).await
}

fn leveled(registry: &Registry, subject: Option<&str>, body: &[u8]) -> Result<Value, Error> {
    let level = level_given(body)?;
    registry.set_level(subject, level)?;
    Ok(json!({"compatibility": level.name()}))
}

async fn unset_level(State(runner): State<RequestRunner>) -> Response {
    runner.change(|registry| unleveled(registry, None)).await
}

async fn unset_level_of(State(runner): State<RequestRunner>, Path(subject): Path<String>) -> Response {
    runner.change(move |registry| unleveled(registry, Some(&subject))).await
}

fn unleveled(registry: &Registry, subject: Option<&str>) -> Result<Value, Error> {
    registry.change(|book| {
        let before = match subject {
            None => book.level(),
            Some(subject) => {
                book.level_of(subject).ok_or_else(|| Error::SubjectUnknown(subject.to_owned()))?
            }
        };
        Ok((json!({"compatibilityLevel": before.name()}), vec![book.set_level(subject, None)?]))
    })
}

async fn mode(State(runner): State<RequestRunner>) -> Response {
    runner.look(|book| Ok(json!({"mode": book.mode().name()}))).await
}

async fn mode_of(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    runner
        .look(move |book| {
            let mode = own_or_global(&asked, book.mode_of(&subject), book.mode());
            Ok(json!({"mode": mode.ok_or(Error::ModeUnknown(subject))?.name()}))
        })
        .await
}

async fn set_mode(State(runner): State<RequestRunner>, body: Bytes) -> Response {
    runner.change(move |registry| moded(registry, None, &body)).await
}

async fn set_mode_of(
    State(runner): State<RequestRunner>,
    Path(subject): Path<String>,
    body: Bytes,
) -> Response {
    runner.change(move |registry| moded(registry, Some(&subject), &body)).await
}

fn moded(registry: &Registry, subject: Option<&str>, body: &[u8]) -> Result<Value, Error> {
    let mode = mode_given(body)?;
    registry.change(|book| Ok((json!({"mode": mode.name()}), vec![book.set_mode(subject, Some(mode))?])))
}

async fn unset_mode(State(runner): State<RequestRunner>) -> Response {
    runner.change(|registry| unmoded(registry, None)).await
}

async fn unset_mode_of(State(runner): State<RequestRunner>, Path(subject): Path<String>) -> Response {
    runner.change(move |registry| unmoded(registry, Some(&subject))).await
}

fn unmoded(registry: &Registry, subject: Option<&str>) -> Result<Value, Error> {
    registry.change(|book| {
        let before = match subject {
            None => book.mode(),
            Some(subject) => {
                book.mode_of(subject).ok_or_else(|| Error::SubjectUnknown(subject.to_owned()))?
            }
        };
        Ok((json!({"mode": before.name()}), vec![book.set_mode(subject, None)?]))
    })
}
