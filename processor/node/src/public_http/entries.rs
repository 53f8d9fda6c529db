//! `GET /events`, `/replies` and `/rejections`: records of a public topic of the embedded log.

use std::sync::{Arc, Weak};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use everlog_log::{Error, Log, Topic, TopicEntry};
use everlog_rocks::log::Embedded;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::public_http::{busy, refusal};

/// Records of a response: the default and the most.
const ENTRIES: usize = 100;
const ENTRIES_MAX: usize = 1_000;
/// Bytes of the records of a response; one record always fits.
const BYTES_MAX: usize = 1 << 20;

/// Reads topics, so many at once. Does not keep the log open.
#[derive(Clone)]
pub struct EntriesEndpoint {
    pub log: Weak<Embedded>,
    pub topic: Topic,
    pub requests: Arc<Semaphore>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntriesQuery {
    #[serde(default)]
    partition: u32,
    /// The first offset; absent: the first one that is there.
    offset: Option<u64>,
    #[serde(default = "entries")]
    max: usize,
}

fn entries() -> usize {
    ENTRIES
}

pub async fn get(
    State(shelf): State<EntriesEndpoint>,
    asked: Result<Query<EntriesQuery>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let asked = match asked {
        Ok(Query(asked)) if asked.max <= ENTRIES_MAX => asked,
        Ok(_) => return refusal(StatusCode::BAD_REQUEST, &format!("max is {ENTRIES_MAX} at most")),
        Err(error) => return refusal(StatusCode::BAD_REQUEST, &error.body_text()),
    };
    let Ok(place) = Arc::clone(&shelf.requests).try_acquire_owned() else {
        return busy("too many reads at once");
    };
    let read = tokio::task::spawn_blocking(move || {
        let _place = place;
        shelf.read(&asked)
    });
    match read.await {
        Ok(Ok(page)) => Json(page).into_response(),
        Ok(Err(error @ (Error::OutOfRange { .. } | Error::Refused { .. }))) => {
            refusal(StatusCode::BAD_REQUEST, &error.to_string())
        }
        Ok(Err(error)) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        Err(_panicked) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "the read broke off"),
    }
}

impl EntriesEndpoint {
    fn read(&self, asked: &EntriesQuery) -> Result<Value, Error> {
        let log = self.log.upgrade().ok_or(Error::Closed)?;
        let mut bounds = log.topic_bounds(self.topic, asked.partition)?;
        let from = asked.offset.unwrap_or(bounds.start).max(bounds.start);
        let mut read = match asked.max {
            0 if from <= bounds.end => Vec::new(),
            _ => log.topic_read(self.topic, asked.partition, from, BYTES_MAX)?,
        };
        read.truncate(asked.max);
        let next = read.last().map_or(from, |(offset, ..)| offset + 1);
        // More may have come since the bounds were read.
        bounds.end = bounds.end.max(next);
        Ok(json!({
            "partitions": log.partitions(),
            "partition": asked.partition,
            "start": bounds.start,
            "end": bounds.end,
            "next": next,
            "records": read.iter().map(told).collect::<Vec<_>>(),
        }))
    }
}

fn told((offset, key, value): &TopicEntry) -> Value {
    json!({"offset": offset, "key_base64": STANDARD.encode(key), "value_base64": STANDARD.encode(value)})
}
