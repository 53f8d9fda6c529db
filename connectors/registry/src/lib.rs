//! A schema registry with Confluent's REST interface, kept in the log; and the ids of our own schemas, from it or from
//! a real one.

mod avro;
mod book;
mod compatibility;
mod error;
mod http;
mod ids;
mod mode;
mod rows;

use std::sync::{Arc, Mutex, PoisonError};

pub use book::{Limits, Schema};
pub use compatibility::Level;
pub use error::Error;
pub use http::router;
pub use ids::{Client, ClientError, Found, Ids};
pub use mode::Mode;

use book::Book;
use rows::Change;

/// The rows of the registry begin like this; rows of others are left alone.
pub const PREFIX: &str = "schemas/";

/// What keeps the registry's rows: the control topic of the log.
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

/// The registry. One process writes it: ids are given out one after the other, under a lock.
#[derive(Clone)]
pub struct Registry {
    book: Arc<Mutex<Book>>,
    storage: Arc<dyn Storage>,
}

impl Registry {
    /// Reads what is stored.
    ///
    /// # Errors
    /// [`Error::Storage`]: the rows cannot be read, or are none of this release's.
    pub fn open(storage: Arc<dyn Storage>, limits: Limits) -> Result<Self, Error> {
        let mut book = Book::new(limits);
        let mut fault = None;
        let mut visit = |key: &[u8], value: &[u8]| match Change::parse(key, value) {
            Ok(Some(change)) => book.apply(change),
            Ok(None) => {}
            Err(error) => {
                fault.get_or_insert(error);
            }
        };
        storage.scan(&mut visit).map_err(Error::Storage)?;
        match fault.or_else(|| book.finish().err()) {
            Some(fault) => Err(fault),
            None => Ok(Self { book: Arc::new(Mutex::new(book)), storage }),
        }
    }

    /// Registers a schema; the id is durable when this returns. Waits for the storage. The same schema has the same id
    /// under every subject.
    ///
    /// # Errors
    /// [`Error`]; nothing is registered, save that after [`Error::Storage`] a part of it may be found later.
    pub fn register(&self, subject: &str, text: &str) -> Result<u32, Error> {
        self.change(|book| book.register(subject, text))
    }

    /// Sets the level of a subject, or the global one. Waits for the storage.
    ///
    /// # Errors
    /// [`Error`].
    pub fn set_level(&self, subject: Option<&str>, level: Level) -> Result<(), Error> {
        self.change(|book| Ok(((), vec![book.set_level(subject, Some(level))?])))
    }

    /// Makes the changes that are asked for, each when it is stored.
    fn change<T>(&self, plan: impl FnOnce(&Book) -> Result<(T, Vec<Change>), Error>) -> Result<T, Error> {
        self.with(|book| {
            let (outcome, changes) = plan(book)?;
            for change in changes {
                let stored = match change.row() {
                    (key, Some(value)) => self.storage.put(key.as_bytes(), &value),
                    (key, None) => self.storage.remove(key.as_bytes()),
                };
                stored.map_err(Error::Storage)?;
                book.apply(change);
            }
            Ok(outcome)
        })
    }

    /// Looks something up.
    fn with<T>(&self, look: impl FnOnce(&mut Book) -> T) -> T {
        // A panic leaves the book as the rows are: it is changed row by row, when each is durable.
        look(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The text of a schema by its id; of one that is deleted too, but not for good.
    pub fn text(&self, id: u32) -> Option<String> {
        self.with(|book| book.text(id).map(str::to_owned))
    }
}
