//! The reconciler brings what this node owns in line with the assignment. It takes groups over, hands them over, and
//! announces the owner in `control`. It does not assign: the coordinator does.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use everlog_partition::{Error, RemoteClaims};
use tokio::sync::Semaphore;

use crate::assignment::groups::GroupTable;
use crate::control_rows::{ControlView, OwnerRow, Row};
use crate::control_table::ControlTable;
use crate::local::{LocalPartitions, TakeoverFailed};
use crate::lock;
use crate::membership::this_node::ThisNode;
use crate::metrics::ClusterCounters;
use crate::peers::client::PeerClient;
use crate::peers::protocol::ReleaseGroup;

/// How often the owner of a group is asked again while restore slots are taken.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the owner of a group may take to finish what is in progress.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
/// The pause after a group could not be taken over. It doubles with each failure that does not go away by itself.
const TAKE_AGAIN_AFTER: Duration = Duration::from_secs(1);
const TAKE_AGAIN_AFTER_MAX: Duration = Duration::from_secs(10);
/// How often closed partitions are tried again.
const REOPEN_EVERY: Duration = Duration::from_secs(30);
/// How many groups are restored at once while their owners serve. Each takes a blocking thread, and the node has 32
/// of them.
const RESTORES_MAX: usize = 4;
/// How often the owner of a group is asked for an answer before it counts as gone.
const OWNER_ASKED: usize = 3;

/// After so many looks at which `control` names another owner, the owner announces itself again.
const DENIED_LOOKS: u32 = 10;

/// While it exists, a group is being handed over. A node that ends waits for it, because the other node waits for the
/// reply.
struct Handover<'a>(&'a AtomicUsize);

impl<'a> Handover<'a> {
    fn begin(handovers: &'a AtomicUsize) -> Self {
        handovers.fetch_add(1, Ordering::AcqRel);
        Self(handovers)
    }
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The outcome of restoring a group before it is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prepared {
    /// The rows are here, as far as they could be restored.
    Brought,
    /// The owner no longer serves and callers wait, so restoring would take too long.
    Orphaned,
    /// The rows could not be restored; the owner serves on.
    Failed,
}

/// Takes over and hands over partition groups.
pub struct Reconciler {
    control: Arc<ControlTable>,
    node: Arc<ThisNode>,
    groups: Arc<GroupTable>,
    peers: Arc<PeerClient>,
    local: Arc<dyn LocalPartitions>,
    exchange: Arc<RemoteClaims>,
    counters: Arc<ClusterCounters>,
    /// This node has owned all that was assigned to it since its start. An earlier assignment says nothing.
    has_assigned_groups: AtomicBool,
    /// Bounds the groups whose rows are restored while their owners serve.
    restore_slots: Semaphore,
    /// Held while rows of owners are written.
    owner_rows: Mutex<()>,
}

impl Reconciler {
    /// A reconciler of a node that owns nothing yet.
    pub fn new(
        (control, node): (&Arc<ControlTable>, &Arc<ThisNode>),
        groups: &Arc<GroupTable>,
        peers: &Arc<PeerClient>,
        local: &Arc<dyn LocalPartitions>,
        exchange: &Arc<RemoteClaims>,
        counters: &Arc<ClusterCounters>,
    ) -> Self {
        Self {
            control: Arc::clone(control),
            node: Arc::clone(node),
            groups: Arc::clone(groups),
            peers: Arc::clone(peers),
            local: Arc::clone(local),
            exchange: Arc::clone(exchange),
            counters: Arc::clone(counters),
            has_assigned_groups: AtomicBool::new(false),
            restore_slots: Semaphore::new(RESTORES_MAX),
            owner_rows: Mutex::default(),
        }
    }

    /// True once this node has owned all that was assigned to it.
    pub fn has_assigned_groups(&self) -> bool {
        self.has_assigned_groups.load(Ordering::Acquire)
    }

    /// Sets whether this node owns all that was assigned to it.
    pub fn set_assigned_groups(&self, has_all: bool) {
        self.has_assigned_groups.store(has_all, Ordering::Release);
    }

