//! Versions of the deployments of workers: which one a run goes by.
//!
//! A start may override it, a run may inherit it from the one that it follows or from its parent, and the workers that complete its tasks
//! say theirs. All of that is kept and told; tasks are handed out without regard to it.

use crate::api_types::VersioningBehavior as Behavior;
use crate::machine::memo_and_search_attributes::change;
use crate::machine::start::Started;
use crate::machine::workflow_task::Completed;
use crate::run::{Properties, Run};

/// A version of a deployment of workers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Version {
    /// What the workers were built from.
    #[prost(string, tag = "1")]
    pub build_id: String,
    /// The deployment.
    #[prost(string, tag = "2")]
    pub deployment_name: String,
}

/// What a start says instead of the workers: one of the two.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Override {
    /// The run stays with a version.
    #[prost(message, optional, tag = "3")]
    pub pinned: Option<Pinned>,
    /// The run goes along with what is current.
    #[prost(bool, tag = "4")]
    pub auto_upgrade: bool,
}

/// The version that a run stays with.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Pinned {
    /// How it is pinned; there is one way, 1.
    #[prost(int32, tag = "1")]
    pub behavior: i32,
    /// The version; none stands for workers without one.
    #[prost(message, optional, tag = "2")]
    pub version: Option<Version>,
}

/// What is known of the version that a run goes by.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Versioning {
    /// What its start has said.
    #[prost(message, optional, tag = "1")]
    pub overriding: Option<Override>,
    /// What the worker has said that completed a task last, or what was inherited.
    #[prost(enumeration = "Behavior", tag = "2")]
    pub behavior: i32,
    /// The version that belongs to it.
    #[prost(message, optional, tag = "3")]
    pub version: Option<Version>,
    /// The run has begun with a version that it had inherited.
    #[prost(bool, tag = "4")]
    pub inherited: bool,
}

impl Override {
    /// How the run is to go by versions.
    pub fn behavior(&self) -> i32 {
        if self.pinned.is_some() { Behavior::Pinned.into() } else { Behavior::AutoUpgrade.into() }
    }
}

impl Versioning {
    /// How the run goes by versions: what overrides it comes first.
    pub fn in_force(&self) -> i32 {
        self.overriding.as_ref().map_or(self.behavior, Override::behavior)
    }

    /// The version that the run stays with.
    pub fn pinned(&self) -> Option<&Version> {
        match &self.overriding {
            Some(overriding) => overriding.pinned.as_ref().and_then(|pinned| pinned.version.as_ref()),
            None if self.behavior == i32::from(Behavior::Pinned) => self.version.as_ref(),
            None => None,
        }
    }
}

/// What a run inherits from `run` on this queue. A version is known to serve the queue of its own run, and no other.
pub(crate) fn handed_on<'a>(run: &'a Run, task_queue: &str) -> Option<&'a Versioning> {
    run.properties.versioning.as_ref().filter(|_| run.start.task_queue == task_queue)
}

/// The version that a retry of the run begins with: one that the run has inherited itself, if it still is pinned.
pub(crate) fn retried(run: &Run) -> Option<&Version> {
    run.properties.versioning.as_ref().filter(|versioning| versioning.inherited)?.pinned()
}

pub(crate) fn apply_started(properties: &mut Properties, started: &Started) {
    let (overriding, version) = (&started.versioning_override, &started.inherited_pinned_version);
    if overriding.is_none() && version.is_none() {
        return;
    }
    let behavior = if version.is_some() { Behavior::Pinned } else { Behavior::Unspecified };
    let versioning = Versioning {
        overriding: overriding.clone(),
        behavior: behavior.into(),
        version: version.clone(),
        inherited: version.is_some(),
    };
    let name = versioning.pinned().map(|version| version.deployment_name.clone());
    properties.deployment_name = name.unwrap_or_default();
    properties.versioning = Some(versioning);
}

/// A worker has completed a task. One without a behavior takes back what another has said.
pub(crate) fn apply_completed(run: &mut Run, completed: &Completed) {
    let properties = run.properties.as_ref();
    let (behavior, name) = (completed.versioning_behavior, &completed.worker_deployment_name);
    let version = completed.deployment_version.as_ref().filter(|_| behavior != 0);
    let versioning = match &properties.versioning {
        None if behavior == 0 => None,
        before => {
            let before = before.clone().unwrap_or_default();
            Some(Versioning { behavior, version: version.cloned(), ..before })
        }
    };
    if properties.versioning == versioning && properties.deployment_name == *name {
        return;
    }
    change(run, |properties| {
        properties.versioning = versioning;
        properties.deployment_name.clone_from(name);
    });
}
