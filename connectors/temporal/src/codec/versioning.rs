//! Worker versions: read from requests, checked by Temporal's rules, and written into responses.

use bytes::Bytes;
use everlog_engine::Run;
use everlog_engine::api_types::VersioningBehavior as Behavior;
use everlog_engine::machine::worker_versioning::{Override, Pinned, Version, Versioning};
use everlog_temporal_api::common::WorkerVersionCapabilities;
use everlog_temporal_api::enums::WorkerVersioningMode;
use everlog_temporal_api::full::temporal::api::deployment::v1::{
    Deployment, WorkerDeploymentOptions, WorkerDeploymentVersion,
};
use everlog_temporal_api::full::temporal::api::workflow::v1::VersioningOverride;
use everlog_temporal_api::full::temporal::api::workflow::v1::versioning_override::{
    Override as Named, PinnedOverride, PinnedOverrideBehavior,
};
use everlog_temporal_api::taskqueue::PollerInfo;
use everlog_temporal_api::workflow::WorkflowExecutionVersioningInfo;
use everlog_temporal_api::workflowservice::RespondWorkflowTaskCompletedRequest;
use prost::Message;
use tonic::Status;

use crate::codec::status::invalid;
use crate::codec::validation::{Checks, not_yet};

/// The version of an unversioned worker, as one word.
pub(crate) const NO_VERSION: &str = "__unversioned__";

/// The version fields of a poll, encoded for DescribeTaskQueue; none if the worker sets none. A worker that wants tasks by them is
/// refused: it would get those of all versions.
pub(crate) fn worker_version(
    checks: Checks<'_>,
    capabilities: Option<WorkerVersionCapabilities>,
    deployment_options: Option<Bytes>,
) -> Result<Option<Bytes>, Status> {
    if capabilities.is_none() && deployment_options.is_none() {
        return Ok(None);
    }
    let is_routed = capabilities.as_ref().is_some_and(|capabilities| capabilities.use_versioning);
    not_yet("worker_version_capabilities.use_versioning", is_routed)?;
    let said =
        PollerInfo { worker_version_capabilities: capabilities, deployment_options, ..PollerInfo::default() };
    let said = said.encode_to_vec();
    checks.bytes("version of the worker", said.len())?;
    Ok(Some(said.into()))
}

/// The versioning override of a start, in the present form also if the request has a deprecated one.
pub(crate) fn overriding(checks: &Checks<'_>, given: Option<&Bytes>) -> Result<Option<Override>, Status> {
    let Some(given) = read::<VersioningOverride>("versioning_override", given)? else { return Ok(None) };
    let overriding = match &given.r#override {
        Some(Named::AutoUpgrade(true)) => Override { pinned: None, auto_upgrade: true },
        Some(Named::Pinned(pinned)) => pinned_to(pinned)?,
        Some(Named::AutoUpgrade(false) | Named::OneTime(_)) | None => in_old_words(&given)?,
    };
    if let Some(version) = overriding.pinned.as_ref().and_then(|pinned| pinned.version.as_ref()) {
        check(checks, "VersioningOverride", &version.deployment_name, &version.build_id)?;
    }
    Ok(Some(overriding))
}

fn pinned_to(pinned: &PinnedOverride) -> Result<Override, Status> {
    let Some(version) = &pinned.version else {
        return Err(invalid("must provide version if override is pinned."));
    };
    if pinned.behavior == i32::from(PinnedOverrideBehavior::Unspecified) {
        return Err(invalid("must specify pinned override behavior if override is pinned."));
    }
    let WorkerDeploymentVersion { build_id, deployment_name } = version.clone();
    let version = Some(Version { build_id, deployment_name });
    Ok(Override { pinned: Some(Pinned { behavior: pinned.behavior, version }), auto_upgrade: false })
}

fn pin(version: Option<Version>) -> Override {
    let behavior = PinnedOverrideBehavior::Pinned.into();
    Override { pinned: Some(Pinned { behavior, version }), auto_upgrade: false }
}

