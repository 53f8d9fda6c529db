//! `POST /commands`: a public command over HTTP. The response comes when the command is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use everlog_auth::Caller;
use everlog_ingress::Taken;
use everlog_log::consumer::Fetched;
use everlog_partition::CallFailure;
use everlog_temporal::Guard;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::public_http::authorization;
use crate::public_http::{busy, refusal};
use crate::services::names::NodeNames;
use crate::services::schemas::Lookup;

/// Takes commands and numbers them.
pub type HttpCommands = everlog_ingress::HttpSource<Lookup, NodeNames>;

/// Takes commands, so many at once.
#[derive(Clone)]
pub struct CommandEndpoint {
    pub inbox: crate::public_http::Inbox,
    pub requests: Arc<Semaphore>,
    pub guard: Option<Guard>,
    /// The settings allow commands.
    pub is_open: bool,
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PostedCommand<'a> {
    key: String,
    /// A command in JSON, which is kept byte for byte.
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    /// The bytes of a record.
    value_base64: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

pub async fn post(
    State(desk): State<CommandEndpoint>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    if !desk.is_open {
        return refusal(StatusCode::NOT_FOUND, "commands are not taken here: ingress.enabled = false");
    }
    let Some(inbox) = desk.inbox.get() else { return busy("the node does not serve yet") };
    let Ok(_place) = desk.requests.try_acquire() else { return busy("too many commands at once") };
    if !is_json(&headers) {
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content-type has to be application/json");
    }
    let body = match body {
        Ok(body) => body,
        Err(error) => return refusal(error.status(), &error.body_text()),
    };
    match record(&body) {
        Ok(record) => {
            let caller = caller.as_ref().map(|Extension(caller)| &**caller);
            match inbox
                .take(record, |body| authorization::may_command(desk.guard.as_ref(), caller, body))
                .await
            {
                Ok(Some(taken)) => told(taken),
                Ok(None) => authorization::denied(),
                Err(failure) => failed(&failure),
            }
        }
        Err(why) => refusal(StatusCode::BAD_REQUEST, &why),
    }
}

/// None of these is what a browser sends without a preflight request.
fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

fn record(body: &[u8]) -> Result<Fetched, String> {
    let PostedCommand { key, value, value_base64, headers } =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let value = match (value, value_base64) {
        (Some(value), None) => Bytes::copy_from_slice(value.get().as_bytes()),
        (None, Some(text)) => STANDARD.decode(text).map_err(|error| format!("value_base64: {error}"))?.into(),
        (None, None) | (Some(_), Some(_)) => {
            return Err("one of value and value_base64 has to be given".into());
        }
    };
    let headers = headers.into_iter().map(|(name, value)| (name, Some(value.into()))).collect();
    Ok(Fetched { key: Some(key.into()), value: Some(value), headers, ..Fetched::default() })
}

fn told(Taken { partition, offset, refused }: Taken) -> Response {
    match refused {
        None => Json(json!({"partition": partition, "offset": offset})).into_response(),
        Some((code, reason)) => {
            let told = json!({"partition": partition, "offset": offset, "code": code, "reason": reason});
            (StatusCode::UNPROCESSABLE_ENTITY, Json(told)).into_response()
        }
    }
}

fn failed(failure: &CallFailure) -> Response {
    match failure {
        CallFailure::Busy => busy("too much is waiting already; nothing was taken"),
        // Only polls get this refusal.
        CallFailure::NamespaceCrowded { .. } | CallFailure::Crowded { .. } => busy("nothing was taken"),
        CallFailure::Full => busy("the disk is full; nothing was taken"),
        CallFailure::Moved => busy("another node serves the partition; nothing was taken"),
        // Lists and counts get the second and the third.
        CallFailure::Unavailable
        | CallFailure::Indexing { .. }
        | CallFailure::TooManyGroups { .. }
        | CallFailure::Internal => refusal(
            StatusCode::GATEWAY_TIMEOUT,
            "nobody knows whether it was taken; with a command-id it counts once",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_taken_byte_for_byte() {
        let body = r#"{"key":"order-1","value":{ "type" : "start" },"headers":{"command-id":"c"}}"#;
        let taken = record(body.as_bytes()).expect("it is one");
        assert_eq!(taken.key.as_deref(), Some(&b"order-1"[..]));
        assert_eq!(taken.value.as_deref(), Some(&br#"{ "type" : "start" }"#[..]));
        assert_eq!(taken.headers, [("command-id".to_owned(), Some("c".into()))]);
        let taken = record(br#"{"key":"order-1","value_base64":"AAAAAAc="}"#).expect("it is one");
        assert_eq!(taken.value.as_deref(), Some(&[0, 0, 0, 0, 7][..]));
    }

    #[test]
    fn what_is_no_record_is_refused_with_a_reason() {
        for (body, why) in [
            ("", "EOF"),
            (r#"{"value":1}"#, "missing field `key`"),
            (r#"{"key":"a"}"#, "one of value and value_base64"),
            (r#"{"key":"a","value":1,"value_base64":""}"#, "one of value and value_base64"),
            (r#"{"key":"a","value_base64":"?"}"#, "value_base64: "),
            (r#"{"key":"a","valeu":1}"#, "unknown field `valeu`"),
        ] {
            let refused = record(body.as_bytes()).expect_err(body);
            assert!(refused.contains(why), "{body}: {refused}");
        }
    }

    #[test]
    fn only_json_is_taken_and_never_what_a_form_sends() {
        let given = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, text.parse().expect("a header"));
            is_json(&headers)
        };
        assert!(given("application/json") && given("Application/JSON; charset=utf-8"));
        assert!(
            !given("text/plain")
                && !given("application/x-www-form-urlencoded")
                && !is_json(&HeaderMap::new())
        );
    }
}
