//! Confluent's REST API.

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
use crate::http::serve::{Shop, answer, failure};
use crate::mode::Mode;
use crate::subjects::{Subjects, Version, Which};
use crate::submitted_schema::SubmittedSchema;
use crate::work_budget::WorkBudget;
use crate::{Registry, Schema};

/// Schemas of one response that lists them.
const SCHEMAS_MAX: usize = 1_000;

type QueryParameters = HashMap<String, String>;

/// The registry's routes, from the root of the URL that clients are given.
pub fn router(registry: Registry) -> Router {
    let limits = registry.limits;
    // The text of a schema stands in JSON, where each of its quotes takes two bytes.
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
        .fallback(async || failure(StatusCode::NOT_FOUND, 404, "HTTP 404 Not Found"))
        .method_not_allowed_fallback(async || {
            failure(StatusCode::METHOD_NOT_ALLOWED, 405, "HTTP 405 Method Not Allowed")
        })
        .layer(DefaultBodyLimit::max(body_bytes_max))
        .with_state(Shop::of(registry))
}

/// Whether a parameter is true, in whatever letters a language writes that.
fn is_true(asked: &QueryParameters, name: &str) -> bool {
    asked.get(name).is_some_and(|given| given.eq_ignore_ascii_case("true"))
}

fn which(asked: &QueryParameters) -> Which {
    match is_true(asked, "deleted") {
        true => Which::All,
        false => Which::Live,
    }
}

/// Which members of a list: with those that are deleted, or only those.
fn which_of_a_list(asked: &QueryParameters) -> Which {
    match is_true(asked, "deletedOnly") || is_true(asked, "deleted_only") {
        true => Which::Deleted,
        false => which(asked),
    }
}

/// The part of a list that is asked for: from `offset` on, `limit` at most where that is not negative.
fn part<T>(asked: &QueryParameters, list: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let number = |name: &str| asked.get(name).and_then(|given| given.parse::<usize>().ok());
    list.skip(number("offset").unwrap_or(0)).take(number("limit").unwrap_or(usize::MAX))
}

fn page(asked: &QueryParameters, list: impl Iterator<Item = Value>) -> Value {
    part(asked, list).collect()
}

/// Subjects begin with this; `:*:` stands in front for all contexts, of which there is one.
fn prefix(asked: &QueryParameters) -> &str {
    let given = asked.get("subjectPrefix").map(String::as_str).unwrap_or_default();
    given.strip_prefix(":*:").unwrap_or(given)
}

/// The body of a request that brings a schema.
#[derive(Deserialize)]
struct Given {
    schema: String,
    #[serde(rename = "schemaType")]
    kind: Option<String>,
    references: Option<Vec<Value>>,
    metadata: Option<Value>,
    #[serde(rename = "ruleSet")]
    rules: Option<Value>,
}

fn given(body: &[u8]) -> Result<String, Error> {
    let given: Given = serde_json::from_slice(body).map_err(|error| Error::Request(error.to_string()))?;
    if let Some(kind) = given.kind.filter(|kind| kind != "AVRO") {
        return Err(Error::SchemaInvalid(format!("schemas of the type {kind} are not taken, only AVRO")));
    }
    if given.references.is_some_and(|references| !references.is_empty()) {
        return Err(Error::SchemaInvalid("references are not taken: a schema has to be whole".into()));
    }
    if given.metadata.is_some() || given.rules.is_some() {
        return Err(Error::SchemaInvalid("metadata and rules are not taken".into()));
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

fn told(subject: &str, schema: &Schema) -> Value {
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

async fn schemas(State(shop): State<Shop>, Query(asked): Query<QueryParameters>) -> Response {
    shop.serve(move |registry| {
        let found = registry.with(|book| schemas_of(book, &asked))?;
        Ok(found.iter().map(|(subject, schema)| told(subject, schema)).collect())
    })
    .await
}

/// The schemas that are asked for, with their subjects.
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
    State(shop): State<Shop>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let mut found = json!({"schema": text_of(book, &id)?});
        if is_true(&asked, "fetchMaxId") {
            found["maxId"] = json!(book.last_id());
        }
        Ok(found)
    })
    .await
}

