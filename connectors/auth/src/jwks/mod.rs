//! The keys of token issuers: fetched, refreshed, and kept for a day at most if they cannot be fetched again.
//!
//! A key that is asked for and unknown lets them be fetched, at most once in five seconds; callers wait for the one fetch.

mod keys;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod verified;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::RwLock;
use reqwest::Client;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinSet;

use crate::clock::Clocks;
use crate::counts::AuthCounts;
use crate::error::{DenialClass, OpenError, Unidentified};
pub(crate) use crate::jwks::keys::{Key, KeySet};
use crate::jwks::source::KeySource;

/// How often an unknown key lets the keys be fetched, at most.
const UNKNOWN_KEY_EVERY: Duration = Duration::from_secs(5);
/// How long keys are used that cannot be fetched again.
const KEYS_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// After a failed fetch the next one comes so soon, unless the refresh is sooner.
const RETRY_AFTER: Duration = Duration::from_secs(15);

/// Checks sources, and reads none.
pub(crate) fn check(sources: &[String], allow_http: bool) -> Result<(), OpenError> {
    read_sources(sources, allow_http).map(drop)
}

fn read_sources(sources: &[String], allow_http: bool) -> Result<Vec<KeySource>, OpenError> {
    sources.iter().map(|text| KeySource::read(text, allow_http)).collect()
}

/// Keeps the keys of all sources.
pub(crate) struct Jwks(Arc<Inner>);

struct Inner {
    sources: Vec<KeySource>,
    http: Option<Client>,
    refresh_every: Duration,
    clock: Arc<dyn Clocks>,
    counts: Arc<AuthCounts>,
    loaded: RwLock<Option<LoadedKeys>>,
    /// Who has it fetches.
    last: Arc<Mutex<Option<Attempt>>>,
}

/// The keys of the last fetch that succeeded.
#[derive(Clone)]
struct LoadedKeys {
    keys: Arc<KeySet>,
    at: Duration,
}

#[derive(Clone, Copy)]
struct Attempt {
    ended: Duration,
    is_ok: bool,
}

impl Jwks {
    /// Checks the sources, and fetches nothing yet.
    pub(crate) fn open(
        sources: &[String],
        allow_http: bool,
        ca_file: Option<&Path>,
        refresh_every: Duration,
        clock: Arc<dyn Clocks>,
        counts: Arc<AuthCounts>,
    ) -> Result<Self, OpenError> {
        let sources = read_sources(sources, allow_http)?;
        let http = source::client(&sources, ca_file, source::FETCH_MAX)?;
        let (loaded, last) = (RwLock::default(), Arc::default());
        Ok(Self(Arc::new(Inner { sources, http, refresh_every, clock, counts, loaded, last })))
    }

    /// Fetches the keys now and then. It does not end.
    pub(crate) async fn keep_fresh(&self) {
        loop {
            let is_ok = self.0.clone().fetch_by(self.0.last.clone().lock_owned().await).await;
            let pause = if is_ok { self.0.refresh_every } else { self.0.refresh_every.min(RETRY_AFTER) };
            tokio::time::sleep(pause).await;
        }
    }

    /// The keys that are there and not too old.
    pub(crate) fn present(&self) -> Option<Arc<KeySet>> {
        let loaded = self.0.loaded.read().clone()?;
        let age = self.0.clock.steady().saturating_sub(loaded.at);
        (age <= KEYS_AGE_MAX).then_some(loaded.keys)
    }

    /// A set that has a key of this id.
    pub(crate) async fn with_key(&self, id: &str) -> Result<Arc<KeySet>, Unidentified> {
        let has_it = |keys: &Arc<KeySet>| keys.find(id).is_some();
        if let Some(keys) = self.present().filter(has_it) {
            return Ok(keys);
        }
        let is_ok = self.fetch_unless_recent(&has_it).await;
        match self.present() {
            Some(keys) if has_it(&keys) => Ok(keys),
            // The issuer may have a new key that cannot be fetched now.
            Some(_) if !is_ok => Err(Unidentified::Unavailable(
                "the token's key is unknown, and keys cannot be fetched".into(),
            )),
            Some(_) => Err(Unidentified::denied(DenialClass::Token, "no key has the id of the token's key")),
            None => Err(Unidentified::Unavailable(
                "there are no keys of token issuers that are fresh enough".into(),
            )),
        }
    }

    /// False if the last fetch failed.
    async fn fetch_unless_recent(&self, is_enough: &impl Fn(&Arc<KeySet>) -> bool) -> bool {
        let last = self.0.last.clone().lock_owned().await;
        // Another caller may have fetched while this one waited.
        if self.present().is_some_and(|keys| is_enough(&keys)) {
            return true;
        }
        match *last {
            Some(last) if self.0.clock.steady().saturating_sub(last.ended) < UNKNOWN_KEY_EVERY => last.is_ok,
            _ => self.0.clone().fetch_by(last).await,
        }
    }
}

impl Inner {
    /// Fetches in a task of its own: a caller that goes away does not end the fetch that others wait for.
    async fn fetch_by(self: Arc<Self>, mut last: OwnedMutexGuard<Option<Attempt>>) -> bool {
        let fetch = async move {
            let is_ok = self.fetch().await;
            // Counted from its end: callers that have waited for a slow one do not fetch again.
            *last = Some(Attempt { ended: self.clock.steady(), is_ok });
            is_ok
        };
        // It ends early only if it panics.
        tokio::spawn(fetch).await.unwrap_or(false)
    }

    async fn fetch(&self) -> bool {
        // Their age counts from here.
        let at = self.clock.steady();
        match self.fetch_all().await {
            Ok(keys) => {
                self.counts.jwks_fetches_ok.fetch_add(1, Ordering::Relaxed);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "seconds since 1970"
                )]
                self.counts.jwks_fetched_at_s.store(self.clock.wall_s() as u64, Ordering::Relaxed);
                self.take(keys, at);
                true
            }
            Err(failures) => {
                self.counts.jwks_fetches_failed.fetch_add(1, Ordering::Relaxed);
                for (source, fault) in failures {
                    tracing::warn!(%source, %fault, "keys of a token issuer cannot be fetched: the former ones stay in use");
                }
                false
            }
        }
    }

    /// The keys of all sources, or why some have none.
    async fn fetch_all(&self) -> Result<KeySet, Vec<(KeySource, String)>> {
        let mut fetches = JoinSet::new();
        for source in self.sources.iter().cloned() {
            let http = self.http.clone();
            fetches.spawn(async move {
                let fetched = source.fetch(http.as_ref()).await;
                (source, fetched)
            });
        }
        let (mut keys, mut failures) = (KeySet::default(), Vec::new());
        for (source, fetched) in fetches.join_all().await {
            match fetched.and_then(|bytes| keys.add(&bytes)) {
                Ok(0) => failures.push((source, "it has no usable key".into())),
                Ok(_) => {}
                Err(fault) => failures.push((source, fault)),
            }
        }
        if failures.is_empty() { Ok(keys) } else { Err(failures) }
    }

    fn take(&self, keys: KeySet, at: Duration) {
        let mut loaded = self.loaded.write();
        self.counts.jwks_keys.store(keys.len() as u64, Ordering::Relaxed);
        match &mut *loaded {
            // The same keys: what they have verified stays so.
            Some(loaded) if loaded.keys.has_the_keys_of(&keys) => loaded.at = at,
            _ => {
                tracing::info!(keys = keys.len(), "keys of token issuers changed");
                *loaded = Some(LoadedKeys { keys: Arc::new(keys), at });
            }
        }
    }
}
