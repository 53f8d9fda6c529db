//! The variables by which OpenTelemetry is configured.

use opentelemetry_otlp::ExporterBuildError;

/// Traces are asked for in a way that this release cannot follow.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// Another exporter or protocol.
    #[error("{variable} is {value:?}; this release has {known}")]
    Unknown {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it may say.
        known: &'static str,
    },
    /// A file of certificates or a key.
    #[error("{variable}: {path} cannot be read: {source}")]
    File {
        /// The variable that names it.
        variable: &'static str,
        /// Where it should be.
        path: String,
        /// Why it cannot be read.
        source: std::io::Error,
    },
    /// A certificate needs its key.
    #[error("{has} is set without {lacks}")]
    Half {
        /// The variable that is set.
        has: &'static str,
        /// The variable that is missing.
        lacks: &'static str,
    },
    /// The exporter refuses its settings.
    #[error("traces cannot be exported: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// True if spans are to be exported: an exporter is named, or where to. Empty variables count as absent.
pub fn are_wanted(variable: impl Fn(&str) -> Option<String>) -> Result<bool, TracesError> {
    let set = |name: &str| set(&variable, name);
    if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(false);
    }
    let is_addressed = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
        .into_iter()
        .any(|name| set(name).is_some());
    let is_wanted = match set("OTEL_TRACES_EXPORTER") {
        None => is_addressed,
        Some(exporter) if exporter == "otlp" => true,
        Some(exporter) if exporter == "none" => false,
        Some(value) => {
            return Err(TracesError::Unknown {
                variable: "OTEL_TRACES_EXPORTER",
                value,
                known: "otlp, none",
            });
        }
    };
    for variable in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match set(variable) {
            Some(value) if is_wanted && value != "grpc" => {
                return Err(TracesError::Unknown { variable, value, known: "grpc" });
            }
            _grpc_or_none => {}
        }
    }
    Ok(is_wanted)
}

/// The value of the variable for traces, or else of the one for all signals; and which one it is.
pub fn signal_or_all(
    variable: impl Fn(&str) -> Option<String>,
    names: [&'static str; 2],
) -> Option<(&'static str, String)> {
    names.into_iter().find_map(|name| set(&variable, name).map(|value| (name, value)))
}

/// The value of a variable. An empty one counts as absent.
fn set(variable: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// True if a variable gives the service a name.
pub fn names_service(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_name = |attribute: &str| attribute.trim_start().starts_with("service.name=");
    variable("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.split(',').any(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> Result<bool, String> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        are_wanted(value).map_err(|error| error.to_string())
    }

    #[test]
    fn traces_are_off_unless_an_exporter_or_an_endpoint_is_named() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");
        assert_eq!(wanted(&[]), Ok(false));
        assert_eq!(wanted(&[endpoint]), Ok(true));
        assert_eq!(wanted(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(false));
        assert_eq!(wanted(&[("OTEL_TRACES_EXPORTER", "otlp")]), Ok(true));
        assert_eq!(wanted(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), Ok(false));
        assert_eq!(wanted(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Ok(false));
    }

    #[test]
    fn what_this_release_does_not_have_is_refused() {
        let zipkin = wanted(&[("OTEL_TRACES_EXPORTER", "zipkin")]).expect_err("it is unknown");
        assert_eq!(zipkin, "OTEL_TRACES_EXPORTER is \"zipkin\"; this release has otlp, none");
        let http = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        assert!(wanted(&[http, ("OTEL_TRACES_EXPORTER", "otlp")]).is_err());
        assert_eq!(wanted(&[http]), Ok(false), "it is for other signals");
    }

    #[test]
    fn a_service_is_named_by_either_variable() {
        let by = |variable: &'static str, value: &'static str| {
            names_service(move |name| (name == variable).then(|| value.to_owned()))
        };
        assert!(by("OTEL_SERVICE_NAME", "shop") && !by("OTEL_SERVICE_NAME", ""));
        assert!(by("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=shop"));
        assert!(!by("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=shop"));
    }
}
