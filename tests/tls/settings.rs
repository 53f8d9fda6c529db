//! Settings and files that cannot be used end the start.

use std::path::Path;

use anyhow::{Context, ensure};
use everlog_tests::certificates::Authority;
use everlog_tests::server::free_address;

use crate::subcommands::run;

/// What a node says that does not start.
fn refused(dir: &Path, variables: &[(&str, &Path)]) -> anyhow::Result<String> {
    let addresses = [free_address()?, free_address()?, free_address()?].map(|address| address.to_string());
    let [calls, metrics, face] = &addresses;
    let data = dir.join("data");
    let words =
        ["dev", "--address", calls, "--metrics-address", metrics, "--http-address", face, "--data-dir"];
    let (code, _, said) = run(&[&words[..], &[data.to_str().context("a path")?]].concat(), variables)?;
    ensure!(code == Some(1), "{code:?}: {said}");
    Ok(said)
}

#[test]
fn a_node_does_not_start_with_tls_that_cannot_be_used() -> anyhow::Result<()> {
    const CERTIFICATE: &str = "EVERLOG_TLS__CERTIFICATE_FILE";
    const KEY: &str = "EVERLOG_TLS__KEY_FILE";
    let dir = tempfile::tempdir()?;
    let shown = Authority::new("authority").certify("localhost");
    let (certificate, key, away) =
        (dir.path().join("c.pem"), dir.path().join("c.key"), dir.path().join("away"));
    std::fs::write(&certificate, &shown.certificate)?;
    std::fs::write(&key, &shown.key)?;
    for (variables, expected) in [
        (&[(CERTIFICATE, &*certificate)][..], &["tls.key_file"][..]),
        (&[(CERTIFICATE, &certificate), (KEY, &away)], &["away", "(tls.key_file)", "cannot be read"]),
        (&[(CERTIFICATE, &key), (KEY, &key)], &["c.key", "(tls.certificate_file)", "no certificate"]),
        (
            &[(CERTIFICATE, &certificate), (KEY, &key), ("EVERLOG_TLS__CLIENT_CA_FILE", &certificate)],
            &["tls.client_certificates"],
        ),
        (&[("EVERLOG_TLS__MIN_VERSION", Path::new("1.1"))], &["tls.min_version", "\"1.2\" or \"1.3\""]),
    ] {
        let said = refused(dir.path(), variables)?;
        ensure!(expected.iter().all(|words| said.contains(words)), "{expected:?}: {said}");
    }
    Ok(())
}
