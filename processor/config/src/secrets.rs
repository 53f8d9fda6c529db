//! Secrets: what must not leave the machine, wherever it is quoted. They are read where the settings say that they are.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Config;

/// A shorter text is no secret worth the name, and would be found in words.
const BYTES_MIN: usize = 4;
/// Lines of files that are shorter are not hidden: the last line of a key in PEM says nothing alone.
const LINE_BYTES_MIN: usize = 12;
/// Bytes that are read of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What stands in place of a secret.
const HIDDEN: &str = "(hidden)";
/// Variables whose values are secret, besides those of settings.
const VARIABLES: &[&str] =
    &["EVERLOG_API_KEY", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];
/// The file with the keys of task tokens in a data directory.
const TOKEN_KEYS: &str = "token-keys";

/// All secrets of a node's settings.
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those that the settings have, or name files of. What cannot be read is nothing that could be quoted.
    pub fn of(config: &Config, environment: &BTreeMap<String, String>) -> Self {
        let mut found = Vec::new();
        let Config { kafka, cluster, tls, tokens, auth, registry, server, .. } = config;
        found.extend(kafka.secrets());
        let token_keys = Some(server.data_dir.join(TOKEN_KEYS));
        for file in [
            &cluster.secret_file,
            &cluster.key_file,
            &tls.key_file,
            &tokens.key_file,
            &auth.api_keys_file,
            &token_keys,
        ] {
            found.extend(file.as_deref().into_iter().flat_map(lines));
        }
        found.extend(std::iter::once(&registry.url.0).chain(&auth.jwks.0).flat_map(|url| of_url(url)));
        found.extend(
            VARIABLES.iter().filter_map(|name| environment.get(*name)).flat_map(|text| of_variable(text)),
        );
        Self::from(found)
    }

    /// The text without them.
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
    }
}

impl From<Vec<String>> for Secrets {
    /// Longer ones first: one may be a part of another. Each is hidden as a log line would quote it, too.
    fn from(found: Vec<String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for secret in found.iter().map(|secret| secret.trim()).filter(|secret| secret.len() >= BYTES_MIN) {
            let quoted = format!("{secret:?}");
            all.extend([secret.to_owned(), quoted.trim_matches('"').to_owned()]);
        }
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all)
    }
}

/// The lines of a file, and in each the words of those that have some: keys stand among names and grants.
fn lines(file: &Path) -> Vec<String> {
    let text = read(file);
    let lines =
        text.lines().map(str::trim).filter(|line| !line.starts_with("-----") && !line.starts_with('#'));
    let words = lines
        .flat_map(|line| std::iter::once(line).chain(line.split_whitespace().filter(|word| is_key(word))));
    words.filter(|text| text.len() >= LINE_BYTES_MIN).map(str::to_owned).collect()
}

/// Of the digits of a key or of its hash.
fn is_key(word: &str) -> bool {
    word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
}

fn read(file: &Path) -> String {
    let is_small = std::fs::metadata(file).is_ok_and(|metadata| metadata.len() <= FILE_BYTES_MAX);
    let bytes = if is_small { std::fs::read(file).unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// User and password of a URL, and what it asks with.
fn of_url(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = place.split('/').next().and_then(|place| place.rsplit_once('@')).map_or("", |(user, _)| user);
    let password = user.split_once(':').map_or("", |(_, password)| password);
    [query, user, password].map(str::to_owned).into()
}

/// All of it, and each value of a list of `key=value`.
fn of_variable(text: &str) -> Vec<String> {
    let values = text.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.to_owned()));
    std::iter::once(text.to_owned()).chain(values).collect()
}

/// The secret values of a file of properties, in the lines `key=value`; `is_secret` says of which keys.
pub(crate) fn of_properties(file: &Path, is_secret: impl Fn(&str) -> bool) -> Vec<String> {
    let text = read(file);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.filter(|(key, _)| is_secret(key.trim())).map(|(_, value)| value.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(secrets: &[&str], text: &str) -> String {
        Secrets::from(secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>()).hide(text)
    }

    #[test]
    fn a_secret_is_hidden_wherever_and_however_it_is_quoted() {
        assert_eq!(hidden(&["tiger"], "the tiger's word is tiger"), "the (hidden)'s word is (hidden)");
        assert_eq!(
            hidden(&[r#"a"b\c"#], r#"{"message":"a\"b\\c"} a"b\c"#),
            r#"{"message":"(hidden)"} (hidden)"#
        );
        assert_eq!(hidden(&["word", "password"], "password word"), "(hidden) (hidden)");
        assert_eq!(hidden(&["", "abc"], "abc"), "abc", "too short to be one");
    }

    #[test]
    fn the_secrets_of_every_setting_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("it can be written");
            Some(path)
        };
        let mut config = Config::default();
        config.server.data_dir = dir.path().into();
        file(TOKEN_KEYS, &format!("{}\n", "0a".repeat(32)));
        config.cluster.secret_file = file("secret", "of-all-the-nodes-1\n");
        config.cluster.key_file = file(
            "node.key",
            "-----BEGIN PRIVATE KEY-----\nMIIBinnodes0123456789\n-----END PRIVATE KEY-----\n",
        );
        config.tls.key_file = file("key", "-----BEGIN PRIVATE KEY-----\nMIIBinserver0123456789\n");
        config.tokens.key_file = file("keys", "0123456789abcdef0123456789abcdef\n");
        config.auth.api_keys_file = file("api", &format!("ann orders:write {}\n", "cd".repeat(32)));
        config.auth.jwks.0 = vec!["https://u:jwks-word@id.example.org/keys?token=of-jwks".into()];
        config.registry.url.0 = "https://ann:reg-word@registry:8081/v1".into();
        config.kafka.properties.0.insert("sasl.password".into(), "sasl-word".into());
        let variables =
            [("EVERLOG_API_KEY", "api-key-word"), ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=otel-word")];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let secrets = Secrets::of(&config, &environment);
        let quoted = [
            &"0a".repeat(32),
            "of-all-the-nodes-1",
            "MIIBinnodes0123456789",
            "MIIBinserver0123456789",
            "0123456789abcdef0123456789abcdef",
            &"cd".repeat(32),
            "jwks-word",
            "token=of-jwks",
            "reg-word",
            "sasl-word",
            "api-key-word",
            "otel-word",
        ];
        for secret in quoted {
            assert_eq!(secrets.hide(&format!("<{secret}>")), "<(hidden)>", "{secret}");
        }
        let told = "a line about PRIVATE KEY and orders:write of ann at id.example.org";
        assert_eq!(secrets.hide(told), told);
    }
}
