//! The rows of the topic `control` that have reached this node, and the way to write rows. Does not decide anything:
//! the components that write know why.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use arc_swap::{ArcSwap, Guard};
use everlog_log::{Error, Log, Outage};
use everlog_log_kafka::Kafka;
use everlog_log_kafka::control::follower::{ControlChange, Follow};
use tokio::sync::watch;

use crate::assignment::ownership_history::OwnershipHistory;
use crate::control_rows::{ControlView, Row};
use crate::local::RowListener;
use crate::lock;

/// The rows of `control`.
pub struct ControlTable {
    log: Weak<Kafka>,
    /// All rows that were read.
    rows: Mutex<ControlView>,
    /// The same, for readers; behind `rows` only until the topic was read to its end once.
    published: ArcSwap<ControlView>,
    version: watch::Sender<u64>,
    is_caught_up: watch::Sender<bool>,
    /// Former owners, for polls that break off when a node dies.
    former_owners: Mutex<OwnershipHistory>,
    /// Whether the brokers take rows.
    outage: Mutex<Outage>,
    follow: Mutex<Option<Follow>>,
}

impl ControlTable {
    /// Empty until [`Self::follow`].
    pub fn new(log: &Arc<Kafka>) -> Self {
        Self {
            log: Arc::downgrade(log),
            rows: Mutex::default(),
            published: ArcSwap::default(),
            version: watch::Sender::new(0),
            is_caught_up: watch::Sender::new(false),
            former_owners: Mutex::default(),
            outage: Mutex::default(),
            follow: Mutex::default(),
        }
    }

    /// Begins to read the topic. `listener` gets the rows that are not about nodes.
    ///
    /// # Errors
    /// A client of the brokers cannot be made.
    pub fn follow(self: &Arc<Self>, log: &Kafka, listener: Box<RowListener>) -> Result<(), Error> {
        let table = Arc::downgrade(self);
        let follow = log.follow_control(move |change| {
            if let Some(table) = table.upgrade() {
                table.on_change(change, &listener);
            }
        })?;
        *lock(&self.follow) = Some(follow);
        Ok(())
    }

    /// The follower of the topic. Dropping it ends it, and waits for its thread.
    pub fn take_follow(&self) -> Option<Follow> {
        lock(&self.follow).take()
    }

    /// Reads the topic with a new client, because another node knows a row that has not reached this one.
    pub fn refresh(&self) {
        lock(&self.follow).iter().for_each(Follow::doubt);
    }

    fn on_change(&self, change: ControlChange<'_>, listener: &RowListener) {
        match change {
            ControlChange::UpToDate => {
                if !*self.is_caught_up.borrow() {
                    // In this order: whoever waits for the rows reads what is published.
                    self.publish();
                    self.is_caught_up.send_replace(true);
                }
            }
            ControlChange::Row(key, value) => {
                if let Some(row) = Row::read(key, value) {
                    self.apply(row);
                    if *self.is_caught_up.borrow() {
                        self.publish();
                    }
                } else if let Some(value) = value {
                    listener(key, value);
                }
            }
        }
    }

    fn publish(&self) {
        self.published.store(Arc::new(lock(&self.rows).clone()));
        self.notify();
    }

    /// Wakes everybody who waits for a change.
    pub fn notify(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Changes with every row, and with everything else that [`Self::notify`] is called for.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// True once the topic was read to its end.
    pub fn caught_up(&self) -> watch::Receiver<bool> {
        self.is_caught_up.subscribe()
    }

    /// The rows.
    pub fn view(&self) -> Guard<Arc<ControlView>> {
        self.published.load()
    }

    /// The rows, to keep for longer.
    pub fn view_full(&self) -> Arc<ControlView> {
        self.published.load_full()
    }

    /// Applies a row before the topic brings it, so that nothing waits for the topic.
    pub fn apply_and_publish(&self, row: Row) {
        self.apply(row);
        self.publish();
    }

    /// Applies a row, and remembers the former owner of a group.
    fn apply(&self, row: Row) {
        let mut rows = lock(&self.rows);
        if let Row::Owner(group, next) = &row
            && let Some(owner) = rows.owners.get(group)
            && next.as_ref().is_none_or(|next| next.node != owner.node)
        {
            lock(&self.former_owners).note(*group, &owner.node, Instant::now());
        }
        rows.take(row);
    }

    /// Applies that `from` hands a group over to `to`, see [`ControlView::give`].
    pub fn hand_over(&self, group: usize, from: &str, to: &str) {
        lock(&self.rows).give(group, from, to);
        self.publish();
    }

    /// The groups that a node owns, or has owned a while ago.
    pub fn recent_groups_of(&self, node: &str) -> BTreeSet<usize> {
        let view = self.view();
        let owned = view.owners.iter().filter(|(_, owner)| owner.node == node).map(|(group, _)| *group);
        let former = lock(&self.former_owners).groups_of(node, Instant::now());
        owned.chain(former).collect()
    }

    /// Where other nodes reach a node.
    pub fn address_of(&self, node: &str) -> Option<String> {
        self.view().nodes.get(node).map(|row| row.address.clone())
    }

    /// Writes a row; durable when it is done. Blocks.
    ///
    /// # Errors
    /// The brokers do not take it.
    pub fn put(&self, row: &Row) -> Result<(), Error> {
        let log = self.log.upgrade().ok_or(Error::Closed)?;
        let (key, value) = row.write();
        let written = log.control_put(&key, value.as_deref());
        let mut outage = lock(&self.outage);
        match &written {
            Ok(()) => {
                if let Some(lasted) = outage.works(Instant::now()) {
                    let after_s = lasted.as_secs();
                    tracing::info!(after_s, "rows of control written again");
                }
            }
            Err(error) => {
                if let Some(lasts) = outage.fails(Instant::now()) {
                    let for_s = lasts.as_secs();
                    tracing::warn!(%error, for_s, "rows of control not written");
                }
            }
        }
        written
    }

    /// Writes a row; durable when it is done.
    ///
    /// # Errors
    /// The brokers do not take it.
    pub async fn write(self: &Arc<Self>, row: Row) -> Result<(), Error> {
        let table = Arc::clone(self);
        let written = tokio::task::spawn_blocking(move || table.put(&row)).await;
        written.unwrap_or(Err(Error::Closed))
    }

    /// A row as the brokers have it now; none where there is no such row. Blocks.
    ///
    /// # Errors
    /// The brokers do not answer.
    pub fn read(&self, key: &[u8]) -> Result<Option<Row>, Error> {
        let log = self.log.upgrade().ok_or(Error::Closed)?;
        let mut found = None;
        log.control_scan(&mut |row, value| {
            if row == key {
                found = Row::read(row, Some(value));
            }
        })?;
        Ok(found)
    }

    /// The log, while it is open.
    pub fn log(&self) -> Option<Arc<Kafka>> {
        self.log.upgrade()
    }

    /// True where no broker answers, and the node should not wait for one.
    pub fn is_log_unreachable(&self) -> bool {
        self.log.upgrade().is_some_and(|log| log.is_unreachable())
    }
}