    /// Takes groups over. Returns the partitions that stay closed, each with the reason.
    pub async fn take_over_all(self: &Arc<Self>, groups: Vec<usize>) -> Result<Vec<(u32, Error)>, Error> {
        self.announce_owners(&groups, false);
        let (reconciler, wanted) = (Arc::clone(self), groups.clone());
        let taken = tokio::task::spawn_blocking(move || {
            let partitions = wanted.into_iter().flat_map(|group| reconciler.groups.partitions_of(group));
            reconciler.local.take(partitions.collect())
        });
        let taken = taken.await.unwrap_or_else(|panicked| {
            Err(Error::Journal { partition: 0, detail: format!("its recovery panicked: {panicked}") })
        });
        for group in &groups {
            // In this order, because a group must never seem neither owned nor acquired.
            self.groups[*group].is_owned.store(taken.is_ok(), Ordering::Release);
            self.groups[*group].is_acquiring.store(false, Ordering::Release);
            if taken.is_ok() {
                self.groups[*group].failures.store(0, Ordering::Relaxed);
            }
        }
        if taken.is_ok() {
            self.announce_owners(&groups, true);
            self.node.announce_rows(&groups).await;
        }
        self.control.notify();
        taken
    }

    /// Announces this node as the owner of groups. Nothing waits for that: calls for the groups wait here.
    fn announce_owners(self: &Arc<Self>, groups: &[usize], serves: bool) {
        let own = OwnerRow { node: self.node.name.clone(), serves };
        let view = self.control.view_full();
        let told = |group: &&usize| {
            view.owners.get(*group).is_none_or(|known| known.node != own.node || (serves && !known.serves))
        };
        let news: Vec<_> = groups.iter().filter(told).map(|group| (*group, own.clone())).collect();
        for (group, owner) in &news {
            self.control.apply_and_publish(Row::Owner(*group, Some(owner.clone())));
        }
        self.write_owners(news);
    }

