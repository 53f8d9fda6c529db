//! Runs requests on threads that may block, a limited number at once.

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
/// Requests besides long checks that may block a thread on the storage. Further ones wait without a thread.
const CHANGES_MAX: usize = 8;

#[derive(Clone)]
pub(super) struct RequestRunner {
    registry: Registry,
    requests: Arc<Semaphore>,
    /// Limits the requests that may block a thread on a slot or on the storage, so that threads are left for others.
    waiting: Arc<Semaphore>,
}

impl RequestRunner {
    pub(super) fn of(registry: Registry) -> Self {
        let limits = registry.limits;
        let waiting = limits.checks_max + limits.checks_waiting_max + CHANGES_MAX;
        let of = |count| Arc::new(Semaphore::new(count));
        Self { registry, requests: of(limits.requests_max), waiting: of(waiting) }
    }

    /// Runs work that blocks on nothing but the lock, on its own thread.
    pub(super) async fn serve(
        self,
        work: impl FnOnce(&Registry) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.run(false, work).await
    }

    /// Runs work that may block on the storage.
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
        // The semaphore is never closed.
        let waits = if may_wait { self.waiting.acquire_owned().await.ok() } else { None };
        let work = tokio::task::spawn_blocking(move || {
            let _permits = (permit, waits);
            work(&self.registry)
        });
        match work.await {
            Ok(result) => answer(result),
            Err(_panic) => answer(Err(Error::Storage("the request failed unexpectedly".into()))),
        }
    }

    pub(super) async fn look(
        self,
        look: impl FnOnce(&Subjects) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        self.serve(|registry| registry.with(|book| look(book))).await
    }

    /// Runs work that parses and compares schemas; it stops when the caller closes its connection.
    pub(super) async fn check(
        self,
        work: impl FnOnce(&Registry, &WorkBudget) -> Result<Value, Error> + Send + 'static,
    ) -> Response {
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let answer = self.change(move |registry| {
            let done = work(registry, &registry.steps(waiting));
            registry.stats.count(&done);
            done
        });
        let answer = answer.await;
        drop(caller);
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
