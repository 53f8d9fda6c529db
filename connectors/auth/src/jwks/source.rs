//! Where the keys of an issuer are fetched from: a URL or a file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::error::OpenError;

/// Timeout of one fetch.
pub(super) const FETCH_MAX: Duration = Duration::from_secs(10);
/// A longer answer is no list of keys: one of 4,096 bits takes 800 bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Media types of a JWKS (RFC 7517, section 8.5). An API server of Kubernetes answers with the first one only, and others say the
/// second one, or nothing in particular.
pub(super) const ACCEPTED: &str = "application/jwk-set+json, application/json, */*;q=0.1";
const SETTING: &str = "jwks";

/// A source of keys.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    Url(Url),
    File(PathBuf),
}

/// Without the query of a URL, which may have a secret.
impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => {
                let mut shown = url.clone();
                shown.set_query(None);
                write!(formatter, "{shown}")
            }
            Self::File(path) => write!(formatter, "file:{}", path.display()),
        }
    }
}

impl KeySource {
    /// Reads a source: `https://...`, `file:PATH`, and `http://...` if that is allowed.
    pub(super) fn read(text: &str, allow_http: bool) -> Result<Self, OpenError> {
        let refused = |fault: String| OpenError::Setting { setting: SETTING, fault };
        if let Some(path) = text.strip_prefix("file:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(refused("a source file: names no file".into()));
            }
            return Ok(Self::File(path.into()));
        }
        let url = Url::parse(text)
            .map_err(|_unparsed| refused("a source is neither https://HOST/PATH nor file:PATH".into()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("a source has a user or a password, which is not sent".into()));
        }
        match url.scheme() {
            "https" => Ok(Self::Url(url)),
            "http" if allow_http => Ok(Self::Url(url)),
            "http" => Err(refused(format!(
                "{} is not encrypted, so that anyone on the way may sign tokens; allowed are https:// and file:, \
                 and http:// with jwks_allow_http = true",
                Self::Url(url)
            ))),
            _ => Err(refused("a source is neither https://HOST/PATH nor file:PATH".into())),
        }
    }

    /// Fetches the bytes of a JWKS. The error has no part of what was read.
    pub(super) async fn fetch(&self, http: Option<&Client>) -> Result<Vec<u8>, String> {
        match (self, http) {
            (Self::Url(url), Some(http)) => get(http, url.clone()).await,
            (Self::Url(_), None) => Err("there is no HTTP client".into()),
            (Self::File(path), _) => read_file(path),
        }
    }
}

/// A client for the sources; none where all of them are files.
pub(super) fn client(
    sources: &[KeySource],
    ca_file: Option<&Path>,
    timeout: Duration,
) -> Result<Option<Client>, OpenError> {
    let authorities = match ca_file {
        Some(path) => authorities(path).map_err(|fault| OpenError::File {
            setting: "jwks_ca_file",
            path: path.into(),
            fault,
        })?,
        None => Vec::new(),
    };
    if !sources.iter().any(|source| matches!(source, KeySource::Url(_))) {
        return Ok(None);
    }
    // Set once per process: a later call fails, and the first provider stays.
    let _first = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .redirect(Policy::none())
        .timeout(timeout)
        .tls_certs_merge(authorities)
        .build()
        .map_err(|error| OpenError::Setting { setting: SETTING, fault: words(error) })?;
    Ok(Some(client))
}

fn authorities(path: &Path) -> Result<Vec<reqwest::Certificate>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let authorities =
        reqwest::Certificate::from_pem_bundle(&bytes).map_err(|_unparsed| "is no PEM with certificates")?;
    if authorities.is_empty() { Err("has no certificate".into()) } else { Ok(authorities) }
}

async fn get(http: &Client, url: Url) -> Result<Vec<u8>, String> {
    let mut response = http.get(url).header("accept", ACCEPTED).send().await.map_err(words)?;
    let status = response.status();
    if status.is_redirection() {
        return Err(format!("it redirects (status {}), which is not followed", status.as_u16()));
    }
    if !status.is_success() {
        return Err(format!("it answers with status {}", status.as_u16()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(words)? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err("its answer is longer than 1 MiB".into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > ANSWER_BYTES_MAX as u64 {
        return Err("it is not a file of at most 1 MiB".into());
    }
    std::fs::read(path).map_err(cannot)
}

/// The error with its causes, and without the URL, whose query may have a secret.
fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_https_or_a_file_and_http_only_where_it_is_allowed() {
        let shown = |text: &str, allow: bool| KeySource::read(text, allow).map(|source| source.to_string());
        assert_eq!(shown("https://id.example.org/keys", false).as_deref(), Ok("https://id.example.org/keys"));
        assert_eq!(shown("file:/etc/keys.json", false).as_deref(), Ok("file:/etc/keys.json"));
        assert_eq!(shown("file:///etc/keys.json", false).as_deref(), Ok("file:/etc/keys.json"));
        assert_eq!(shown("http://localhost/keys", true).as_deref(), Ok("http://localhost/keys"));
        let told = shown("http://localhost/keys?token=canary", false).expect_err("it is refused").to_string();
        assert!(told.starts_with("auth.jwks: http://localhost/keys is not encrypted"), "{told}");
        for text in [
            "",
            "keys",
            "file:",
            "file://",
            "ftp://host/keys",
            "https://",
            "https://a:canary@host/",
            "data:,canary",
        ] {
            let told = KeySource::read(text, true).err().expect(text).to_string();
            assert!(told.starts_with("auth.jwks: ") && !told.contains("canary"), "{told}");
        }
        assert_eq!(shown("https://host/keys?token=canary", false).as_deref(), Ok("https://host/keys"));
    }
}
