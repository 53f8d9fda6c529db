//! Who sees to it that this node has what it is to have: it takes groups over, gives them up, and, where it is the one
//! that places, decides who is to have what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use everlog_log_kafka::members::Members;
use everlog_partition::Error;
use tokio::time::MissedTickBehavior;

use super::links::Links;
use super::placement::Seen;
use super::rows::{OwnerRow, Placement, Row};
use super::wire::Leave;
use super::{Cluster, lock, offer_all};
use crate::share::Failed;

/// How often a node looks at what it is to have, if nothing changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the brokers' word for who is there is good.
const LIVE_FOR: Duration = Duration::from_secs(1);
/// A node that lives for so long gets groups for the sake of balance.
const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// How long the owner of a group may take to finish what it has begun.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);
/// The rest after a group could not be taken.
const TAKE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long the rows of `control` may take to be there at the start.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// How long a node that ends waits for others to take what it has.
const DEPART_WITHIN: Duration = Duration::from_secs(25);
const LOOK_AT_DEPARTURE_EVERY: Duration = Duration::from_millis(10);

impl Cluster {
    /// Says that this node is there. Where no other one is, it takes all partitions over before it returns.
    ///
    /// # Errors
    /// Another node has this name; `control` cannot be read or written.
    pub async fn begin(self: &Arc<Self>) -> Result<Result<(), Error>> {
        let mut is_told = self.is_told.subscribe();
        let told = tokio::time::timeout(TOLD_WITHIN, is_told.wait_for(|told| *told)).await.is_ok();
        if !told {
            bail!("the topic control could not be read within {} s", TOLD_WITHIN.as_secs());
        }
        let namesake = self.shown.load().nodes.get(&self.me).cloned();
        if let Some(row) = namesake
            && self
                .links
                .instance(&self.me, &row.address)
                .await
                .is_some_and(|instance| instance != self.instance)
        {
            bail!(
                "a node named \"{}\" is there already, at {}: give each node a name of its own (server.name)",
                self.me,
                row.address
            );
        }
        let own = lock(&self.own).clone();
        self.write(Row::Node(self.me.clone(), Some(own))).await?;
        let mut changes = self.version.subscribe();
        let is_there =
            || self.shown.load().nodes.get(&self.me).is_some_and(|row| row.instance == self.instance);
        let seen = tokio::time::timeout(TOLD_WITHIN, async {
            while !is_there() && changes.changed().await.is_ok() {}
        });
        if seen.await.is_err() {
            bail!(
                "the topic control did not bring a row that was written within {} s",
                TOLD_WITHIN.as_secs()
            );
        }
        if self.is_anybody_there().await {
            return Ok(Ok(()));
        }
        let placement = Placement {
            nodes: BTreeSet::from([self.me.clone()]),
            groups: self.groups().map(|_| Some(self.me.clone())).collect(),
            by: self.me.clone(),
        };
        if self.shown.load().placement != placement {
            self.write(Row::Placement(placement.clone())).await?;
            self.note(Row::Placement(placement));
        }
        for group in self.groups() {
            self.coming[group].store(true, Ordering::Release);
        }
        Ok(self.take_all(self.groups().collect()).await)
    }

    /// True where another node answers.
    async fn is_anybody_there(self: &Arc<Self>) -> bool {
        let nodes = self.shown.load().nodes.clone();
        let others = nodes.iter().filter(|(name, _)| **name != self.me);
        let mut asked = tokio::task::JoinSet::new();
        for (name, row) in others {
            let (cluster, name, address) = (Arc::clone(self), name.clone(), row.address.clone());
            asked.spawn(async move { cluster.links.instance(&name, &address).await.is_some() });
        }
        while let Some(answer) = asked.join_next().await {
            if answer.unwrap_or(false) {
                return true;
            }
        }
        false
    }

    async fn take_all(self: &Arc<Self>, groups: Vec<usize>) -> Result<(), Error> {
        self.tell_owner(&groups, false);
        let (cluster, wanted) = (Arc::clone(self), groups.clone());
        let taken = tokio::task::spawn_blocking(move || {
            let partitions = wanted.into_iter().flat_map(|group| cluster.partitions_of(group));
            cluster.steering.take(partitions)
        });
        let taken = taken.await.unwrap_or_else(|panicked| {
            Err(Error::Journal { partition: 0, detail: format!("its recovery panicked: {panicked}") })
        });
        for group in &groups {
            self.coming[*group].store(false, Ordering::Release);
            self.held[*group].store(taken.is_ok(), Ordering::Release);
        }
        if taken.is_ok() {
            self.tell_owner(&groups, true);
        }
        self.changed();
        taken
    }

