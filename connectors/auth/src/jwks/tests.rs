//! Keys are fetched from servers that are down, slow, huge, redirecting, or change their keys.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::clock::testing::TestClocks;
use crate::testing::{KeyReply, KeyServer, RSA, SigningKey};

struct JwksCase {
    server: Arc<KeyServer>,
    clock: Arc<TestClocks>,
    counts: Arc<AuthCounts>,
    jwks: Jwks,
}

impl JwksCase {
    async fn new(reply: KeyReply) -> Self {
        let server = KeyServer::start(reply).await;
        let jwks = open(&[&server.url], None, source::FETCH_MAX);
        Self { server, clock: jwks.1, counts: jwks.2, jwks: jwks.0 }
    }

    async fn find(&self, id: &str) -> Outcome {
        self.jwks.with_key(id).await.into()
    }

    fn fetches(&self) -> (u64, u64) {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counts.jwks_fetches_ok), count(&self.counts.jwks_fetches_failed))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Found,
    Denied,
    Unavailable,
}

impl From<Result<Arc<KeySet>, Unidentified>> for Outcome {
    fn from(found: Result<Arc<KeySet>, Unidentified>) -> Self {
        match found {
            Ok(_) => Self::Found,
            Err(Unidentified::Denied(..)) => Self::Denied,
            Err(Unidentified::Unavailable(_)) => Self::Unavailable,
        }
    }
}

fn open(
    sources: &[&str],
    ca_file: Option<PathBuf>,
    timeout: Duration,
) -> (Jwks, Arc<TestClocks>, Arc<AuthCounts>) {
    let sources: Vec<KeySource> =
        sources.iter().map(|text| KeySource::read(text, true).expect("a source")).collect();
    let http = source::client(&sources, ca_file.as_deref(), timeout).expect("a client");
    let (clock, counts) = (Arc::new(TestClocks::new()), Arc::<AuthCounts>::default());
    let inner = Inner {
        sources,
        http,
        refresh_every: Duration::from_secs(900),
        clock: clock.clone(),
        counts: counts.clone(),
        loaded: RwLock::default(),
        last: Arc::default(),
    };
    (Jwks(Arc::new(inner)), clock, counts)
}