async fn text_by_id(State(shop): State<Shop>, Path(id): Path<String>) -> Response {
    shop.look(move |book| json_of(text_of(book, &id)?)).await
}

fn text_of<'b>(book: &'b Subjects, id: &str) -> Result<&'b str, Error> {
    book.text(id_given(id)?).ok_or_else(|| Error::SchemaUnknown(format!("{id} ")))
}

/// The places (subject, version) of an id.
fn places<'b>(book: &'b Subjects, id: &str, asked: &QueryParameters) -> Result<Vec<(&'b str, u32)>, Error> {
    text_of(book, id)?;
    let (id, which, only) = (id_given(id)?, which(asked), asked.get("subject"));
    let subjects = book.subjects(Which::All).filter(|(subject, _)| only.is_none_or(|only| only == subject));
    let all = subjects.flat_map(|(subject, versions)| versions.iter().map(move |one| (subject, one)));
    let found = all.filter(|(_, (_, version))| version.id == id && which.takes(version.is_deleted));
    Ok(found.map(|(subject, (number, _))| (subject, *number)).collect())
}

async fn versions_of_id(
    State(shop): State<Shop>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let found = places(book, &id, &asked)?.into_iter();
        Ok(page(&asked, found.map(|(subject, version)| json!({"subject": subject, "version": version}))))
    })
    .await
}

async fn subjects_of_id(
    State(shop): State<Shop>,
    Path(id): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let mut found = places(book, &id, &asked)?;
        found.dedup_by_key(|(subject, _)| *subject);
        Ok(page(&asked, found.into_iter().map(|(subject, _)| json!(subject))))
    })
    .await
}

async fn subjects(State(shop): State<Shop>, Query(asked): Query<QueryParameters>) -> Response {
    shop.look(move |book| {
        let found = book.subjects(which_of_a_list(&asked)).map(|(subject, _)| subject);
        let found = found.filter(|subject| subject.starts_with(prefix(&asked)));
        Ok(page(&asked, found.map(|subject| json!(subject))))
    })
    .await
}

async fn find(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    shop.check(move |registry, steps| {
        let text = given(&body)?;
        let new = SubmittedSchema::read(&text, &registry.limits, steps)?;
        let found = registry.with(|book| book.find(&subject, &new, which(&asked)))?;
        Ok(told(&subject, &found))
    })
    .await
}

async fn delete_subject(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    let for_good = is_true(&asked, "permanent");
    shop.change(move |registry| {
        registry.change(|book| book.delete_subject(&subject, for_good)).map(|versions| json!(versions))
    })
    .await
}

/// Nothing has metadata: what is looked for by any is not there.
async fn latest_with_metadata(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let latest = book.version(&subject, None, which(&asked))?;
        match asked.contains_key("key") {
            true => Err(Error::SchemaUnknown(String::new())),
            false => Ok(told(&subject, &latest)),
        }
    })
    .await
}

async fn versions(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let which = which_of_a_list(&asked);
        let found = book.versions(&subject, which)?.iter();
        let found = found.filter(|(_, version)| which.takes(version.is_deleted));
        Ok(page(&asked, found.map(|(number, _)| json!(number))))
    })
    .await
}

async fn register(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.check(move |registry, steps| {
        Ok(json!({"id": registry.register_for(steps, &subject, &given(&body)?)?}))
    })
    .await
}

/// The subject and the version of a path.
type VersionPath = Path<(String, String)>;

async fn version(
    State(shop): State<Shop>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        Ok(told(&subject, &book.version(&subject, version_given(&version)?, which(&asked))?))
    })
    .await
}

async fn delete_version(
    State(shop): State<Shop>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    let for_good = is_true(&asked, "permanent");
    shop.change(move |registry| {
        let version = version_given(&version)?;
        registry.change(|book| book.delete_version(&subject, version, for_good)).map(|version| json!(version))
    })
    .await
}

async fn version_text(
    State(shop): State<Shop>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| json_of(&book.version(&subject, version_given(&version)?, which(&asked))?.text))
        .await
}

