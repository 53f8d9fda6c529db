//! Serves requests: a limited number at once, on threads that may block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::Registry;
use crate::error::Error;
use crate::subjects::Subjects;
use crate::work_budget::WorkBudget;

const CONTENT_TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// Requests that may block a thread on the storage, besides long checks; further ones wait without a thread.
const CHANGES_MAX: usize = 8;

#[derive(Clone)]
pub(super) struct Shop {
    registry: Registry,
    requests: Arc<Semaphore>,
    /// Those that may wait on a thread, for a turn or for the storage: threads are left for others.
    waiting: Arc<Semaphore>,
}

impl Shop {
    pub(super) fn of(registry: Registry) -> Self {
        let limits = registry.limits;
        let waiting = limits.checks_max + limits.checks_waiting_max + CHANGES_MAX;
        let of = |count| Arc::new(Semaphore::new(count));
        Self { registry, requests: of(limits.requests_max), waiting: of(waiting) }
    }

    /// Does what waits for nothing but the lock, on a thread of its own.
    pub(super) async fn serve(
        self,
        work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.run(false, work).await
    }

    /// Does what may wait for the storage.
    pub(super) async fn change(
        self,
        work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.run(true, work).await
    }

    async fn run(
        self,
        may_wait: bool,
        work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        let Ok(permit) = self.requests.clone().try_acquire_owned() else {
            self.registry.stats.requests_refused.fetch_add(1, Ordering::Relaxed);
            return answer(Err(Error::Busy));
        };
        // It is never closed.
        let waits = if may_wait { self.waiting.acquire_owned().await.ok() } else { None };
        let work = tokio::task::spawn_blocking(move || {
            let _permits = (permit, waits);
            work(&self.registry)
        });
        match work.await {
            Ok(result) => answer(result),
            Err(_panic) => answer(Err(Error::Storage("the request broke off".into()))),
        }
    }

    pub(super) async fn look(
        self,
        look: impl FnOnce(&Subjects) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.serve(|registry| registry.with(|book| look(book))).await
    }

    /// Does what reads schemas and compares them; it stops when nobody waits for the answer.
    pub(super) async fn check(
        self,
        work: impl FnOnce(&Registry, &WorkBudget) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        let asker = Arc::new(());
        let waiting = Arc::downgrade(&asker);
        let answer = self.change(move |registry| {
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