    fn write_owners(self: &Arc<Self>, news: Vec<(usize, OwnerRow)>) {
        let reconciler = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            // One at a time, because a later row must not come before an earlier one.
            let _turn = lock(&reconciler.owner_rows);
            for (group, owner) in news {
                if owner.serves && !reconciler.groups[group].is_owned.load(Ordering::Acquire) {
                    // It has been handed over meanwhile.
                    continue;
                }
                if let Err(error) = reconciler.control.put(&Row::Owner(group, Some(owner))) {
                    tracing::debug!(group, %error, "owner not announced yet");
                    reconciler.groups[group].is_unannounced.store(true, Ordering::Release);
                }
            }
        });
    }

    /// Announces again what the brokers did not take, and what a late row of another node contradicts. The
    /// coordinator moves no other group meanwhile, so the owner has the last word.
    pub fn reannounce_owners(self: &Arc<Self>) {
        let view = self.control.view_full();
        let news = self.groups.numbers().filter_map(|number| {
            let group = &self.groups[number];
            let serves = group.is_owned.load(Ordering::Acquire);
            let is_mine = serves || group.is_acquiring.load(Ordering::Acquire);
            // The new owner announces itself.
            let is_unannounced = group.is_unannounced.swap(false, Ordering::AcqRel) && is_mine;
            // Another node may be right for a while: it announces a take-over before this node notices it.
            let is_denied =
                serves && view.owners.get(&number).is_some_and(|owner| owner.node != self.node.name);
            let looks = if is_denied { group.contradicted.fetch_add(1, Ordering::AcqRel) + 1 } else { 0 };
            let is_denied = looks >= DENIED_LOOKS;
            if looks == 0 || is_denied {
                group.contradicted.store(0, Ordering::Release);
            }
            (is_unannounced || is_denied).then(|| (number, OwnerRow { node: self.node.name.clone(), serves }))
        });
        let news: Vec<_> = news.collect();
        if !news.is_empty() {
            self.write_owners(news);
        }
    }

    /// Takes a group over from its owner.
    pub async fn take_over(self: Arc<Self>, group: usize, failed: Arc<TakeoverFailed>) {
        let _turn = self.groups[group].transition.lock().await;
        let (began, mut asked) = (Instant::now(), Instant::now());
        let owner = self.control.view().owners.get(&group).map(|owner| owner.node.clone());
        let owner = owner.filter(|owner| *owner != self.node.name);
        if let Some(owner) = &owner {
            let prepared = match self.is_alive(owner) {
                true => self.prepare(group, owner).await,
                false => Prepared::Orphaned,
            };
            if prepared == Prepared::Failed {
                // The owner serves on, which this node could not.
                self.local.forget(self.groups.partitions_of(group));
                return self.back_off(group).await;
            }
            let assigned = self.control.view().assignment.groups.get(group).cloned().flatten();
            if assigned.as_ref() != Some(&self.node.name) {
                // The group is assigned to another node meanwhile.
                self.local.forget(self.groups.partitions_of(group));
                return;
            }
            asked = Instant::now();
            let leave =
                ReleaseGroup { group: u32::try_from(group).unwrap_or(u32::MAX), to: self.node.name.clone() };
            let has_left = prepared == Prepared::Brought
                && self
                    .peers
                    .ask_node(&self.control, owner, "/node/leave", &leave, LEAVE_WITHIN)
                    .await
                    .is_some();
            if !has_left {
                tracing::info!(group, owner, "partition group not released by its owner, which is fenced");
            }
        }
        match self.take_over_all(vec![group]).await {
            Ok(_closed) => {
                let (took_ms, away_ms) =
                    (everlog_log::clock::elapsed_ms(began), everlog_log::clock::elapsed_ms(asked));
                self.counters.took(asked.elapsed());
                tracing::info!(group, from = owner, took_ms, away_ms, "partition group taken over");
            }
            Err(error) => {
                // The partitions that were recovered are released, because one node owns a whole group.
                self.release_group(group).await;
                tracing::warn!(group, %error, "partition group not taken over");
                self.counters.failed.fetch_add(1, Ordering::Relaxed);
                if !is_lost_to_another(&error) {
                    // The node ends.
                    failed(self.groups.partitions_of(group).start, &error);
                    return;
                }
                tokio::time::sleep(TAKE_AGAIN_AFTER).await;
            }
        }
    }

    /// True for a node that may serve: the coordinator has assigned groups to it, or it leaves, or it was left out
    /// because some nodes do not reach each other. A node that is none of these serves nothing, although it may
    /// answer.
    fn is_alive(&self, node: &str) -> bool {
        let view = self.control.view();
        let row = view.nodes.get(node);
        let is_leaving = view.drains.contains(node) || row.is_some_and(|row| row.leaves);
        let unreachable = row.is_some_and(|row| !row.unreachable.is_empty());
        let is_unowned = || view.nodes.values().any(|row| row.unreachable.contains(node));
        view.assignment.nodes.contains(node) || is_leaving || unreachable || is_unowned()
    }

    /// Restores the rows of a group while its owner serves on.
    async fn prepare(self: &Arc<Self>, group: usize, owner: &str) -> Prepared {
        let _slot = loop {
            if !self.answers(owner).await {
                return Prepared::Orphaned;
            }
            if let Ok(Ok(slot)) = tokio::time::timeout(LOOK_EVERY, self.restore_slots.acquire()).await {
                break slot;
            }
        };
        let reconciler = Arc::clone(self);
        let prepared = tokio::task::spawn_blocking(move || {
            let partitions = reconciler.groups.partitions_of(group);
            if let Some(log) = reconciler.control.log() {
                log.expect(partitions.start);
            }
            reconciler.local.prepare(partitions)
        });
        match prepared.await {
            Ok(Ok(())) => {
                self.node.announce_rows(&[group]).await;
                Prepared::Brought
            }
            Ok(Err(error)) => {
                self.groups[group].count_failure(self.local.may_pass(&error));
                Prepared::Failed
            }
            Err(panicked) => {
                tracing::error!(group, %panicked, "rows of a partition group not restored");
                self.groups[group].count_failure(false);
                Prepared::Failed
            }
        }
    }

    /// True where the owner of a group answers. A slow owner is asked again while its process and the brokers do not
    /// show that it is gone. Fencing an owner that serves would make its callers wait for the whole restore.
    async fn answers(&self, owner: &str) -> bool {
        for _ask in 0..OWNER_ASKED {
            let Some(address) = self.control.address_of(owner) else { return false };
            if self.peers.instance(owner, &address).await.is_some() {
                return true;
            }
            if PeerClient::refuses(&address).await || !self.is_alive(owner) {
                return false;
            }
        }
        false
    }

    /// The pause after a group could not be taken over.
    async fn back_off(&self, group: usize) {
        let failures = self.groups[group].failures.load(Ordering::Relaxed);
        tokio::time::sleep((TAKE_AGAIN_AFTER * 2_u32.saturating_pow(failures)).min(TAKE_AGAIN_AFTER_MAX))
            .await;
    }

    async fn release_group(self: &Arc<Self>, group: usize) {
        self.groups[group].is_owned.store(false, Ordering::Release);
        let reconciler = Arc::clone(self);
        let left = tokio::task::spawn_blocking(move || {
            let partitions = reconciler.groups.partitions_of(group);
            reconciler.local.leave(partitions.clone());
            reconciler.exchange.let_go(&partitions);
            if let Some(log) = reconciler.control.log() {
                log.rest(partitions.start);
            }
        });
        if let Err(panicked) = left.await {
            tracing::error!(group, %panicked, "partition group not released cleanly");
        }
        self.control.notify();
    }

    /// Hands a group over to the node that it is assigned to, after its requests are replied to and committed. False
    /// where this node does not own it.
    pub async fn hand_over(self: &Arc<Self>, group: usize, to: &str) -> bool {
        let Some(given) = self.groups.get(group) else { return false };
        let _giving = Handover::begin(&given.handovers);
        let known = self.control.view().assignment.clone();
        let is_placed_here = known.groups.get(group).cloned().flatten().as_ref() == Some(&self.node.name);
        if is_placed_here && given.is_owned.load(Ordering::Acquire) {
            // One of the two nodes does not know the latest assignment. The backoff begins before the group counts as
            // unowned.
            lock(&given.backoff).begin(known, Instant::now());
            self.control.refresh();
        }
        if !given.is_owned.swap(false, Ordering::AcqRel) {
            return false;
        }
        let began = Instant::now();
        let _turn = given.transition.lock().await;
        // New calls are forwarded to the new owner, and wait there.
        self.control.hand_over(group, &self.node.name, to);
        self.release_group(group).await;
        self.counters.groups_handed_over.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            group,
            to,
            took_ms = everlog_log::clock::elapsed_ms(began),
            "partition group handed over"
        );
        true
    }

    /// Another node has taken a partition of this node: its group is released. False where the other node has the
    /// name of this one; then this node has to end.
    pub async fn step_down(self: &Arc<Self>, partition: u32) -> bool {
        let (control, key) = (Arc::clone(&self.control), self.node.removed_row().write().0);
        let instance = tokio::task::spawn_blocking(move || match control.read(&key) {
            Ok(Some(Row::Node(_, Some(row)))) => Some(row.instance),
            _unknown => None,
        });
        if instance.await.ok().flatten().is_some_and(|instance| instance != self.node.instance) {
            return false;
        }
        let group = self.groups.group_of(partition);
        // Every partition of the group reports it; the group is released once.
        if self.groups[group].is_owned.load(Ordering::Acquire) {
            let known = self.control.view().assignment.clone();
            lock(&self.groups[group].backoff).begin(known, Instant::now());
            self.control.refresh();
        }
        if !self.groups[group].is_acquiring.load(Ordering::Acquire) {
            let _turn = self.groups[group].transition.lock().await;
            self.release_group(group).await;
        }
        true
    }

    /// Takes over what is assigned to this node and not owned by it. `failed` is called for partitions that cannot be
    /// recovered.
    pub fn reconcile(self: &Arc<Self>, view: &ControlView, failed: &Arc<TakeoverFailed>) {
        for (group, node) in view.assignment.groups.iter().enumerate().take(self.groups.numbers().end) {
            let is_unowned = node.as_ref() == Some(&self.node.name) && !self.groups[group].is_owned();
            let is_wanted =
                is_unowned && lock(&self.groups[group].backoff).is_over(&view.assignment, Instant::now());
            if is_wanted && !self.groups[group].is_acquiring.swap(true, Ordering::AcqRel) {
                let (reconciler, failed) = (Arc::clone(self), Arc::clone(failed));
                tokio::spawn(async move {
                    Arc::clone(&reconciler).take_over(group, failed).await;
                    reconciler.groups[group].is_acquiring.store(false, Ordering::Release);
                });
            }
        }
        if self.node.takes_part(view) && self.groups.unowned(view, &self.node.name) == 0 {
            self.set_assigned_groups(true);
        }
    }

    /// Tries from time to time whether closed partitions can be served, because somebody may have repaired the log.
    pub fn retry_closed(self: &Arc<Self>, last: &mut Instant) {
        if last.elapsed() < REOPEN_EVERY {
            return;
        }
        *last = Instant::now();
        let is_closed =
            |partition: &u32| self.groups.stats[*partition as usize].closed.load(Ordering::Relaxed) == 1;
        for group in
            self.groups.numbers().filter(|group| self.groups[*group].is_owned.load(Ordering::Acquire))
        {
            let closed: Vec<_> = self.groups.partitions_of(group).filter(is_closed).collect();
            if closed.is_empty() {
                continue;
            }
            let reconciler = Arc::clone(self);
            tokio::spawn(async move {
                let Ok(_turn) = reconciler.groups[group].transition.try_lock() else { return };
                if reconciler.groups[group].is_owned.load(Ordering::Acquire) {
                    let local = Arc::clone(&reconciler.local);
                    // The partition itself logs why not.
                    let _ = tokio::task::spawn_blocking(move || local.take(closed)).await;
                }
            });
        }
    }
}

/// True for an error that a new owner of the partition causes.
fn is_lost_to_another(error: &Error) -> bool {
    matches!(error, Error::Superseded { .. } | Error::Log(everlog_log::Error::Fenced { .. }))
}
