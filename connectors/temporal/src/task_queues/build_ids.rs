//! The build ids of a task queue in sets of compatible ones, as version 0.1 of worker versioning has them. They are kept and shown;
//! tasks go to any worker.

use everlog_temporal_api::workflowservice::UpdateWorkerBuildIdCompatibilityRequest;
use everlog_temporal_api::workflowservice::update_worker_build_id_compatibility_request::{
    AddNewCompatibleVersion, MergeSets, Operation,
};
use prost::Message;
use tonic::Status;

use crate::codec::status::{invalid, not_found};

/// Sets of a queue.
const SETS_MAX: usize = 10;
/// Build ids of a queue.
const IDS_MAX: usize = 100;
/// Bytes of a build id.
const ID_BYTES_MAX: usize = 255;

/// Build ids that are compatible; the last one is the default of the set.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct BuildIdSet {
    #[prost(string, repeated, tag = "1")]
    pub ids: Vec<String>,
}

/// Checks an update. The texts are those of Temporal's server.
pub(crate) fn check(request: &UpdateWorkerBuildIdCompatibilityRequest) -> Result<(), Status> {
    let mut faults = Vec::new();
    if request.task_queue.is_empty() {
        faults.push("`task_queue` to be set");
    }
    let mut check = |id: &str, missing: &'static str| {
        if id.is_empty() {
            faults.push(missing);
        } else if id.len() > ID_BYTES_MAX {
            faults.push(" Worker build IDs to be no larger than 255 characters");
        }
    };
    match &request.operation {
        Some(Operation::AddNewBuildIdInNewDefaultSet(id)) => {
            check(id, "`add_new_version_id_in_new_default_set` to be set");
        }
        Some(Operation::AddNewCompatibleBuildId(add)) => {
            check(&add.new_build_id, "`add_new_compatible_version` to be set");
            check(&add.existing_compatible_build_id, "`existing_compatible_version` to be set");
        }
        Some(Operation::PromoteSetByBuildId(id)) => check(id, "`promote_set_by_version_id` to be set"),
        Some(Operation::PromoteBuildIdWithinSet(id)) => {
            check(id, "`promote_version_id_within_set` to be set")
        }
        Some(Operation::MergeSets(merge)) => {
            check(&merge.primary_set_build_id, "`primary_set_version_id` to be set");
            check(&merge.secondary_set_build_id, "`secondary_set_version_id` to be set");
        }
        None => faults.push("an operation to be specified"),
    }
    if faults.is_empty() {
        return Ok(());
    }
    let faults: String = faults.iter().map(|fault| format!(", {fault}")).collect();
    Err(invalid(format!("request to update worker build ID compatability requires: {faults}")))
}

/// Changes the sets of a queue, the last of which is its default. What is as wanted already stays as it is.
///
/// # Errors
/// An id is unknown, or is somewhere else; there would be too many.
pub(crate) fn update(sets: &mut Vec<BuildIdSet>, operation: Operation) -> Result<(), Status> {
    match operation {
        Operation::AddNewBuildIdInNewDefaultSet(id) => match place(sets, &id) {
            Some(place) if place == (sets.len() - 1, last(sets, sets.len() - 1)) => {}
            Some(_elsewhere) => return Err(invalid(format!("version {id} already exists"))),
            None => sets.push(BuildIdSet { ids: vec![id] }),
        },
        Operation::AddNewCompatibleBuildId(add) => add_compatible(sets, add)?,
        Operation::PromoteSetByBuildId(id) => {
            let (set, _) = place(sets, &id).ok_or_else(|| unknown("version", &id))?;
            make_default(sets, set);
        }
        Operation::PromoteBuildIdWithinSet(id) => {
            let (set, index) = place(sets, &id).ok_or_else(|| unknown("version", &id))?;
            let id = sets[set].ids.remove(index);
            sets[set].ids.push(id);
        }
        Operation::MergeSets(merge) => merge_sets(sets, &merge)?,
    }
    let too_many = |what: &str, count: usize, most: usize| {
        let limit = format!("permitted in namespace dynamic config ({count}/{most})");
        Err(Status::failed_precondition(format!("update would exceed number of {what} {limit}")))
    };
    if sets.len() > SETS_MAX {
        return too_many("compatible version sets", sets.len(), SETS_MAX);
    }
    let ids = sets.iter().map(|set| set.ids.len()).sum();
    if ids > IDS_MAX { too_many("build IDs", ids, IDS_MAX) } else { Ok(()) }
}

