//! The builds of the workers that have completed a run's tasks, and the points that they make: where a build that turns
//! out to be bad came in, the run may be reset to.
//!
//! A point belongs to the first task that a build has completed in the chain, so there is no second one for it, and a run takes over the
//! points of the run that it follows. The builds themselves are those of the run alone.

use prost::Message;

use crate::event::HistoryEvent;
use crate::machine::memo_and_search_attributes::change;
use crate::machine::workflow_task::Completed;
use crate::run::Run;
use crate::time::Timestamp;

/// Points that a run keeps; the oldest makes room for the next.
const POINTS_MAX: usize = 20;

/// Bytes of the builds that a run keeps; the oldest make room for the next. They are shown as a search attribute, a list of words
/// with [`BUILD_OVERHEAD`] bytes around each, which may be no larger than any other.
const BUILDS_BYTES_MAX: usize = 2_048 - 15;
const BUILD_OVERHEAD: usize = 15;

/// Where a build came in.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Point {
    /// What the worker called its binary, before builds had ids.
    #[prost(string, tag = "1")]
    pub binary_checksum: String,
    /// The run whose task it was; in a run's state empty = its own.
    #[prost(string, tag = "2")]
    pub run_id: String,
    /// The first WorkflowTaskCompleted event of the build.
    #[prost(int64, tag = "3")]
    pub first_workflow_task_completed_id: i64,
    /// When that was.
    #[prost(message, optional, tag = "4")]
    pub create_time: Option<Timestamp>,
    /// When the run that it lies in is forgotten; absent while nothing follows that run.
    #[prost(message, optional, tag = "5")]
    pub expire_time: Option<Timestamp>,
    /// Nothing was under way then that a reset could not take along: no child, no signal and no cancellation of another workflow.
    #[prost(bool, tag = "6")]
    pub resettable: bool,
    /// The build.
    #[prost(string, tag = "7")]
    pub build_id: String,
}

/// Points as a Started event has them.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Points {
    /// The oldest first.
    #[prost(message, repeated, tag = "1")]
    pub points: Vec<Point>,
}

/// What a worker's version says, as far as it matters here.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Version {
    /// The build; empty where the worker names none.
    #[prost(string, tag = "1")]
    pub build_id: String,
}

impl Version {
    /// Reads an encoded version; what cannot be read names no build.
    pub fn read(given: Option<&bytes::Bytes>) -> Self {
        given.and_then(|given| Self::decode(given.clone()).ok()).unwrap_or_default()
    }
}

/// A build has completed a task.
pub(crate) fn apply_completed(run: &mut Run, event: &HistoryEvent, completed: &Completed) {
    let Version { build_id } = Version::read(completed.worker_version.as_ref());
    let deployed = completed.deployment_version.as_ref().map(|version| &version.build_id);
    let point_build_id = deployed.unwrap_or(&build_id);
    let binary_checksum = completed.binary_checksum.as_str();
    let properties = run.properties.as_ref();
    let is_known =
        |point: &Point| point.build_id == *point_build_id && point.binary_checksum == binary_checksum;
    let has_point = properties.reset_points.iter().any(is_known);
    let is_listed = build_id.is_empty() || properties.build_ids.contains(&build_id);
    if has_point && is_listed && properties.worker_version == completed.worker_version {
        return;
    }
    let point = Point {
        binary_checksum: binary_checksum.to_owned(),
        run_id: String::new(),
        first_workflow_task_completed_id: event.event_id,
        create_time: event.event_time,
        expire_time: None,
        resettable: run.children.is_empty() && run.externals.is_empty(),
        build_id: point_build_id.clone(),
    };
    change(run, |properties| {
        if !has_point {
            properties.reset_points.push(point);
            let too_many = properties.reset_points.len().saturating_sub(POINTS_MAX);
            properties.reset_points.drain(..too_many);
        }
        if !is_listed {
            properties.build_ids.push(build_id);
            let too_many = oldest_beyond(&properties.build_ids, BUILDS_BYTES_MAX);
            properties.build_ids.drain(..too_many);
        }
        properties.worker_version.clone_from(&completed.worker_version);
    });
}

/// How many of the oldest builds have to go so that the rest fits.
fn oldest_beyond(build_ids: &[String], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |build_id: &&String| {
        bytes += build_id.len() + BUILD_OVERHEAD;
        bytes <= bytes_max
    };
    build_ids.len() - build_ids.iter().rev().take_while(fits).count()
}

impl Run {
    /// The points of the chain up to now, the oldest first, each with its run's id. Those of a run that is followed by another say when
    /// it is forgotten.
    pub fn reset_points(&self) -> Vec<Point> {
        let is_followed = !self.head.successor_run_id.is_empty();
        let expire_time = is_followed.then(|| Timestamp::from_ms(self.expires_ms()));
        let told = |point: &Point| match point.run_id.is_empty() {
            true => Point { run_id: self.start.run_id.clone(), expire_time, ..point.clone() },
            false => point.clone(),
        };
        self.properties.reset_points.iter().map(told).collect()
    }

    /// What a run that follows this one at `now_ms` begins with.
    pub(crate) fn points_for_next(&self, now_ms: i64) -> Option<Points> {
        let expire_time = Some(Timestamp::from_ms(now_ms.saturating_add(self.start.retention_ms)));
        let points = self.reset_points().into_iter();
        let points: Vec<_> = points
            .map(
                |point| {
                    if point.run_id == self.start.run_id { Point { expire_time, ..point } } else { point }
                },
            )
            .collect();
        (!points.is_empty()).then_some(Points { points })
    }
}