/// An override in the deprecated fields.
fn in_old_words(given: &VersioningOverride) -> Result<Override, Status> {
    let behavior = Behavior::try_from(given.behavior)
        .map_err(|_unknown| invalid(format!("override behavior {} not recognized", given.behavior)))?;
    match (behavior, &given.deployment, given.pinned_version.as_str()) {
        (Behavior::Unspecified, ..) => Err(invalid("override behavior is required")),
        (Behavior::Pinned, Some(deployment), _) => of_deployment(deployment),
        (Behavior::Pinned, None, "") => {
            Err(invalid("must provide deployment (deprecated) or pinned version if behavior is 'PINNED'"))
        }
        (Behavior::Pinned, None, NO_VERSION) => Ok(pin(None)),
        (Behavior::Pinned, None, word) => Ok(pin(Some(of_word(word)?))),
        (Behavior::AutoUpgrade, Some(_), _) => {
            Err(invalid("only provide deployment if behavior is 'PINNED'"))
        }
        (Behavior::AutoUpgrade, None, "") => Ok(Override { pinned: None, auto_upgrade: true }),
        (Behavior::AutoUpgrade, None, _) => {
            Err(invalid("only provide pinned version if behavior is 'PINNED'"))
        }
    }
}

fn of_deployment(deployment: &Deployment) -> Result<Override, Status> {
    let Deployment { series_name, build_id } = deployment.clone();
    if series_name.is_empty() {
        return Err(invalid("deployment name cannot be empty"));
    }
    if series_name.contains(['.', ':']) {
        return Err(invalid("deployment name cannot contain '.' or ':'"));
    }
    if build_id.is_empty() {
        return Err(invalid("deployment build ID cannot be empty"));
    }
    Ok(pin(Some(Version { build_id, deployment_name: series_name })))
}

/// Parses a version as one word: deployment, point or colon, build id.
fn of_word(word: &str) -> Result<Version, Status> {
    let cut = word.split_once('.').map(|(name, build_id)| match word.split_once(':') {
        Some(earlier) if earlier.0.len() < name.len() => earlier,
        Some(_) | None => (name, build_id),
    });
    match cut {
        Some((name, build_id)) if !name.is_empty() && !build_id.is_empty() => {
            Ok(Version { build_id: build_id.into(), deployment_name: name.into() })
        }
        Some(_) | None => {
            let expected = "expected format is \"<deployment_name>.<build_id>\"";
            Err(invalid(format!("invalid version string {word:?}, {expected}")))
        }
    }
}

/// The version that a completed workflow task reports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedVersion {
    pub behavior: i32,
    pub deployment_name: String,
    pub version: Option<Version>,
}

/// Reads and checks the reported version. Without a deployment name or a build id there is none.
pub(crate) fn reported(
    checks: &Checks<'_>,
    request: &RespondWorkflowTaskCompletedRequest,
) -> Result<ReportedVersion, Status> {
    let deployment = read::<Deployment>("deployment", request.deployment.as_ref())?;
    let options = read::<WorkerDeploymentOptions>("deployment_options", request.deployment_options.as_ref())?;
    let is_versioned = options
        .as_ref()
        .is_some_and(|options| options.worker_versioning_mode() == WorkerVersioningMode::Versioned);
    if request.versioning_behavior != 0 && deployment.is_none() && !is_versioned {
        return Err(invalid(
            "versioning behavior cannot be specified without deployment options being set with versioned mode",
        ));
    }
    // Some SDKs report a behavior for unversioned workers as well.
    let behavior = if options.is_some() && !is_versioned { 0 } else { request.versioning_behavior };
    let former = deployment.unwrap_or_default();
    let former = Version { build_id: former.build_id, deployment_name: former.series_name };
    let named = options.unwrap_or_default();
    let named = Version { build_id: named.build_id, deployment_name: named.deployment_name };
    for said in [&former, &named] {
        check(checks, "DeploymentOptions", &said.deployment_name, &said.build_id)?;
    }
    let deployment_name =
        if named.deployment_name.is_empty() { &former.deployment_name } else { &named.deployment_name };
    let deployment_name = deployment_name.clone();
    let version = if is_versioned { named } else { former };
    let is_whole = !version.deployment_name.is_empty() && !version.build_id.is_empty();
    Ok(ReportedVersion { behavior, deployment_name, version: is_whole.then_some(version) })
}

