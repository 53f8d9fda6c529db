//! Secrets are in no log line, no error and no text for debugging.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::clock::testing::TestClocks;
use crate::testing::{KeyReply, KeyServer, RSA, encoded};
use crate::{AuthSettings, Authenticator, Credentials, NewApiKey};

/// Collects what is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Says in `told` what each token leads to.
async fn show(authenticator: &Authenticator, tokens: &[String], told: &mut String) {
    for token in tokens {
        let header = format!("Bearer {token}");
        let values = [header.as_bytes()];
        let credentials = Credentials { authorization: &values, certificate: Some(token.as_bytes()) };
        let identified = authenticator.identify(credentials).await;
        told.push_str(
            &identified.map_or_else(|error| format!("{error} {error:?}\n"), |ok| format!("{ok:?}\n")),
        );
    }
}

#[tokio::test]
async fn secrets_are_in_no_log_line_and_no_error() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(lines.clone())
        .with_ansi(false)
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let dir = tempfile::tempdir().expect("a directory");
    let (keys, rules) = (dir.path().join("keys"), dir.path().join("rules"));
    let made = NewApiKey::generate("orders", &["orders:read".into()], None).expect("it is made");
    let hash = made.line.split(' ').nth(2).expect("it has one").to_owned();
    std::fs::write(&keys, &made.line).expect("it is written");
    std::fs::write(&rules, "claim sub=ann orders:read").expect("it is written");
    let server = KeyServer::start(KeyReply::Keys(vec![RSA.jwk("rsa")])).await;
    let clock = Arc::new(TestClocks::new());
    let settings = AuthSettings {
        api_keys_file: Some(keys.clone()),
        rules_file: Some(rules.clone()),
        jwks: vec![format!("{}?token=canary-query", server.url)],
        jwks_allow_http: true,
        ..AuthSettings::default()
    };
    let authenticator = Authenticator::with_clock(&settings, clock.clone()).expect("it opens");
    let claims = json!({"sub": "ann", "exp": 2_000_000_000, "secret": "canary-claim"});
    let header = json!({"alg": "RS256", "kid": "rsa"});
    let token = RSA.token(&header, &claims);
    let [head, body, signature] =
        token.split('.').collect::<Vec<_>>().try_into().expect("it has three parts");
    let tokens = [
        made.key.clone(),
        format!("{}x", made.key),
        token.clone(),
        format!("{head}.{body}.{body}"),
        format!("{head}.{head}.{signature}"),
        format!("{head}.{}.{signature}", encoded("canary-broken")),
        format!("{}.{body}.{signature}", encoded(r#"{"alg": "canary-algorithm"}"#)),
        format!("{}.{body}.{signature}", encoded(r#"{"alg": "RS256", "kid": "canary-kid"}"#)),
        "canary-form".to_owned(),
        "canary form".to_owned(),
    ];
    let mut told = String::new();
    show(&authenticator, &tokens, &mut told).await;
    server.reply(KeyReply::Bytes(b"{\"keys\": \"canary-answer\"}".to_vec()));
    std::fs::write(&keys, format!("orders orders:read {}z", &hash[1..])).expect("it is written");
    std::fs::write(&rules, "claim canary-rule").expect("it is written");
    clock.advance(Duration::from_secs(5));
    show(&authenticator, &tokens, &mut told).await;
    server.reply(KeyReply::Status(302, "location: http://localhost/canary-location\r\n".into()));
    clock.advance(Duration::from_secs(5));
    show(&authenticator, &tokens, &mut told).await;
    told.push_str(&format!("{:?}", authenticator.counts()));

    let logged = String::from_utf8(lines.0.lock().clone()).expect("text");
    for expected in ["changed file cannot be used", "cannot be fetched"] {
        assert!(logged.contains(expected), "{logged}");
    }
    // What librdkafka and HTTP clients log at the level trace is theirs.
    let ours = logged.lines().filter(|line| line.contains("everlog_auth")).collect::<Vec<_>>().join("\n");
    for secret in [&made.key[4..], &hash[1..], body, signature, "canary"] {
        assert!(!told.contains(secret), "{secret}: {told}");
        assert!(!ours.contains(secret), "{secret}: {ours}");
    }
}
