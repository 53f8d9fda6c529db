//! Furnishing: tasks and readings get the histories and inputs that go with them.

use bytes::{Bytes, BytesMut};
use everlog_engine::event::{Attributes, History};
use everlog_engine::machine::activity::Scheduled;
use everlog_engine::{ActivityGrant, TaskGrant};
use everlog_store::{CommittedRows, Space};
use prost::Message;

use crate::error::Error;
use crate::model::keys::{RunKey, history_key};
use crate::model::types::{ActivityTask, Page, WorkflowTask};
use crate::state::run_store::RunStore;

/// Bytes of a page of history: the largest event has room with its neighbours, and others get their answers between the pages of a
/// long history.
pub const PAGE_BYTES_MAX: usize = 2_500_000;
/// Batches of a page.
pub const PAGE_BATCHES_MAX: usize = 256;

/// A page of whole batches from the one that begins with `from_event_id`.
pub fn page<B: CommittedRows>(
    runs: &mut RunStore<B>,
    key: &RunKey,
    from_event_id: i64,
    batches_max: usize,
) -> Result<Page, Error> {
    let batches_max = if batches_max == 0 { PAGE_BATCHES_MAX } else { batches_max.min(PAGE_BATCHES_MAX) };
    let (from, to) = (history_key(key, from_event_id), history_key(key, i64::MAX));
    let mut history = BytesMut::new();
    let mut batches = 0;
    let mut next_event_id = 0;
    runs.store().scan_appended(Space::History, &from, &to, &mut |row, value| {
        if batches > 0 && (batches == batches_max || history.len() + value.len() > PAGE_BYTES_MAX) {
            next_event_id = first_event_id(row);
            return false;
        }
        history.extend_from_slice(value);
        batches += 1;
        true
    })?;
    Ok(Page { history: history.freeze(), next_event_id })
}

/// The page that ends with the batch before `below_event_id`; 0 = with the last batch.
pub fn page_before<B: CommittedRows>(
    runs: &mut RunStore<B>,
    key: &RunKey,
    below_event_id: i64,
    batches_max: usize,
) -> Result<Page, Error> {
    let batches_max = if batches_max == 0 { PAGE_BATCHES_MAX } else { batches_max.min(PAGE_BATCHES_MAX) };
    let from = history_key(key, 0);
    let mut to = history_key(key, if below_event_id == 0 { i64::MAX } else { below_event_id });
    let mut batches = Vec::new();
    let mut bytes = 0;
    let mut next_event_id = 0;
    while let Some((row, value)) = runs.store().last(Space::History, &from, &to)? {
        bytes += value.len();
        if !batches.is_empty() && (batches.len() == batches_max || bytes > PAGE_BYTES_MAX) {
            next_event_id = first_event_id(&to);
            break;
        }
        batches.push(value);
        to = row;
    }
    let mut history = BytesMut::new();
    for batch in batches.iter().rev() {
        history.extend_from_slice(batch);
    }
    Ok(Page { history: history.freeze(), next_event_id })
}

fn first_event_id(row: &[u8]) -> i64 {
    row.last_chunk::<8>().map_or(0, |id| i64::from_be_bytes(*id))
}

/// A workflow task with the first page of its history.
pub fn workflow_task<B: CommittedRows>(
    runs: &mut RunStore<B>,
    key: &RunKey,
    grant: TaskGrant,
) -> Result<WorkflowTask, Error> {
    let from_event_id = if grant.sticky { grant.run.head.previous_started_event_id + 1 } else { 1 };
    let mut page = page(runs, key, from_event_id, 0)?;
    if page.next_event_id == 0 && !grant.tail.is_empty() {
        let mut history = BytesMut::from(page.history.as_ref());
        history.extend_from_slice(&History { events: grant.tail }.encode_to_vec());
        page.history = history.freeze();
    }
    Ok(WorkflowTask {
        run: grant.run,
        sticky: grant.sticky,
        history: page,
        queries: Vec::new(),
        backlog: 0,
        receipt: None,
    })
}

/// An activity task with what the workflow asked for.
pub fn activity_task<B: CommittedRows>(
    runs: &mut RunStore<B>,
    key: &RunKey,
    grant: ActivityGrant,
) -> Result<ActivityTask, Error> {
    let row = runs.store().get(Space::History, &history_key(key, grant.activity.batch_event_id))?;
    let scheduled = row.and_then(|row| scheduled(row, grant.activity.scheduled_event_id));
    Ok(ActivityTask {
        run: grant.run,
        scheduled: scheduled.unwrap_or_default(),
        activity: grant.activity,
        receipt: None,
    })
}

fn scheduled(row: Bytes, event_id: i64) -> Option<Scheduled> {
    let history = History::decode(row).ok()?;
    let event = history.events.into_iter().find(|event| event.event_id == event_id)?;
    match event.attributes {
        Some(Attributes::ActivityScheduled(scheduled)) => Some(*scheduled),
        _other => None,
    }
}