fn read<M: Message + Default>(field: &str, given: Option<&Bytes>) -> Result<Option<M>, Status> {
    let read = given.map(|given| M::decode(given.clone())).transpose();
    read.map_err(|_error| invalid(format!("{field} cannot be read.")))
}

fn check(checks: &Checks<'_>, whose: &str, deployment_name: &str, build_id: &str) -> Result<(), Status> {
    checks.length(&format!("{whose}.DeploymentName"), deployment_name)?;
    checks.length(&format!("{whose}.BuildId"), build_id)
}

/// The versioning of a run, in the present and in the deprecated fields.
pub(crate) fn info(run: &Run) -> Option<WorkflowExecutionVersioningInfo> {
    let Versioning { overriding, behavior, version, .. } = run.properties.versioning.as_ref()?;
    Some(WorkflowExecutionVersioningInfo {
        behavior: *behavior,
        version: if *behavior == 0 { String::new() } else { word(version.as_ref()) },
        deployment_version: version.as_ref().map(|version| version.encode_to_vec().into()),
        versioning_override: overriding.as_ref().map(override_message),
        ..WorkflowExecutionVersioningInfo::default()
    })
}

fn word(version: Option<&Version>) -> String {
    version.map_or(NO_VERSION.into(), |version| format!("{}.{}", version.deployment_name, version.build_id))
}

/// The encoded override, with the deprecated fields after the present ones.
pub(crate) fn override_message(overriding: &Override) -> Bytes {
    let pinned_version = overriding.pinned.as_ref().map(|pinned| word(pinned.version.as_ref()));
    let old = VersioningOverride {
        behavior: overriding.behavior(),
        pinned_version: pinned_version.unwrap_or_default(),
        ..VersioningOverride::default()
    };
    [overriding.encode_to_vec(), old.encode_to_vec()].concat().into()
}

#[cfg(test)]
mod tests {
    use everlog_engine::Settings;
    use everlog_engine::Start;
    use tonic::Code;

    use super::*;
    use crate::limits::Limits;