fn keys(ids: &[&str]) -> KeyReply {
    KeyReply::Keys(ids.iter().map(|id| RSA.jwk(id)).collect())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_server_that_is_down_at_the_start_makes_calls_unavailable_until_it_is_up() {
    let case = JwksCase::new(KeyReply::Status(503, String::new())).await;
    assert_eq!(case.find("a").await, Outcome::Unavailable);
    assert_eq!((case.fetches(), case.server.requests()), ((0, 1), 1));
    case.server.reply(keys(&["a"]));
    assert_eq!(case.find("a").await, Outcome::Unavailable, "it is not asked again within five seconds");
    case.clock.advance(seconds(5));
    assert_eq!(case.find("a").await, Outcome::Found);
    assert_eq!((case.fetches(), case.server.requests()), ((1, 1), 2));
    assert_eq!(case.counts.jwks_keys.load(Ordering::Relaxed), 1);
    assert_eq!(case.counts.jwks_fetched_at_s.load(Ordering::Relaxed), 1_767_225_605);
}

/// An API server of Kubernetes answers with status 406 where its own type is not accepted.
#[tokio::test]
async fn both_media_types_of_key_sets_are_asked_for() {
    let case = JwksCase::new(keys(&["a"])).await;
    assert_eq!(case.find("a").await, Outcome::Found);
    let head = case.server.head().to_lowercase();
    let accepted = head.lines().find_map(|line| line.strip_prefix("accept: ")).expect("it says so");
    for media_type in ["application/jwk-set+json", "application/json", "*/*"] {
        assert!(accepted.contains(media_type), "{accepted}");
    }
}

#[tokio::test]
async fn what_is_no_good_answer_changes_nothing() {
    let case = JwksCase::new(keys(&["a"])).await;
    assert_eq!(case.find("a").await, Outcome::Found);
    let elsewhere = KeyServer::start(keys(&["b"])).await;
    let mut long = json!({"keys": [RSA.jwk("b")]}).to_string().into_bytes();
    long.resize((1 << 20) + 1, b' ');
    for (number, reply) in [
        KeyReply::Status(500, String::new()),
        KeyReply::Status(404, String::new()),
        KeyReply::Status(302, format!("location: {}\r\n", elsewhere.url)),
        KeyReply::Status(307, format!("location: {}\r\n", elsewhere.url)),
        KeyReply::Bytes(long.clone()),
        KeyReply::Endless,
        KeyReply::Bytes(b"<html>".to_vec()),
        KeyReply::Bytes(b"[]".to_vec()),
        KeyReply::Bytes(br#"{"keys": {}}"#.to_vec()),
        KeyReply::Keys(vec![]),
        KeyReply::Keys(vec![json!({"kty": "oct", "kid": "b", "k": "AAAA"})]),
    ]
    .into_iter()
    .enumerate()
    {
        case.clock.advance(seconds(5));
        case.server.reply(reply);
        assert_eq!(case.find("b").await, Outcome::Unavailable, "reply {number}");
        assert_eq!(case.find("a").await, Outcome::Found, "reply {number}");
        assert_eq!(case.fetches(), (1, number as u64 + 1), "reply {number}");
    }
    assert_eq!(elsewhere.requests(), 0, "nobody follows a redirect");
    long.truncate(1 << 20);
    case.clock.advance(seconds(5));
    case.server.reply(KeyReply::Bytes(long));
    assert_eq!(case.find("b").await, Outcome::Found, "a mebibyte is read");
}

#[tokio::test]
async fn a_server_that_is_silent_ends_the_fetch_at_its_timeout() {
    let server = KeyServer::start(KeyReply::Silent).await;
    let (jwks, _, counts) = open(&[&server.url], None, Duration::from_millis(50));
    let found = everlog_patience::answer("the end of the fetch", jwks.with_key("a")).await.expect("it ends");
    assert_eq!(Outcome::from(found), Outcome::Unavailable);
    assert_eq!(counts.jwks_fetches_failed.load(Ordering::Relaxed), 1);
    assert_eq!(source::FETCH_MAX, seconds(10));
}

#[tokio::test]
async fn rotation_is_seen_at_the_first_token_of_a_new_key_and_ends_the_old_one() {
    let case = JwksCase::new(keys(&["old"])).await;
    assert_eq!(case.find("old").await, Outcome::Found);
    // With overlap: both are there for a while.
    case.server.reply(keys(&["old", "new"]));
    case.clock.advance(seconds(5));
    assert_eq!((case.find("new").await, case.find("old").await), (Outcome::Found, Outcome::Found));
    assert_eq!(case.fetches(), (2, 0));
    // Without: the next key replaces both at once.
    case.server.reply(keys(&["next"]));
    case.clock.advance(seconds(5));
    assert_eq!(case.find("old").await, Outcome::Found, "nothing has told of it yet");
    assert_eq!((case.find("next").await, case.find("old").await), (Outcome::Found, Outcome::Denied));
    assert_eq!(case.fetches(), (3, 0), "the old one was asked for within five seconds");
}

#[tokio::test]
async fn unknown_keys_lead_to_one_fetch_in_five_seconds() {
    let case = JwksCase::new(keys(&["a"])).await;
    assert_eq!(case.find("a").await, Outcome::Found);
    for round in 0..3 {
        case.clock.advance(seconds(5));
        let mut calls = JoinSet::new();
        for number in 0..100 {
            let jwks = Jwks(case.jwks.0.clone());
            calls.spawn(
                async move { Outcome::from(jwks.with_key(&format!("unknown {round} {number}")).await) },
            );
        }
        assert!(calls.join_all().await.into_iter().all(|found| found == Outcome::Denied));
        assert_eq!(case.server.requests(), 2 + round, "one for all of them");
        case.clock.advance(seconds(4));
        assert_eq!(case.find("unknown").await, Outcome::Denied);
        assert_eq!(case.server.requests(), 2 + round);
    }
}

#[tokio::test]
async fn callers_that_wait_for_a_slow_fetch_take_its_outcome() {
    let case = JwksCase::new(KeyReply::Held(keys(&["a"]).into())).await;
    let mut calls = JoinSet::new();
    for number in 0..10 {
        let jwks = Jwks(case.jwks.0.clone());
        calls.spawn(async move { Outcome::from(jwks.with_key(&format!("unknown {number}")).await) });
    }
    let arrival = everlog_patience::until("the request", async || case.server.requests() == 1);
    arrival.await.expect("it arrives");
    case.clock.advance(seconds(9));
    case.server.release();
    assert!(calls.join_all().await.into_iter().all(|outcome| outcome == Outcome::Denied));
    assert_eq!(case.server.requests(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_end_the_fetch() {
    let case = JwksCase::new(KeyReply::Silent).await;
    let mut call = Box::pin(case.jwks.with_key("a"));
    let arrival = everlog_patience::until("the request", async || {
        let _pending = poll_once(&mut call).await;
        case.server.requests() == 1
    });
    arrival.await.expect("it arrives");
    drop(call);
    assert!(case.jwks.0.last.try_lock().is_err(), "the fetch is under way");
}

/// Polls once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_ready())
    })
    .await
}

#[tokio::test]
async fn keys_that_cannot_be_fetched_again_serve_for_a_day() {
    let case = JwksCase::new(keys(&["a"])).await;
    assert_eq!(case.find("a").await, Outcome::Found);
    case.server.reply(KeyReply::Status(500, String::new()));
    case.clock.advance(KEYS_AGE_MAX);
    assert_eq!(case.find("a").await, Outcome::Found);
    case.clock.advance(Duration::from_millis(1));
    assert!(case.jwks.present().is_none());
    assert_eq!(case.find("a").await, Outcome::Unavailable);
    case.server.reply(keys(&["a"]));
    case.clock.advance(seconds(5));
    assert_eq!(case.find("a").await, Outcome::Found);
    // The clock of the wall does not matter.
    case.clock.set_wall_by_s(1e9);
    assert_eq!(case.find("a").await, Outcome::Found);
}

#[tokio::test]
async fn keys_are_fetched_again_in_the_background_and_the_same_keys_keep_what_they_verified() {
    let server = KeyServer::start(keys(&["a"])).await;
    let (jwks, clock, _) = open(&[&server.url], None, source::FETCH_MAX);
    let mut inner = Arc::into_inner(jwks.0).expect("nobody else has it");
    inner.refresh_every = Duration::from_millis(1);
    let jwks = Arc::new(Jwks(Arc::new(inner)));
    let keeping = jwks.clone();
    let background = tokio::spawn(async move { keeping.keep_fresh().await });
    let is_there = everlog_patience::until("the keys", async || jwks.present().is_some());
    is_there.await.expect("they come");
    let first = jwks.present().expect("they are there");
    clock.advance(KEYS_AGE_MAX + seconds(1));
    everlog_patience::until("the same keys", async || jwks.present().is_some()).await.expect("they come");
    assert!(Arc::ptr_eq(&first, &jwks.present().expect("they are there")));
    server.reply(keys(&["b"]));
    let has_new = everlog_patience::until("new keys", async || {
        jwks.present().is_some_and(|keys| keys.find("b").is_some() && keys.find("a").is_none())
    });
    has_new.await.expect("they come");
    background.abort();
}

#[tokio::test]
async fn all_sources_must_succeed() {
    let (good, other) = (KeyServer::start(keys(&["a"])).await, KeyServer::start(keys(&["b"])).await);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("keys.json");
    let file = format!("file:{}", path.display());
    let (jwks, clock, counts) = open(&[&good.url, &other.url, &file], None, source::FETCH_MAX);
    assert_eq!(Outcome::from(jwks.with_key("a").await), Outcome::Unavailable, "the file is missing");
    std::fs::write(&path, json!({"keys": [RSA.jwk("c")]}).to_string()).expect("it is written");
    clock.advance(seconds(5));
    for id in ["a", "b", "c"] {
        assert_eq!(Outcome::from(jwks.with_key(id).await), Outcome::Found, "{id}");
    }
    good.reply(keys(&["a", "new"]));
    other.reply(KeyReply::Status(500, String::new()));
    clock.advance(seconds(5));
    assert_eq!(Outcome::from(jwks.with_key("new").await), Outcome::Unavailable);
    assert_eq!(Outcome::from(jwks.with_key("b").await), Outcome::Found);
    assert_eq!(counts.jwks_keys.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_key_is_used_for_what_it_says_only() {
    let mut set = KeySet::default();
    let (p256, p384) = (SigningKey::p256(), SigningKey::p384());
    let with = |mut jwk: Value, name: &str, value: Value| {
        jwk[name] = value;
        jwk
    };
    let document = json!({"keys": [
        RSA.jwk("rsa"),
        with(RSA.jwk("rsa-ps512"), "alg", json!("PS512")),
        with(RSA.jwk("rsa-sig"), "use", json!("sig")),
        with(RSA.jwk("rsa-verify"), "key_ops", json!(["verify"])),
        p256.jwk("p256"),
        with(p384.jwk("p384"), "alg", json!("ES384")),
        // None of these is usable.
        with(RSA.jwk("rsa-enc"), "use", json!("enc")),
        with(RSA.jwk("rsa-sign"), "key_ops", json!(["sign"])),
        with(RSA.jwk("rsa-oaep"), "alg", json!("RSA-OAEP")),
        with(RSA.jwk("rsa-hs256"), "alg", json!("HS256")),
        with(RSA.jwk("rsa-es256"), "alg", json!("ES256")),
        with(p256.jwk("p256-es384"), "alg", json!("ES384")),
        with(p256.jwk("p256-rs256"), "alg", json!("RS256")),
        with(p256.jwk("p521"), "crv", json!("P-521")),
        with(p256.jwk("k256"), "crv", json!("secp256k1")),
        with(RSA.jwk("rsa-1024"), "n", json!(crate::testing::encoded([0xff; 128]))),
        with(RSA.jwk("rsa-no-base64"), "n", json!("!")),
        with(RSA.jwk(""), "e", json!("AQAB")),
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
        {"kty": "oct", "kid": "oct", "k": "AAAA"},
        {"kty": "OKP", "kid": "okp", "crv": "Ed25519", "x": "AAAA"},
        {"kty": "ML-DSA", "kid": "later"},
        {}, 7, null,
    ]});
    assert_eq!(set.add(document.to_string().as_bytes()), Ok(6));
    let algorithms =
        |id: &str| set.find(id).map(|keys| format!("{:?}", keys[0].algorithms)).unwrap_or_default();
    let all = "[RS256, RS384, RS512, PS256, PS384, PS512]";
    for (id, expected) in [
        ("rsa", all),
        ("rsa-ps512", "[PS512]"),
        ("rsa-sig", all),
        ("rsa-verify", all),
        ("p256", "[ES256]"),
        ("p384", "[ES384]"),
        ("rsa-es256", ""),
        ("p521", ""),
        ("oct", ""),
    ] {
        assert_eq!(algorithms(id), expected, "{id}");
    }
    assert_eq!(set.len(), 6);
}

#[tokio::test]
async fn https_wants_an_authority_that_is_known() {
    let authority = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let _first = rustls::crypto::ring::default_provider().install_default();
    let key =
        rustls::pki_types::PrivateKeyDer::try_from(authority.signing_key.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![authority.cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let server = KeyServer::start_with(keys(&["a"]), "https", move |stream| {
        let accepting = acceptor.accept(stream);
        async move { accepting.await.ok() }
    })
    .await;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, authority.cert.pem()).expect("it is written");
    let (jwks, ..) = open(&[&server.url], Some(path.clone()), source::FETCH_MAX);
    assert_eq!(Outcome::from(jwks.with_key("a").await), Outcome::Found);
    let (jwks, ..) = open(&[&server.url], None, source::FETCH_MAX);
    assert_eq!(Outcome::from(jwks.with_key("a").await), Outcome::Unavailable, "a stranger has signed it");
    assert_eq!(server.requests(), 1, "it is asked nothing");
    for content in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        std::fs::write(&path, content).expect("it is written");
        let refused = source::client(&[], Some(&path), source::FETCH_MAX);
        let told = refused.expect_err(content).to_string();
        assert!(told.contains("ca.pem: ") && told.ends_with("(auth.jwks_ca_file)"), "{told}");
    }
}