    /// Tells that groups are here, or about to be. Nothing waits until others know it: calls for them wait here.
    fn tell_owner(self: &Arc<Self>, groups: &[usize], serves: bool) {
        let own = OwnerRow { node: self.me.clone(), serves };
        let view = self.shown.load_full();
        let told = |group: &&usize| {
            view.owners.get(*group).is_none_or(|known| known.node != own.node || (serves && !known.serves))
        };
        let rows: Vec<_> =
            groups.iter().filter(told).map(|group| Row::Owner(*group, Some(own.clone()))).collect();
        rows.iter().for_each(|row| self.note(row.clone()));
        let cluster = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            // One after the other: a later row must not come before an earlier one.
            let _turn = lock(&cluster.telling);
            for row in rows {
                if let Err(error) = cluster.put(&row) {
                    tracing::warn!(%error, "others are not told yet who has a group");
                }
            }
        });
    }

    /// Takes a group over from whoever has it.
    async fn take(self: Arc<Self>, group: usize, failed: Arc<Failed>) {
        let (began, mut asked) = (Instant::now(), Instant::now());
        let owner = self.shown.load().owners.get(&group).map(|owner| owner.node.clone());
        let owner = owner.filter(|owner| *owner != self.me);
        if let Some(owner) = &owner {
            self.prepare(group, owner).await;
            let placed = self.shown.load().placement.groups.get(group).cloned().flatten();
            if placed.as_ref() != Some(&self.me) {
                // It is to go elsewhere meanwhile.
                return;
            }
            asked = Instant::now();
            let leave = Leave { group: u32::try_from(group).unwrap_or(u32::MAX), to: self.me.clone() };
            let left = self.ask(owner, "/node/leave", &leave, LEAVE_WITHIN).await;
            if left.is_none() {
                tracing::info!(group, owner, "the owner of a group does not give it up: it is fenced");
            }
        }
        match self.take_all(vec![group]).await {
            Ok(()) => {
                let (took_ms, away_ms) = (crate::node::millis(began), crate::node::millis(asked));
                tracing::info!(group, from = owner, took_ms, away_ms, "took a group of partitions over");
            }
            Err(error) => {
                // Those that did come go again: a group is in one place.
                self.let_go(group).await;
                tracing::warn!(group, %error, "a group of partitions could not be taken over");
                if !super::is_lost_to_another(&error) {
                    // The node ends.
                    failed(self.partitions_of(group).start, &error);
                    return;
                }
                tokio::time::sleep(TAKE_AGAIN_AFTER).await;
            }
        }
    }

    /// Brings the rows of a group while its owner serves on; not where that is gone, and somebody waits.
    async fn prepare(self: &Arc<Self>, group: usize, owner: &str) {
        let Some(address) = self.address_of(owner) else { return };
        if self.links.instance(owner, &address).await.is_none() {
            return;
        }
        let cluster = Arc::clone(self);
        let prepared = tokio::task::spawn_blocking(move || {
            let partitions = cluster.partitions_of(group);
            let partitions = partitions.map(|id| (id, Arc::clone(&cluster.stats[id as usize])));
            cluster.steering.prepare(partitions);
        });
        if let Err(panicked) = prepared.await {
            tracing::error!(group, %panicked, "the rows of a group could not be brought before it");
        }
    }

    async fn let_go(self: &Arc<Self>, group: usize) {
        self.held[group].store(false, Ordering::Release);
        let cluster = Arc::clone(self);
        let left = tokio::task::spawn_blocking(move || {
            let partitions = cluster.partitions_of(group);
            cluster.steering.leave(partitions.clone());
            if let Some(log) = cluster.log.upgrade() {
                log.rest(partitions.start);
            }
        });
        if let Err(panicked) = left.await {
            tracing::error!(group, %panicked, "a group of partitions did not leave well");
        }
        self.changed();
    }

    /// Gives a group to a node that is to have it: what was taken is answered and committed first. False where it is not
    /// here.
    pub(super) async fn give(self: &Arc<Self>, group: usize, to: &str) -> bool {
        let is_here = self.held.get(group).is_some_and(|held| held.swap(false, Ordering::AcqRel));
        if !is_here {
            return false;
        }
        let began = Instant::now();
        // What comes from now on goes there, and waits.
        self.note(Row::Owner(group, Some(OwnerRow { node: to.to_owned(), serves: false })));
        self.let_go(group).await;
        tracing::info!(group, to, took_ms = crate::node::millis(began), "gave a group of partitions up");
        true
    }

    /// Somebody else has taken a partition of this node: it gives up the group. False where that somebody goes by this
    /// node's name: then there is nothing for it to do any more.
    pub async fn steps_down(self: &Arc<Self>, partition: u32) -> bool {
        let (cluster, key) = (Arc::clone(self), Row::Node(self.me.clone(), None).write().0);
        let instance = tokio::task::spawn_blocking(move || {
            let log = cluster.log.upgrade()?;
            let mut found = None;
            let scanned = everlog_log::Log::control_scan(&*log, &mut |row, value| {
                if row == key {
                    found = Row::read(row, Some(value));
                }
            });
            match (scanned, found) {
                (Ok(()), Some(Row::Node(_, Some(row)))) => Some(row.instance),
                _unknown => None,
            }
        });
        if instance.await.ok().flatten().is_some_and(|instance| instance != self.instance) {
            return false;
        }
        let group = self.group_of(partition);
        if !self.coming[group].load(Ordering::Acquire) {
            self.let_go(group).await;
        }
        true
    }

    /// Keeps to what is placed until the node ends; `failed` hears of partitions that cannot be recovered.
    pub async fn run(self: Arc<Self>, failed: Arc<Failed>) {
        let mut changes = self.version.subscribe();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut over = self.over();
        let mut placer = Placer::default();
        let mut nodes = self.shown.load().placement.nodes.clone();
        loop {
            tokio::select! {
                () = async { drop(over.wait_for(|over| *over).await) } => return,
                _ = changes.changed() => {}
                () = self.offers_are_due() => offer_all(&self),
                _ = looks.tick() => {
                    self.dispatcher.sweep(&self.send);
                    self.receipts.sweep();
                }
            }
            let view = self.shown.load_full();
            if view.placement.nodes != nodes {
                nodes.clone_from(&view.placement.nodes);
                tracing::info!(nodes = ?nodes, "the nodes are others now");
                self.dispatcher.rehome();
                offer_all(&self);
            }
            for (group, node) in view.placement.groups.iter().enumerate().take(self.groups().end) {
                let is_wanted = node.as_ref() == Some(&self.me) && !self.held[group].load(Ordering::Acquire);
                if is_wanted && !self.coming[group].swap(true, Ordering::AcqRel) {
                    let (cluster, failed) = (Arc::clone(&self), Arc::clone(&failed));
                    tokio::spawn(async move {
                        Arc::clone(&cluster).take(group, failed).await;
                        cluster.coming[group].store(false, Ordering::Release);
                    });
                }
            }
            placer.look(&self).await;
        }
    }

    /// Waits until something has to be offered again, and a while longer: more may follow.
    async fn offers_are_due(&self) {
        self.again.notified().await;
        tokio::time::sleep(LOOK_EVERY).await;
    }

    /// Gives all groups to other nodes, where there are some, and leaves.
    pub async fn depart(self: &Arc<Self>) {
        let has_others = {
            let view = self.shown.load();
            view.placement.nodes.iter().any(|node| *node != self.me)
        };
        if has_others {
            let own = {
                let mut own = lock(&self.own);
                own.leaves = true;
                own.clone()
            };
            let row = Row::Node(self.me.clone(), Some(own));
            self.note(row.clone());
            let told = self.write(row).await;
            let deadline = Instant::now() + DEPART_WITHIN;
            let has_groups = || self.held.iter().any(|held| held.load(Ordering::Acquire));
            while told.is_ok() && has_groups() && Instant::now() < deadline {
                tokio::time::sleep(LOOK_AT_DEPARTURE_EVERY).await;
            }
            if has_groups() {
                tracing::warn!("nobody has taken all partitions; others take them over when they notice");
            }
        }
    }

    /// Leaves the group of nodes; what others bring is answered no more.
    pub async fn end(self: &Arc<Self>) {
        self.over.send_replace(true);
        let (members, follow) = (lock(&self.members).take(), lock(&self.follow).take());
        let is_its_own =
            self.shown.load().nodes.get(&self.me).is_some_and(|row| row.instance == self.instance);
        if is_its_own && let Err(error) = self.write(Row::Node(self.me.clone(), None)).await {
            tracing::debug!(%error, "others find out by themselves that this node is gone");
        }
        // Both wait for their threads.
        let ended = tokio::task::spawn_blocking(move || drop((members, follow)));
        if ended.await.is_err() {
            tracing::warn!("the group of nodes was not left well");
        }
    }
}

