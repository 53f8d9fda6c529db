//! Writer schemas of commands by id: each is looked up in the registry once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use everlog_avro::command::SchemaLookup;
use everlog_avro::{PublicTopic, Writer, WriterError};
use everlog_log::Backoff;
use parking_lot::{Mutex, RwLock};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Schemas that are cached. Beyond, all but this release's own are dropped and looked up again.
const SCHEMAS_MAX: usize = 200;
/// How long an id counts as unknown, in ms, before the registry is asked again.
const UNKNOWN_MS: u64 = 10_000;
/// The longest pause before an unreachable registry is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The pause before an unreachable registry is asked again.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), PAUSE_MAX);

/// A registry.
pub trait SchemaRegistry: Send + Sync + 'static {
    /// The text of the schema with this id; none where there is none.
    ///
    /// # Errors
    /// The registry does not answer, in words.
    fn schema(&self, id: u32) -> impl Future<Output = Result<Option<String>, String>> + Send;
}

/// What is known, as it was at some moment.
pub(crate) type Snapshot = Arc<BTreeMap<u32, Known>>;

/// What the registry said of an id.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    Schema(Arc<Result<Writer, WriterError>>),
    UnknownUntil(Instant),
}

/// An unreachable registry.
#[derive(Clone)]
struct RegistryOutage {
    /// Until then all records wait for it together: one after the other they would wait for ever.
    until: Instant,
    /// When it last gave no answer.
    asked: Instant,
    why: String,
}

/// What is known of schemas.
pub(crate) struct SchemaCache<R> {
    registry: R,
    own: Snapshot,
    known: RwLock<Snapshot>,
    away: Mutex<Option<RegistryOutage>>,
}

impl<R: SchemaRegistry> SchemaCache<R> {
    /// Our own schema needs no registry.
    pub(crate) fn new(registry: R, own_id: Option<u32>) -> Self {
        let own = |id| (id, Known::Schema(Arc::new(Ok(Writer::own(PublicTopic::Command)))));
        let own: Snapshot = Arc::new(own_id.into_iter().map(own).collect());
        Self { registry, known: RwLock::new(own.clone()), own, away: Mutex::new(None) }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.known.read().clone()
    }

    /// Looks an id up, again and again until the deadline, or until that of the first who waits for the same answer.
    /// After that one question a second finds out whether the registry is back.
    ///
    /// # Errors
    /// The registry has not answered until then, in words.
    pub(crate) async fn learn(&self, id: u32, deadline: Instant) -> Result<(), String> {
        let deadline = match self.away(|away| away.clone()) {
            None => deadline,
            Some(away) if away.until > Instant::now() => deadline.min(away.until),
            Some(away) if away.asked + PAUSE_MAX > Instant::now() => return Err(away.why),
            Some(_) => deadline.min(Instant::now() + PAUSE_MAX),
        };
        let mut backoff = BACKOFF;
        loop {
            let why = match timeout_at(deadline, self.registry.schema(id)).await {
                Ok(Ok(text)) => {
                    self.away(Option::take);
                    self.keep(id, text);
                    return Ok(());
                }
                Ok(Err(error)) => error,
                Err(_elapsed) => "no answer in time".to_owned(),
            };
            let asked = Instant::now();
            self.away(|away| {
                let until = away.as_ref().map_or(deadline, |away| away.until);
                *away = Some(RegistryOutage { until, asked, why: why.clone() });
            });
            let next = asked + backoff.failed();
            if next >= deadline {
                return Err(why);
            }
            sleep_until(next).await;
        }
    }

    fn away<T>(&self, look: impl FnOnce(&mut Option<RegistryOutage>) -> T) -> T {
        look(&mut self.away.lock())
    }

    fn keep(&self, id: u32, text: Option<String>) {
        let known = match text {
            Some(text) => Known::Schema(Arc::new(Writer::parse(PublicTopic::Command, &text))),
            None => Known::UnknownUntil(Instant::now() + Duration::from_millis(UNKNOWN_MS)),
        };
        let mut all = self.known.write();
        let kept = if all.len() < SCHEMAS_MAX { all.as_ref() } else { self.own.as_ref() };
        let mut next = kept.clone();
        next.insert(id, known);
        *all = Arc::new(next);
    }
}

/// What the cache knows of an id.
pub(crate) fn lookup(known: &Snapshot, id: u32, now: Instant) -> SchemaLookup<'_> {
    match known.get(&id) {
        Some(Known::Schema(writer)) => SchemaLookup::Known(writer.as_ref().as_ref()),
        Some(Known::UnknownUntil(until)) if *until > now => SchemaLookup::Unknown,
        Some(Known::UnknownUntil(_)) | None => SchemaLookup::Missing,
    }
}