    fn with_checks<T>(test: impl FnOnce(Checks<'_>) -> T) -> T {
        let (limits, settings) = (Limits::default(), Settings::standard());
        test(Checks { limits: &limits, settings: &settings })
    }

    fn version(deployment_name: &str, build_id: &str) -> Version {
        Version { build_id: build_id.into(), deployment_name: deployment_name.into() }
    }

    fn encoded(message: &impl Message) -> Option<Bytes> {
        Some(message.encode_to_vec().into())
    }

    fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
        let status = result.expect_err("it has to be refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    }

    fn pinned(version: Option<(&str, &str)>, behavior: i32) -> VersioningOverride {
        let version = version.map(|(deployment_name, build_id)| WorkerDeploymentVersion {
            build_id: build_id.into(),
            deployment_name: deployment_name.into(),
        });
        let named = Named::Pinned(PinnedOverride { behavior, version });
        VersioningOverride { r#override: Some(named), ..VersioningOverride::default() }
    }

    fn old(behavior: i32, deployment: Option<(&str, &str)>, pinned_version: &str) -> VersioningOverride {
        let deployment = deployment.map(|(series_name, build_id)| Deployment {
            series_name: series_name.into(),
            build_id: build_id.into(),
        });
        let pinned_version = pinned_version.into();
        VersioningOverride { behavior, deployment, pinned_version, ..VersioningOverride::default() }
    }

    /// Each as a Temporal server has taken it.
    #[test]
    fn an_override_is_kept_in_todays_words() {
        let taken = |given: VersioningOverride| {
            let taken = with_checks(|checks| overriding(&checks, encoded(&given).as_ref()));
            taken.expect("it is taken").expect("it says something")
        };
        let upgrade = Override { pinned: None, auto_upgrade: true };
        let named = Some(Named::AutoUpgrade(true));
        let one = || pin(Some(version("shop", "one")));
        assert_eq!(taken(VersioningOverride { r#override: named, ..old(1, None, "a.b") }), upgrade);
        assert_eq!(taken(pinned(Some(("shop", "one")), 1)), one());
        assert_eq!(taken(pinned(Some(("", "")), 1)), pin(Some(version("", ""))));
        assert_eq!(taken(old(2, None, "")), upgrade);
        assert_eq!(taken(old(1, Some(("shop", "one")), "")), one());
        assert_eq!(taken(old(1, None, "shop.one")), one());
        assert_eq!(taken(old(1, None, "a:b.c")), pin(Some(version("a", "b.c"))));
        assert_eq!(taken(old(1, None, "__unversioned__")), pin(None));
        assert_eq!(with_checks(|checks| overriding(&checks, None)).expect("nothing is said"), None);
    }

    /// Each in the words of a Temporal server, but for lengths, which it does not look at.
    #[test]
    fn an_override_that_says_nothing_or_too_much_is_refused() {
        let refused = |given: VersioningOverride| {
            refusal(with_checks(|checks| overriding(&checks, encoded(&given).as_ref())))
        };
        let off = VersioningOverride { r#override: Some(Named::AutoUpgrade(false)), ..Default::default() };
        assert_eq!(refused(VersioningOverride::default()), "override behavior is required");
        assert_eq!(refused(off), "override behavior is required");
        assert_eq!(refused(pinned(None, 1)), "must provide version if override is pinned.");
        let unsaid = "must specify pinned override behavior if override is pinned.";
        assert_eq!(refused(pinned(Some(("shop", "one")), 0)), unsaid);
        let neither = "must provide deployment (deprecated) or pinned version if behavior is 'PINNED'";
        assert_eq!(refused(old(1, None, "")), neither);
        let word = |word: &str| {
            format!("invalid version string \"{word}\", expected format is \"<deployment_name>.<build_id>\"")
        };
        for bad in ["shop", "shop:one", ".one", "shop."] {
            assert_eq!(refused(old(1, None, bad)), word(bad));
        }
        assert_eq!(refused(old(1, Some(("", "one")), "")), "deployment name cannot be empty");
        assert_eq!(refused(old(1, Some(("a.b", "one")), "")), "deployment name cannot contain '.' or ':'");
        assert_eq!(refused(old(1, Some(("shop", "")), "")), "deployment build ID cannot be empty");
        assert_eq!(refused(old(2, Some(("", "")), "")), "only provide deployment if behavior is 'PINNED'");
        assert_eq!(refused(old(2, None, "x")), "only provide pinned version if behavior is 'PINNED'");
        assert_eq!(refused(old(7, None, "")), "override behavior 7 not recognized");
        let long = "x".repeat(1_001);
        let too_long = "VersioningOverride.BuildId length exceeds limit.";
        assert_eq!(refused(pinned(Some(("shop", &long)), 1)), too_long);
    }

    fn completion(behavior: i32, mode: Option<i32>, name: &str) -> RespondWorkflowTaskCompletedRequest {
        let options = mode.map(|worker_versioning_mode| WorkerDeploymentOptions {
            deployment_name: name.into(),
            build_id: "one".into(),
            worker_versioning_mode,
        });
        RespondWorkflowTaskCompletedRequest {
            versioning_behavior: behavior,
            deployment_options: options.as_ref().and_then(encoded),
            ..RespondWorkflowTaskCompletedRequest::default()
        }
    }

    /// Each as a Temporal server writes it into its event.
    #[test]
    fn what_a_worker_says_is_told_as_far_as_it_has_versions() {
        let told = |request: RespondWorkflowTaskCompletedRequest| {
            let said = with_checks(|checks| reported(&checks, &request)).expect("it is taken");
            (said.behavior, said.deployment_name, said.version)
        };
        let (unversioned, versioned) = (Some(1), Some(2));
        let shop = || "shop".to_owned();
        let one = || Some(version("shop", "one"));
        assert_eq!(told(completion(0, None, "")), (0, String::new(), None));
        assert_eq!(told(completion(0, unversioned, "shop")), (0, shop(), None));
        assert_eq!(told(completion(0, versioned, "shop")), (0, shop(), one()));
        assert_eq!(told(completion(1, versioned, "shop")), (1, shop(), one()));
        assert_eq!(told(completion(7, versioned, "shop")), (7, shop(), one()));
        assert_eq!(told(completion(1, versioned, "")), (1, String::new(), None));
        let former = encoded(&Deployment { series_name: "old".into(), build_id: "two".into() });
        let with = |request| RespondWorkflowTaskCompletedRequest { deployment: former.clone(), ..request };
        let two = || Some(version("old", "two"));
        assert_eq!(told(with(completion(1, None, ""))), (1, "old".into(), two()));
        assert_eq!(told(with(completion(1, versioned, "shop"))), (1, shop(), one()));
        assert_eq!(told(with(completion(1, unversioned, "shop"))), (0, shop(), two()));
    }

    #[test]
    fn a_behavior_of_no_version_is_refused() {
        let refused = |behavior, mode| {
            refusal(with_checks(|checks| reported(&checks, &completion(behavior, mode, "shop"))))
        };
        let words = "versioning behavior cannot be specified without deployment options being set with versioned mode";
        assert_eq!(refused(1, None), words);
        assert_eq!(refused(1, Some(0)), words);
        assert_eq!(refused(2, Some(1)), words);
        let long = completion(1, Some(2), &"x".repeat(1_001));
        let too_long = "DeploymentOptions.DeploymentName length exceeds limit.";
        assert_eq!(refusal(with_checks(|checks| reported(&checks, &long))), too_long);
    }

    fn run(versioning: Option<Versioning>) -> Run {
        let mut run = Run::begin(Start::default());
        run.properties.make_mut().versioning = versioning;
        run
    }

    #[test]
    fn a_run_tells_its_version_in_old_words_too() {
        assert_eq!(info(&run(None)), None);
        let (one, two) = (version("shop", "one"), version("shop", "two"));
        let said = Versioning { behavior: 2, version: Some(one.clone()), ..Versioning::default() };
        let told = info(&run(Some(said.clone()))).expect("there is something to tell");
        assert_eq!((told.behavior, told.version.as_str()), (2, "shop.one"));
        assert_eq!((told.deployment_version, told.versioning_override), (encoded(&one), None));

        let overridden = run(Some(Versioning { overriding: Some(pin(Some(two.clone()))), ..said }));
        let told = info(&overridden).expect("there is something to tell");
        assert_eq!((told.behavior, told.version.as_str()), (2, "shop.one"));
        let overriding = VersioningOverride::decode(told.versioning_override.expect("it is told"));
        let expected = VersioningOverride {
            behavior: 1,
            pinned_version: "shop.two".into(),
            ..pinned(Some(("shop", "two")), 1)
        };
        assert_eq!(overriding.expect("it is one"), expected);

        let taken_back = info(&run(Some(Versioning::default())));
        assert_eq!(taken_back, Some(WorkflowExecutionVersioningInfo::default()), "something has been told");
        let bare = info(&run(Some(Versioning { behavior: 1, ..Versioning::default() })));
        assert_eq!(bare.expect("there is something to tell").version, "__unversioned__");
    }
}
