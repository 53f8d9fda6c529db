//! A schema registry with Confluent's REST API, and a client for any such registry.
//!
//! The registry owns the rows under [`PREFIX`] in the control topic. The client finds or registers this release's own
//! schemas. Neither reads nor writes data in Avro.

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

pub use crate::client::{ClientError, Found, Ids, RegistryClient, http_client};
pub use crate::compatibility::CompatibilityLevel;
pub use crate::error::Error;
pub use crate::http::router;
pub use crate::limits::Limits;
pub use crate::mode::Mode;
pub use crate::stats::Stats;
pub use crate::subjects::Schema;

/// Prefix of the registry's rows in the control topic; other rows are not touched.
pub const PREFIX: &str = "schemas/";

/// The storage of the registry's rows, which is the control topic of the log.
pub trait Storage: Send + Sync + 'static {
    /// Writes a row; it is durable when this returns.
    ///
    /// # Errors
    /// Why the row may not be durable, in words.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String>;

    /// Removes a row; the removal is durable when this returns.
    ///
    /// # Errors
    /// Why the removal may not be durable, in words.
    fn remove(&self, key: &[u8]) -> Result<(), String>;

    /// Visits all rows (key, value) of the topic in any order, other rows than the registry's included.
    ///
    /// # Errors
    /// Why not all rows were visited, in words.
    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String>;
}

/// The registry. Only one process may write it, because ids are assigned in sequence.
#[derive(Clone)]
pub struct Registry {
    /// Locked only to read or change memory, never during a write to the storage.
    book: Arc<Mutex<Subjects>>,
    /// Locked by a change until the change is stored.
    writing: Arc<Mutex<()>>,
    storage: Arc<dyn Storage>,
    limits: Limits,
    slots: Arc<WorkSlots>,
    stats: Arc<Stats>,
}

impl Registry {
    /// Opens the registry from its stored rows.
    ///
    /// # Errors
    /// [`Error::Storage`]: the rows cannot be read, or this release does not know their format.
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
        let slots = WorkSlots::new(check_steps_max, checks_max, checks_waiting_max, Arc::clone(&stats));
        stats.schema_bytes.store(book.bytes() as u64, Ordering::Relaxed);
        let (book, writing) = (Arc::new(Mutex::new(book)), Arc::default());
        Self { book, writing, storage, limits, slots: Arc::new(slots), stats }
    }

    /// The counters.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Registers a schema and returns its id, which is durable. Blocks on the storage. The same schema has the same id
    /// under every subject.
    ///
    /// # Errors
    /// [`Error`]: nothing is registered. Only after [`Error::Storage`] a part of the change may be durable.
    pub fn register(&self, subject: &str, text: &str) -> Result<u32, Error> {
        let caller = Arc::new(());
        self.register_for(&self.steps(Arc::downgrade(&caller)), subject, text)
    }

    /// [`Registry::register`] within a work budget. If another request changes the subject meanwhile, the check is repeated.
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

    /// The work budget of a request; work stops when `caller` is dropped.
    fn steps(&self, caller: Weak<()>) -> WorkBudget {
        WorkBudget::for_caller(&self.slots, caller)
    }

    /// Sets the compatibility level of a subject, or the global one. Blocks on the storage.
    ///
    /// # Errors
    /// [`Error`].
    pub fn set_level(&self, subject: Option<&str>, level: CompatibilityLevel) -> Result<(), Error> {
        self.change(|book| Ok(((), vec![book.set_level(subject, Some(level))?])))
    }

    /// Plans changes, then stores and applies them one by one. Other requests can read meanwhile.
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

    /// Reads or changes the state in memory.
    fn with<T>(&self, look: impl FnOnce(&mut Subjects) -> T) -> T {
        look(&mut self.book.lock())
    }

    /// The text of a schema by its id, soft-deleted schemas included.
    pub fn text(&self, id: u32) -> Option<String> {
        self.with(|book| book.text(id).map(str::to_owned))
    }
}