/// What the node that places remembers.
#[derive(Default)]
struct Placer {
    /// Who lives by the brokers' word, and when they gave it.
    live: Option<(Instant, BTreeSet<String>)>,
    /// Since when each node lives.
    since: BTreeMap<String, Instant>,
}

impl Placer {
    async fn look(&mut self, cluster: &Arc<Cluster>) {
        let view = cluster.shown.load_full();
        let is_placer = lock(&cluster.members).as_ref().is_some_and(Members::is_placer);
        if !is_placer && !self.stands_in(cluster).await {
            self.since.clear();
            return;
        }
        let Some(live) = self.live(cluster).await else { return };
        if !live.contains(&cluster.me) {
            return;
        }
        let known = live.into_iter().filter(|node| view.nodes.contains_key(node));
        let mut nodes = BTreeSet::new();
        for node in known {
            let is_gone = node != cluster.me && Links::refuses(&view.nodes[&node].address).await;
            if !is_gone {
                nodes.insert(node);
            }
        }
        let is_first = self.since.is_empty();
        self.since.retain(|node, _| nodes.contains(node));
        for node in &nodes {
            let is_old = is_first && view.placement.nodes.contains(node);
            let now = Instant::now();
            let since = if is_old { now.checked_sub(SETTLED_AFTER).unwrap_or(now) } else { now };
            self.since.entry(node.clone()).or_insert(since);
        }
        let is_staying = |node: &&String| !view.nodes[*node].leaves && !view.drains.contains(*node);
        let staying: BTreeSet<_> = nodes.iter().filter(is_staying).cloned().collect();
        let nodes = if staying.is_empty() { nodes } else { staying };
        let is_settled =
            |node: &&String| self.since.get(*node).is_some_and(|since| since.elapsed() >= SETTLED_AFTER);
        let groups = cluster.groups();
        let mut placed = view.placement.groups.clone();
        placed.resize(groups.end, None);
        let seen = Seen {
            settled: nodes.iter().filter(is_settled).cloned().collect(),
            placed,
            owners: groups.map(|group| view.owners.get(&group).map(|owner| owner.node.clone())).collect(),
            is_moving: view.owners.values().any(|owner| !owner.serves),
            rows: view.nodes.iter().map(|(name, row)| (name.clone(), row.rows.clone())).collect(),
            pinned: view.pins.clone(),
            nodes,
        };
        let groups = seen.place();
        if groups != view.placement.groups || seen.nodes != view.placement.nodes {
            let placement = Placement { nodes: seen.nodes, groups, by: cluster.me.clone() };
            tracing::info!(nodes = ?placement.nodes, groups = ?placement.groups, "placed");
            let row = Row::Placement(placement);
            match cluster.write(row.clone()).await {
                Ok(()) => cluster.note(row),
                Err(error) => tracing::warn!(%error, "what was placed cannot be told"),
            }
        }
    }

    /// The node that placed last is gone, and nobody has been chosen yet: the first of the others does.
    async fn stands_in(&self, cluster: &Arc<Cluster>) -> bool {
        let view = cluster.shown.load_full();
        let by = &view.placement.by;
        if by.is_empty() || *by == cluster.me {
            return false;
        }
        let first = view.placement.nodes.iter().find(|node| *node != by);
        if first != Some(&cluster.me) {
            return false;
        }
        match view.nodes.get(by) {
            Some(row) => Links::refuses(&row.address).await,
            None => true,
        }
    }

    async fn live(&mut self, cluster: &Arc<Cluster>) -> Option<BTreeSet<String>> {
        if let Some((_, live)) = self.live.as_ref().filter(|(told, _)| told.elapsed() < LIVE_FOR) {
            return Some(live.clone());
        }
        let asked = Arc::clone(cluster);
        let live = tokio::task::spawn_blocking(move || lock(&asked.members).as_ref().map(Members::live));
        match live.await.ok().flatten() {
            Some(Ok(live)) => {
                let live: BTreeSet<_> = live.into_iter().collect();
                self.live = Some((Instant::now(), live.clone()));
                Some(live)
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "who lives is not known at the moment");
                None
            }
            None => None,
        }
    }
}
