//! The client headers: unsupported versions of known SDKs are refused, and supported features are read.

use everlog_temporal_api::errordetails::ClientVersionNotSupportedFailure;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use crate::codec::status::{detailed, invalid};

const NAME_HEADER: &str = "client-name";
const VERSION_HEADER: &str = "client-version";
const FEATURES_HEADER: &str = "supported-features";
/// The feature of a client that follows the run id in a close event by itself.
const FOLLOWS_NEXT_RUN: &str = "follows-next-run-id";

/// Known clients, each with the first major version that is not supported.
pub(crate) const KNOWN: &[(&str, u64)] = &[
    ("temporal-cli", 2),
    ("temporal-dotnet", 2),
    ("temporal-go", 2),
    ("temporal-java", 2),
    ("temporal-php", 3),
    ("temporal-python", 2),
    ("temporal-ruby", 2),
    ("temporal-rust", 2),
    ("temporal-server", 2),
    ("temporal-typescript", 2),
    ("temporal-ui", 3),
];

/// The supported versions of a client, as text.
pub(crate) fn supported(major_below: u64) -> String {
    format!("<{major_below}.0.0")
}

/// Refuses a call of an unsupported version of a known client.
pub(crate) fn check(metadata: &MetadataMap) -> Result<(), Status> {
    let text =
        |name| metadata.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    let (Some(name), Some(version)) = (text(NAME_HEADER), text(VERSION_HEADER)) else {
        return Ok(());
    };
    let Some((_, major_below)) = KNOWN.iter().find(|(known, _)| *known == name) else {
        return Ok(());
    };
    let major =
        major(version).ok_or_else(|| invalid(format!("Unable to parse client version: {version}")))?;
    if major < *major_below {
        return Ok(());
    }
    let supported_versions = supported(*major_below);
    let message = format!(
        "Client version {version} is not supported. Server supports {name} versions: {supported_versions}"
    );
    let detail = ClientVersionNotSupportedFailure {
        client_version: version.into(),
        client_name: name.into(),
        supported_versions,
    };
    Err(detailed(Code::FailedPrecondition, message, &detail))
}

/// True if the client follows to the next run after a run that failed, timed out or completed.
pub(crate) fn follows_next_run(metadata: &MetadataMap) -> bool {
    let features = metadata.get(FEATURES_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    features.split(',').any(|feature| feature == FOLLOWS_NEXT_RUN)
}

/// The major number of a semantic version; none if it is not one.
fn major(version: &str) -> Option<u64> {
    let core = version.split(['-', '+']).next()?;
    let mut numbers = core.split('.').map(|number| {
        let plain =
            !number.is_empty() && number.len() < 10 && number.bytes().all(|byte| byte.is_ascii_digit());
        if plain { number.parse::<u64>().ok() } else { None }
    });
    let [major, _minor, _patch] = [numbers.next()??, numbers.next()??, numbers.next()??];
    if numbers.next().is_none() { Some(major) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called_by(name: &'static str, version: &'static str) -> Result<(), (Code, String)> {
        let mut metadata = MetadataMap::new();
        metadata.insert(NAME_HEADER, name.parse().expect("ASCII"));
        metadata.insert(VERSION_HEADER, version.parse().expect("ASCII"));
        check(&metadata).map_err(|status| (status.code(), status.message().to_owned()))
    }

    #[test]
    fn clients_of_today_and_unknown_ones_are_welcome() {
        assert_eq!(called_by("temporal-python", "1.35.0"), Ok(()));
        assert_eq!(called_by("temporal-go", "1.38.0-rc.1"), Ok(()));
        assert_eq!(called_by("my-client", "no version"), Ok(()));
        assert_eq!(called_by("temporal-go", ""), Ok(()));
        assert_eq!(check(&MetadataMap::new()).map_err(|status| status.code()), Ok(()));
    }

    #[test]
    fn a_client_says_whether_it_follows_runs() {
        let mut metadata = MetadataMap::new();
        assert!(!follows_next_run(&metadata));
        let said =
            ["follows-next-run-id", "x,follows-next-run-id", "x, follows-next-run-id", "follows-next-run"];
        let follows = said.map(|features| {
            metadata.insert(FEATURES_HEADER, features.parse().expect("ASCII"));
            follows_next_run(&metadata)
        });
        // As a Temporal server reads it.
        assert_eq!(follows, [true, true, false, false]);
    }

    #[test]
    fn a_version_beyond_the_supported_ones_is_refused_with_what_is_supported() {
        let (code, message) = called_by("temporal-go", "2.0.0").expect_err("too new");
        assert_eq!(code, Code::FailedPrecondition);
        assert_eq!(
            message,
            "Client version 2.0.0 is not supported. Server supports temporal-go versions: <2.0.0"
        );
    }

    #[test]
    fn a_version_that_is_none_is_refused() {
        for version in ["1", "1.2", "1.2.x", "1..2", "1.2.3.4", "-1.0.0", "99999999999999999999.0.0"] {
            let (code, message) = called_by("temporal-go", version).expect_err(version);
            assert_eq!(code, Code::InvalidArgument);
            assert!(message.starts_with("Unable to parse client version"), "{message}");
        }
    }
}
