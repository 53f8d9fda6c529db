//! One page of a list: pages of all partitions that may have a match, merged.

use bytes::Bytes;
use everlog_partition::{
    Address, LogPosition, VisibilityAnswer, VisibilityRead, VisibilityWant, VisibleRun, WantedPage,
};
use everlog_visibility::attribute::SYSTEM;
use everlog_visibility::index::{ListPage, ListPosition, ListToken, ListedRun, OrderKey, TokenScope, merge};
use everlog_visibility::query::{Filter, Query, SortOrder};
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;
use uuid::Uuid;

use crate::Gateway;
use crate::codec::status::invalid;
use crate::routing::partition_reads::{PartitionQuestion, ask};

/// Runs of a page, at most, and where the request names no size.
const PAGE_ROWS_MAX: usize = 1_000;
/// How often partitions are asked for one page before it is short.
const ROUNDS_MAX: usize = 4;
/// Bytes of the runs of a page, about: clients take 4 MiB.
const PAGE_BYTES_MAX: usize = 3 << 20;

/// Which page of which list.
pub(crate) struct PageRequest<'a> {
    /// The namespace's UUID.
    pub namespace_id: &'a str,
    /// The list.
    pub query: Query,
    /// The query as the caller wrote it: a token belongs to it.
    pub text: &'a str,
    /// Runs, at most; what is out of range is the most.
    pub page_size: i32,
    /// Of the page before; empty of the first.
    pub token: Bytes,
}

/// A page of a list.
pub(crate) struct ListedPage {
    /// In order.
    pub runs: Vec<VisibleRun>,
    /// Of the next page; empty of the last one.
    pub token: Bytes,
}

/// A list while a page of it is made.
struct Walk<'a> {
    gateway: &'a Gateway,
    read: VisibilityRead,
    wanted: WantedPage,
    /// The partitions that may have a match.
    partitions: Vec<u32>,
    /// Where each partition of the log stood when the list began; none of one that has not been asked.
    positions: Vec<Option<LogPosition>>,
    /// What lists show of the runs that the partitions have told.
    told: BTreeMap<Vec<u8>, VisibleRun>,
}

/// A page of the runs that match.
///
/// # Errors
/// INVALID_ARGUMENT of a token that is not of this list; UNAVAILABLE while a partition is served by nobody.
pub(crate) async fn page(gateway: &Gateway, request: PageRequest<'_>) -> Result<ListedPage, Status> {
    let PageRequest { namespace_id, query, text, page_size, token } = request;
    let rows_max = usize::try_from(page_size).ok().filter(|rows| (1..=PAGE_ROWS_MAX).contains(rows));
    let rows_max = rows_max.unwrap_or(PAGE_ROWS_MAX);
    let all = usize::try_from(gateway.about.partitions).unwrap_or_default();
    let namespace = Uuid::parse_str(namespace_id).unwrap_or_default();
    let log = Uuid::parse_str(&gateway.about.cluster_id).unwrap_or_default();
    let scope = TokenScope::new(namespace, text, query.order, *log.as_bytes(), all);
    let (mut after, positions) = match token.as_ref() {
        [] => (None, vec![None; all]),
        token => {
            let token = ListToken::read(token, &scope).map_err(|error| invalid(error.to_string()))?;
            let position = |at: &ListPosition| (at.offset != u64::MAX).then_some(*at);
            let positions = token.positions.iter().map(position);
            let positions = positions.map(|at| at.map(|at| LogPosition { offset: at.offset, ms: at.ms }));
            (Some(token.after), positions.collect())
        }
    };
    let partitions = partitions_of(&query.filter, namespace_id, gateway.about.partitions);
    let read =
        VisibilityRead { namespace_id: namespace_id.to_owned(), filter: query.filter.encode(), want: None };
    let mut walk =
        Walk { gateway, read, wanted: wanted(query.order), partitions, positions, told: BTreeMap::new() };
    let mut runs: Vec<ListedRun> = Vec::new();
    for _round in 0..ROUNDS_MAX {
        let mut pages = walk.pages(after, rows_max - runs.len()).await?;
        let merged = merge(&mut pages, rows_max - runs.len());
        runs.extend(merged.runs);
        after = merged.next;
        if after.is_none() || runs.len() >= rows_max || walk.is_large(&runs) {
            break;
        }
    }
    let token = match after {
        Some(after) => {
            // A partition without a position cannot have a match.
            let end = LogPosition { offset: u64::MAX, ms: i64::MAX };
            let positions = walk.positions.iter().map(|position| position.unwrap_or(end));
            let positions = positions.map(|at| ListPosition { offset: at.offset, ms: at.ms }).collect();
            ListToken { after, positions }.encode(&scope).into()
        }
        None => Bytes::new(),
    };
    let shown = runs.iter().filter_map(|run| walk.told.remove(run.key.bytes()));
    Ok(ListedPage { runs: shown.collect(), token })
}