fn add_compatible(sets: &mut Vec<BuildIdSet>, add: AddNewCompatibleVersion) -> Result<(), Status> {
    let AddNewCompatibleVersion {
        new_build_id: id,
        existing_compatible_build_id: existing,
        make_set_default,
    } = add;
    let (set, _) = place(sets, &existing).ok_or_else(|| unknown("compatible_version", &existing))?;
    match place(sets, &id) {
        None => {
            sets[set].ids.push(id);
            if make_set_default {
                make_default(sets, set);
            }
            Ok(())
        }
        Some((other, _)) if other != set => Err(invalid(format!(
            "{id} requested to be made compatible with {existing} but both versions exist and are incompatible"
        ))),
        Some((_, index)) if index != last(sets, set) => {
            Err(invalid(format!("version {id} already exists and is not default in set")))
        }
        Some(_) if make_set_default && set != sets.len() - 1 => {
            Err(invalid(format!("version {id} already exists and is not default for queue")))
        }
        Some(_as_wanted) => Ok(()),
    }
}

/// The ids of the secondary set go before the default of the primary one.
fn merge_sets(sets: &mut Vec<BuildIdSet>, merge: &MergeSets) -> Result<(), Status> {
    let find = |what: &str, id: &str| place(sets, id).map(|(set, _)| set).ok_or_else(|| unknown(what, id));
    let primary = find("primary version", &merge.primary_set_build_id)?;
    let secondary = find("secondary version", &merge.secondary_set_build_id)?;
    if primary == secondary {
        return Ok(());
    }
    let becomes_default = secondary == sets.len() - 1;
    let ids = std::mem::take(&mut sets[secondary].ids);
    let before_default = last(sets, primary);
    sets[primary].ids.splice(before_default..before_default, ids);
    if becomes_default {
        make_default(sets, primary);
    }
    sets.retain(|set| !set.ids.is_empty());
    Ok(())
}

/// The set of a build id, and its place in that.
pub(crate) fn place(sets: &[BuildIdSet], id: &str) -> Option<(usize, usize)> {
    let in_set = |set: &BuildIdSet| set.ids.iter().position(|known| known == id);
    sets.iter().enumerate().find_map(|(number, set)| Some((number, in_set(set)?)))
}

/// True of the build id that new runs of the queue would get: the default of the default set.
pub(crate) fn is_default(sets: &[BuildIdSet], id: &str) -> bool {
    sets.last().and_then(|set| set.ids.last()).is_some_and(|default| default == id)
}

/// The place of the default of a set; none is empty.
fn last(sets: &[BuildIdSet], set: usize) -> usize {
    sets[set].ids.len() - 1
}

fn make_default(sets: &mut Vec<BuildIdSet>, set: usize) {
    let set = sets.remove(set);
    sets.push(set);
}

