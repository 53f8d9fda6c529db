//! How requests are served: so many at once, on threads that may wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::Registry;
use crate::book::Book;
use crate::error::Error;
use crate::steps::Steps;

const CONTENT_TYPE: &str = "application/vnd.schemaregistry.v1+json";

#[derive(Clone)]
pub(super) struct Shop {
    registry: Registry,
    requests: Arc<Semaphore>,
}

impl Shop {
    pub(super) fn of(registry: Registry) -> Self {
        let requests = Arc::new(Semaphore::new(registry.limits.requests_max));
        Self { registry, requests }
    }

    /// Does it on a thread that may wait: for the lock, for the storage.
    pub(super) async fn serve(
        self,
        work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        let Ok(permit) = self.requests.clone().try_acquire_owned() else {
            self.registry.stats.requests_refused.fetch_add(1, Ordering::Relaxed);
            return answer(Err(Error::Busy));
        };
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&self.registry)
        });
        match work.await {
            Ok(result) => answer(result),
            Err(_panic) => answer(Err(Error::Storage("the request broke off".into()))),
        }
    }

    pub(super) async fn look(
        self,
        look: impl FnOnce(&Book) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.serve(|registry| registry.with(|book| look(book))).await
    }

    /// Does what reads schemas and compares them; it stops when nobody waits for the answer.
    pub(super) async fn check(
        self,
        work: impl FnOnce(&Registry, &Steps) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        let asker = Arc::new(());
        let waiting = Arc::downgrade(&asker);
        let answer = self.serve(move |registry| {
            let done = work(registry, &registry.steps(waiting));
            registry.stats.count(&done);
            done
        });
        let answer = answer.await;
        drop(asker);
        answer
    }
}

pub(super) fn answer(result: Result<Value, Error>) -> Response {
    match result {
        Ok(value) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], value.to_string()).into_response(),
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            failure(status, error.code(), &error.to_string())
        }
    }
}

pub(super) fn failure(status: StatusCode, code: u32, message: &str) -> Response {
    let body = json!({"error_code": code, "message": message}).to_string();
    (status, [(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response()
}
