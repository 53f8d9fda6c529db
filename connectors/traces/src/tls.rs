//! Certificates by which an exporter and a collector know each other, in files that OpenTelemetry's variables name.

use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig, Identity};

use crate::settings::{TracesError, signal_or_all};

const ENDPOINT: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const AUTHORITY: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
const CERTIFICATE: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"];
const KEY: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY"];

/// How to reach a collector by TLS; none where its address begins with `http://`. Without an authority of its own the collector
/// is one that the system trusts.
///
/// # Errors
/// [`TracesError::File`]: a file cannot be read. [`TracesError::Half`]: a certificate without a key, or the other way round.
pub fn config(variable: impl Fn(&str) -> Option<String>) -> Result<Option<ClientTlsConfig>, TracesError> {
    let is_plain = |endpoint: &str| endpoint.trim_start().to_ascii_lowercase().starts_with("http://");
    if signal_or_all(&variable, ENDPOINT).is_none_or(|(_, endpoint)| is_plain(&endpoint)) {
        return Ok(None);
    }
    let file = |names| signal_or_all(&variable, names).map(read).transpose();
    let tls = match file(AUTHORITY)? {
        Some(authority) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)),
        None => ClientTlsConfig::new().with_enabled_roots(),
    };
    match (file(CERTIFICATE)?, file(KEY)?) {
        (Some(certificate), Some(key)) => Ok(Some(tls.identity(Identity::from_pem(certificate, key)))),
        (None, None) => Ok(Some(tls)),
        (Some(_), None) => Err(TracesError::Half { has: CERTIFICATE[1], lacks: KEY[1] }),
        (None, Some(_)) => Err(TracesError::Half { has: KEY[1], lacks: CERTIFICATE[1] }),
    }
}

fn read((variable, path): (&'static str, String)) -> Result<Vec<u8>, TracesError> {
    std::fs::read(&path).map_err(|source| TracesError::File { variable, path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(variables: &[(&str, &str)]) -> String {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        match config(value) {
            Ok(Some(_)) => "TLS".into(),
            Ok(None) => "plain".into(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn only_an_address_with_http_is_plain() {
        assert_eq!(said(&[]), "plain");
        let (plain, secured) = ("http://collector:4317", "https://collector:4317");
        assert_eq!(said(&[("OTEL_EXPORTER_OTLP_ENDPOINT", plain)]), "plain");
        let both = [("OTEL_EXPORTER_OTLP_ENDPOINT", secured), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", plain)];
        assert_eq!(said(&both), "plain");
        assert_eq!(said(&both[..1]), "TLS");
        assert_eq!(said(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]), "TLS");
    }

    #[test]
    fn a_file_that_is_not_there_and_half_an_identity_are_refused() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4317");
        let away = said(&[endpoint, ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem")]);
        assert!(
            away.starts_with("OTEL_EXPORTER_OTLP_CERTIFICATE: /nowhere/ca.pem cannot be read: "),
            "{away}"
        );
        let half = said(&[endpoint, ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "Cargo.toml")]);
        assert_eq!(
            half,
            "OTEL_EXPORTER_OTLP_CLIENT_KEY is set without OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"
        );
    }
}