/// References are not taken, so nothing has any.
async fn referenced_by(State(shop): State<Shop>, Path((subject, version)): VersionPath) -> Response {
    shop.look(move |book| {
        book.version(&subject, version_given(&version)?, Which::All)?;
        Ok(json!([]))
    })
    .await
}

async fn check(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    shop.check(move |registry, steps| {
        let against = |book: &Subjects| Ok(book.against(&subject));
        verdict(registry, steps, &asked, (&given(&body)?, &against))
    })
    .await
}

async fn check_with(
    State(shop): State<Shop>,
    Path((subject, version)): VersionPath,
    Query(asked): Query<QueryParameters>,
    body: Bytes,
) -> Response {
    shop.check(move |registry, steps| {
        let version = version_given(&version)?;
        let against = |book: &Subjects| book.against_one(&subject, version);
        verdict(registry, steps, &asked, (&given(&body)?, &against))
    })
    .await
}

/// Finds what a schema is held against.
type Finds<'a> = &'a dyn Fn(&Subjects) -> Result<Against, Error>;

/// Whether a schema goes with what it is held against. Reasons are told to who asks for them.
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

/// What a subject has itself, or what all have where that is asked for.
fn own_or_global<T>(asked: &QueryParameters, own: Option<T>, global: T) -> Option<T> {
    own.or_else(|| is_true(asked, "defaultToGlobal").then_some(global))
}

async fn level(State(shop): State<Shop>) -> Response {
    shop.look(|book| Ok(json!({"compatibilityLevel": book.level().name()}))).await
}

async fn level_of(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let level = own_or_global(&asked, book.level_of(&subject), book.level());
        let level = level.ok_or(Error::LevelUnknown(subject))?;
        Ok(json!({"compatibilityLevel": level.name()}))
    })
    .await
}

async fn set_level(State(shop): State<Shop>, body: Bytes) -> Response {
    shop.change(move |registry| leveled(registry, None, &body)).await
}

async fn set_level_of(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.change(move |registry| leveled(registry, Some(&subject), &body)).await
}

fn leveled(registry: &Registry, subject: Option<&str>, body: &[u8]) -> Result<Value, Error> {
    let level = level_given(body)?;
    registry.set_level(subject, level)?;
    Ok(json!({"compatibility": level.name()}))
}

async fn unset_level(State(shop): State<Shop>) -> Response {
    shop.change(|registry| unleveled(registry, None)).await
}

async fn unset_level_of(State(shop): State<Shop>, Path(subject): Path<String>) -> Response {
    shop.change(move |registry| unleveled(registry, Some(&subject))).await
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

async fn mode(State(shop): State<Shop>) -> Response {
    shop.look(|book| Ok(json!({"mode": book.mode().name()}))).await
}

async fn mode_of(
    State(shop): State<Shop>,
    Path(subject): Path<String>,
    Query(asked): Query<QueryParameters>,
) -> Response {
    shop.look(move |book| {
        let mode = own_or_global(&asked, book.mode_of(&subject), book.mode());
        Ok(json!({"mode": mode.ok_or(Error::ModeUnknown(subject))?.name()}))
    })
    .await
}

async fn set_mode(State(shop): State<Shop>, body: Bytes) -> Response {
    shop.change(move |registry| moded(registry, None, &body)).await
}

async fn set_mode_of(State(shop): State<Shop>, Path(subject): Path<String>, body: Bytes) -> Response {
    shop.change(move |registry| moded(registry, Some(&subject), &body)).await
}

fn moded(registry: &Registry, subject: Option<&str>, body: &[u8]) -> Result<Value, Error> {
    let mode = mode_given(body)?;
    registry.change(|book| Ok((json!({"mode": mode.name()}), vec![book.set_mode(subject, Some(mode))?])))
}

async fn unset_mode(State(shop): State<Shop>) -> Response {
    shop.change(|registry| unmoded(registry, None)).await
}

async fn unset_mode_of(State(shop): State<Shop>, Path(subject): Path<String>) -> Response {
    shop.change(move |registry| unmoded(registry, Some(&subject))).await
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