fn unknown(what: &str, id: &str) -> Status {
    not_found(format!("targeted {what} {id} not found"))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn new_set(id: &str) -> Operation {
        Operation::AddNewBuildIdInNewDefaultSet(id.into())
    }

    fn add(id: &str, existing: &str, make_set_default: bool) -> Operation {
        Operation::AddNewCompatibleBuildId(AddNewCompatibleVersion {
            new_build_id: id.into(),
            existing_compatible_build_id: existing.into(),
            make_set_default,
        })
    }

    fn merge(primary: &str, secondary: &str) -> Operation {
        let (primary_set_build_id, secondary_set_build_id) = (primary.into(), secondary.into());
        Operation::MergeSets(MergeSets { primary_set_build_id, secondary_set_build_id })
    }

    /// Each answer, and the sets after each step, as a Temporal server has given them.
    #[test]
    fn sets_change_as_on_a_temporal_server() {
        let promote = |id: &str| Operation::PromoteSetByBuildId(id.into());
        let within = |id: &str| Operation::PromoteBuildIdWithinSet(id.into());
        let steps = [
            (promote("z"), "targeted version z not found", ""),
            (new_set("1.0"), "", "1.0"),
            (new_set("1.0"), "", "1.0"),
            (add("1.1", "1.0", false), "", "1.0 1.1"),
            (add("1.1", "1.0", false), "", "1.0 1.1"),
            (add("1.2", "z", false), "targeted compatible_version z not found", "1.0 1.1"),
            (new_set("2.0"), "", "1.0 1.1, 2.0"),
            (new_set("1.0"), "version 1.0 already exists", "1.0 1.1, 2.0"),
            (
                add("2.0", "1.0", false),
                "2.0 requested to be made compatible with 1.0 but both versions exist and are incompatible",
                "1.0 1.1, 2.0",
            ),
            (
                add("1.0", "1.1", false),
                "version 1.0 already exists and is not default in set",
                "1.0 1.1, 2.0",
            ),
            (
                add("1.1", "1.0", true),
                "version 1.1 already exists and is not default for queue",
                "1.0 1.1, 2.0",
            ),
            (add("1.2", "1.0", true), "", "2.0, 1.0 1.1 1.2"),
            (add("1.2", "1.0", true), "", "2.0, 1.0 1.1 1.2"),
            (promote("2.0"), "", "1.0 1.1 1.2, 2.0"),
            (promote("2.0"), "", "1.0 1.1 1.2, 2.0"),
            (within("1.0"), "", "1.1 1.2 1.0, 2.0"),
            (within("zz"), "targeted version zz not found", "1.1 1.2 1.0, 2.0"),
            (new_set("3.0"), "", "1.1 1.2 1.0, 2.0, 3.0"),
            (merge("2.0", "1.0"), "", "1.1 1.2 1.0 2.0, 3.0"),
            (merge("2.0", "1.0"), "", "1.1 1.2 1.0 2.0, 3.0"),
            (merge("2.0", "y"), "targeted secondary version y not found", "1.1 1.2 1.0 2.0, 3.0"),
            (merge("y", "2.0"), "targeted primary version y not found", "1.1 1.2 1.0 2.0, 3.0"),
            (merge("2.0", "3.0"), "", "1.1 1.2 1.0 3.0 2.0"),
        ];
        let mut sets = Vec::new();
        for (operation, refusal, expected) in steps {
            let mut changed = sets.clone();
            let step = format!("{operation:?}");
            let answer = update(&mut changed, operation).map(|()| sets = changed);
            assert_eq!(
                answer.err().map_or(String::new(), |status| status.message().to_owned()),
                refusal,
                "{step}"
            );
            let shown: Vec<_> = sets.iter().map(|set: &BuildIdSet| set.ids.join(" ")).collect();
            assert_eq!(shown.join(", "), expected, "{step}");
        }
        assert!(is_default(&sets, "2.0") && !is_default(&sets, "3.0"));
    }

    #[test]
    fn a_queue_has_so_many_sets_and_ids() {
        let mut sets = Vec::new();
        (0..SETS_MAX).for_each(|id| update(&mut sets, new_set(&id.to_string())).expect("there is room"));
        let refusal = update(&mut sets.clone(), new_set("more")).expect_err("there is none");
        let message = "update would exceed number of compatible version sets permitted in namespace dynamic config (11/10)";
        assert_eq!((refusal.code(), refusal.message()), (Code::FailedPrecondition, message));
        (SETS_MAX..IDS_MAX)
            .for_each(|id| update(&mut sets, add(&id.to_string(), "3", false)).expect("there is room"));
        let refusal = update(&mut sets, add("more", "3", false)).expect_err("there is none");
        let message =
            "update would exceed number of build IDs permitted in namespace dynamic config (101/100)";
        assert_eq!((refusal.code(), refusal.message()), (Code::FailedPrecondition, message));
    }

    #[test]
    fn what_is_missing_is_said_in_the_words_of_temporals_server() {
        let refusal = |task_queue: &str, operation: Option<Operation>| {
            let request = UpdateWorkerBuildIdCompatibilityRequest {
                task_queue: task_queue.into(),
                operation,
                ..Default::default()
            };
            let text = check(&request).expect_err("it has to be refused").message().to_owned();
            text.replace("request to update worker build ID compatability requires: ", "")
        };
        assert_eq!(refusal("q", None), ", an operation to be specified");
        assert_eq!(refusal("", Some(new_set("1"))), ", `task_queue` to be set");
        let unset = ", `add_new_version_id_in_new_default_set` to be set";
        assert_eq!(refusal("q", Some(new_set(""))), unset);
        let long = ",  Worker build IDs to be no larger than 255 characters";
        assert_eq!(refusal("q", Some(new_set(&"x".repeat(256)))), long);
        assert_eq!(refusal("q", Some(add("", "1", true))), ", `add_new_compatible_version` to be set");
        assert_eq!(refusal("q", Some(add("1", "", true))), ", `existing_compatible_version` to be set");
        let well = UpdateWorkerBuildIdCompatibilityRequest {
            task_queue: "q".into(),
            operation: Some(merge("1", "2")),
            ..Default::default()
        };
        assert!(check(&well).is_ok());
    }
}