impl Walk<'_> {
    /// What each partition has behind a key.
    async fn pages(&mut self, after: Option<OrderKey>, rows_max: usize) -> Result<Vec<ListPage>, Status> {
        // Runs are spread evenly: some more than a fair share from each is usually enough.
        let share = (rows_max * 3).div_ceil(self.partitions.len().max(1) * 2) + 1;
        let questions = self.partitions.iter().map(|partition| {
            let at = usize::try_from(*partition).unwrap_or(usize::MAX);
            let position = self.positions.get(at).copied().flatten();
            let after = after.map_or_else(Vec::new, |key| key.bytes().to_vec()).into();
            let rows_max = u32::try_from(share.min(rows_max)).unwrap_or(u32::MAX);
            let wanted = WantedPage { position, after, rows_max, ..self.wanted.clone() };
            let read = VisibilityRead { want: Some(VisibilityWant::Page(wanted)), ..self.read.clone() };
            PartitionQuestion { partition: *partition, read: Some(read) }
        });
        let answers = ask(self.gateway, questions.collect()).await?;
        let mut pages = Vec::with_capacity(answers.len());
        for (partition, answer) in self.partitions.clone().into_iter().zip(answers) {
            pages.push(self.take(partition, answer)?);
        }
        Ok(pages)
    }

    fn take(&mut self, partition: u32, answer: VisibilityAnswer) -> Result<ListPage, Status> {
        let at = usize::try_from(partition).unwrap_or(usize::MAX);
        if let Some(position) = self.positions.get_mut(at) {
            *position = position.or(answer.position);
        }
        let key_of = |bytes: &[u8]| OrderKey::read(bytes).ok_or_else(unreadable);
        let reached = match answer.reached.as_ref() {
            [] => None,
            bytes => Some(key_of(bytes)?),
        };
        let mut runs = Vec::with_capacity(answer.runs.len());
        for run in answer.runs {
            let key = key_of(&run.key)?;
            runs.push(ListedRun { key, record: run.record.clone().unwrap_or_default() });
            self.told.insert(key.bytes().to_vec(), run);
        }
        Ok(ListPage { runs, reached })
    }

    /// Clients take no more than these.
    fn is_large(&self, runs: &[ListedRun]) -> bool {
        let bytes = runs.iter().filter_map(|run| self.told.get(run.key.bytes()));
        bytes.map(prost::Message::encoded_len).sum::<usize>() >= PAGE_BYTES_MAX
    }
}

fn unreadable() -> Status {
    Status::internal("a partition has answered with a key that cannot be read")
}

fn wanted(order: Option<SortOrder>) -> WantedPage {
    let Some(SortOrder { by, is_descending }) = order else { return WantedPage::default() };
    let name = SYSTEM.iter().find(|(_, attribute)| *attribute == by).map_or("", |(name, _)| name);
    WantedPage { order_by: name.to_owned(), is_descending, ..WantedPage::default() }
}

/// The partitions that may have a match: those of the Workflow Ids that the filter names, or all.
pub(crate) fn partitions_of(filter: &Filter, namespace_id: &str, partitions: u32) -> Vec<u32> {
    let Some(ids) = filter.workflow_ids() else { return (0..partitions).collect() };
    let partition = |workflow_id: &str| {
        let (namespace_id, workflow_id) = (namespace_id.to_owned(), workflow_id.to_owned());
        Address { namespace_id, workflow_id, run_id: String::new() }.partition(partitions)
    };
    let named: BTreeSet<u32> = ids.into_iter().map(partition).collect();
    named.into_iter().collect()
}
