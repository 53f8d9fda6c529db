//! A schema registry with Confluent's REST API, stored in the control topic; and a client of any such registry, for the ids
//! of this release's own schemas.

mod avro;
mod client;
mod compatibility;
mod error;
mod http;
mod limits;
mod mode;
mod rows;
mod stats;
mod subjects;
mod submitted_schema;
mod work_budget;
mod work_slots;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::rows::RegistryChange;
use crate::subjects::Subjects;
use crate::submitted_schema::SubmittedSchema;
use crate::work_budget::WorkBudget;
use crate::work_slots::WorkSlots;

pub use crate::client::{Client, ClientError, Found, Ids};
pub use crate::compatibility::CompatibilityLevel;
pub use crate::error::Error;
pub use crate::http::router;
pub use crate::limits::Limits;
pub use crate::mode::Mode;
pub use crate::stats::Stats;
pub use crate::subjects::Schema;

/// Prefix of the registry's rows in the control topic; other rows are not touched.
pub const PREFIX: &str = "schemas/";

/// The storage of the registry's rows: the control topic of the log.
pub trait Storage: Send + Sync + 'static {
    /// Writes a row; it is durable when this returns.
    ///
    /// # Errors
    /// Why it may not be durable, in words.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String>;

    /// Removes a row; it is gone for good when this returns.
    ///
    /// # Errors
    /// Why it may still be there, in words.
    fn remove(&self, key: &[u8]) -> Result<(), String>;

    /// Visits all rows (key, value), those of others too, in any order.
    ///
    /// # Errors
    /// Why not all rows were visited, in words.
    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String>;
}

/// The registry. One process writes it: ids are given out one after the other.
#[derive(Clone)]
pub struct Registry {
    /// Locked only for look-ups and changes in memory.
    book: Arc<Mutex<Subjects>>,
    /// Locked by a change until it is stored.
    writing: Arc<Mutex<()>>,
    storage: Arc<dyn Storage>,
    limits: Limits,
    lane: Arc<WorkSlots>,
    stats: Arc<Stats>,
}

impl Registry {
    /// Reads what is stored.
    ///
    /// # Errors
    /// [`Error::Storage`]: the rows cannot be read, or are none of this release's.
    pub fn open(storage: Arc<dyn Storage>, limits: Limits) -> Result<Self, Error> {
        let mut book = Subjects::new(limits);
        let mut fault = None;
        let mut visit = |key: &[u8], value: &[u8]| match RegistryChange::parse(key, value) {
            Ok(Some(change)) => book.apply(change),
            Ok(None) => {}
            Err(error) => {
                fault.get_or_insert(error);
            }
        };
        storage.scan(&mut visit).map_err(Error::Storage)?;
        match fault.or_else(|| book.finish().err()) {
            Some(fault) => Err(fault),
            None => Ok(Self::of(book, storage, limits)),
        }
    }

    fn of(book: Subjects, storage: Arc<dyn Storage>, limits: Limits) -> Self {
        let stats = Arc::<Stats>::default();
        let Limits { check_steps_max, checks_max, checks_waiting_max, .. } = limits;
        let lane = WorkSlots::new(check_steps_max, checks_max, checks_waiting_max, Arc::clone(&stats));
        stats.schema_bytes.store(book.bytes() as u64, Ordering::Relaxed);
        let (book, writing) = (Arc::new(Mutex::new(book)), Arc::default());
        Self { book, writing, storage, limits, lane: Arc::new(lane), stats }
    }

    /// What is counted.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Registers a schema; the id is durable when this returns. Waits for the storage. The same schema has the same id
    /// under every subject.
    ///
    /// # Errors
    /// [`Error`]; nothing is registered, save that after [`Error::Storage`] a part of it may be found later.
    pub fn register(&self, subject: &str, text: &str) -> Result<u32, Error> {
        let asker = Arc::new(());
        self.register_for(&self.steps(Arc::downgrade(&asker)), subject, text)
    }

    /// [`Registry::register`], within these steps. What others change meanwhile is checked anew.
    fn register_for(&self, steps: &WorkBudget, subject: &str, text: &str) -> Result<u32, Error> {
        let new = SubmittedSchema::read(text, &self.limits, steps)?;
        loop {
            if let Some(id) = self.with(|book| book.registered(subject, &new))? {
                return Ok(id);
            }
            let against = self.with(|book| book.against(subject));
            let found = against.check(&new.avro, steps)?;
            if !found.is_empty() {
                return Err(Error::Incompatible { subject: subject.into(), detail: found.join(", ") });
            }
            let registered = self.change(|book| {
                if let Some(id) = book.registered(subject, &new)? {
                    return Ok((Some(id), Vec::new()));
                }
                if !book.against(subject).is(&against) {
                    return Ok((None, Vec::new()));
                }
                let (id, changes) = book.register(subject, &new);
                Ok((Some(id), changes))
            });
            if let Some(id) = registered? {
                return Ok(id);
            }
        }
    }

    /// The steps of a request, for as long as `asker` is there.
    fn steps(&self, asker: Weak<()>) -> WorkBudget {
        WorkBudget::in_lane(&self.lane, asker)
    }

    /// Sets the level of a subject, or the global one. Waits for the storage.
    ///
    /// # Errors
    /// [`Error`].
    pub fn set_level(&self, subject: Option<&str>, level: CompatibilityLevel) -> Result<(), Error> {
        self.change(|book| Ok(((), vec![book.set_level(subject, Some(level))?])))
    }

    /// Makes the changes that are asked for, each when it is stored. Others can look something up meanwhile.
    fn change<T>(
        &self,
        plan: impl FnOnce(&Subjects) -> Result<(T, Vec<RegistryChange>), Error>,
    ) -> Result<T, Error> {
        let _alone = self.writing.lock();
        let (outcome, changes) = self.with(|book| plan(book))?;
        for change in changes {
            let stored = match change.row() {
                (key, Some(value)) => self.storage.put(key.as_bytes(), &value),
                (key, None) => self.storage.remove(key.as_bytes()),
            };
            stored.map_err(Error::Storage)?;
            let bytes = self.with(|book| {
                book.apply(change);
                book.bytes()
            });
            self.stats.schema_bytes.store(bytes as u64, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Looks something up.
    fn with<T>(&self, look: impl FnOnce(&mut Subjects) -> T) -> T {
        look(&mut self.book.lock())
    }

    /// The text of a schema by its id; also of a soft-deleted one.
    pub fn text(&self, id: u32) -> Option<String> {
        self.with(|book| book.text(id).map(str::to_owned))
    }
}
