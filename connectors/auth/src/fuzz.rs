//! Random input: nothing panics, and nothing is granted that nobody has granted. `EVERLOG_FUZZ_INPUTS` says how many inputs each
//! test gets.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::api_keys::ApiKeys;
use crate::certificate::CertificateNames;
use crate::clock::testing::TestClocks;
use crate::jwks::KeySet;
use crate::rules::GrantRules;
use crate::testing::{KeyReply, KeyServer, RSA, SigningKey, encoded};
use crate::{AuthSettings, Authenticator, Credentials, Principal};

struct World {
    runtime: Runtime,
    authenticator: Authenticator,
    stranger: SigningKey,
    right: String,
    _dir: tempfile::TempDir,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(KeyServer::start(KeyReply::Keys(vec![RSA.jwk("rsa")])));
    let dir = tempfile::tempdir().expect("a directory");
    let (keys, rules) = (dir.path().join("keys"), dir.path().join("rules"));
    std::fs::write(&keys, format!("all temporal-system:admin {}", "ab".repeat(32))).expect("it is written");
    std::fs::write(&rules, "claim sub=ann temporal-system:admin\ncertificate CN=ann temporal-system:admin")
        .expect("it is written");
    let settings = AuthSettings {
        api_keys_file: Some(keys),
        rules_file: Some(rules),
        jwks: vec![server.url.clone()],
        jwks_allow_http: true,
        ..AuthSettings::default()
    };
    let authenticator = Authenticator::with_clock(&settings, Arc::new(TestClocks::new())).expect("it opens");
    let right =
        RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &json!({"sub": "ann", "exp": 2_000_000_000}));
    World { runtime, authenticator, stranger: SigningKey::rsa(), right, _dir: dir }
});

/// Inputs of a test, unless the variable says otherwise.
const INPUTS: u32 = 1_000;

fn inputs_wanted() -> u32 {
    std::env::var("EVERLOG_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(INPUTS)
}

/// A key set with a key of each kind, and a certificate with a name of each kind.
static KEY_SET: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let keys = [RSA.jwk("rsa"), SigningKey::p256().jwk("p256"), SigningKey::p384().jwk("p384")];
    json!({"keys": keys}).to_string().into_bytes()
});
static CERTIFICATE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut params = rcgen::CertificateParams::new(["orders.example.org".into()]).expect("a name");
    let uri = "spiffe://example.org/orders".try_into().expect("ASCII");
    params.subject_alt_names.push(rcgen::SanType::URI(uri));
    params.distinguished_name.push(rcgen::DnType::CommonName, "ann");
    let key = rcgen::KeyPair::generate().expect("a key");
    params.self_signed(&key).expect("a certificate").der().to_vec()
});

/// What parsers of JSON and of keys look for, and lengths in DER.
const WORDS: &[&str] = &["\"", "{}", "[]", "null", "AAAA", "\\u0000", ",", "-1", "P-384", "AQAB"];
const DER_LENGTHS: &[&[u8]] = &[&[0x80], &[0x84, 0xff, 0xff, 0xff, 0xff], &[0x82, 0, 0]];

/// Bytes put in place of others: where, how many others, and which.
type Replacement = (prop::sample::Index, usize, Vec<u8>);

fn replacements() -> impl Strategy<Value = Vec<Replacement>> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(WORDS).prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(DER_LENGTHS).prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, bytes), 1..6)
}

fn changed(original: &[u8], replacements: Vec<Replacement>) -> Vec<u8> {
    let mut changed = original.to_vec();
    for (at, removed, bytes) in replacements {
        let at = at.index(changed.len() + 1);
        let end = (at + removed).min(changed.len());
        changed.splice(at..end, bytes);
    }
    changed
}

/// None where it is denied. Keys are there, so it is never unavailable but for want of one key.
fn identify(header: &[u8]) -> Option<Arc<Principal>> {
    let credentials = Credentials { authorization: &[header], certificate: None };
    WORLD.runtime.block_on(WORLD.authenticator.identify(credentials)).ok().flatten()
}

/// Some JSON, with names that tokens have.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "(ann|rsa|RS256|none|everlog|a:admin|temporal-system:admin)".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let name = "(alg|kid|jwk|jku|crit|b64|typ|sub|exp|nbf|iss|aud|permissions|[a-z]{0,4})";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(inputs_wanted()) })]

    #[test]
    fn no_header_is_accepted_that_was_made_up(header in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(identify(&header), None);
    }

    #[test]
    fn no_token_is_accepted_that_was_made_up(text in "[Bb]earer (elk_)?[-A-Za-z0-9_.=]{0,80}") {
        prop_assert_eq!(identify(text.as_bytes()), None);
    }

    #[test]
    fn no_token_is_accepted_that_a_stranger_has_signed(header in any_json(), claims in any_json()) {
        let token = WORLD.stranger.token(&header, &claims);
        prop_assert_eq!(identify(format!("Bearer {token}").as_bytes()), None);
        let unsigned = format!("{}.{}.AA", encoded(header.to_string()), encoded(claims.to_string()));
        prop_assert_eq!(identify(format!("Bearer {unsigned}").as_bytes()), None);
    }

    #[test]
    fn no_claims_grant_what_they_do_not_say(claims in any_json()) {
        let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
        if let Some(principal) = identify(format!("Bearer {token}").as_bytes()) {
            prop_assert_eq!(claims["sub"].as_str(), Some(principal.name.as_str()));
            let by_rule = principal.name == "ann" && claims.get("permissions").is_none();
            let listed = |text: &str| claims["permissions"].as_array().is_some_and(|all| all.contains(&json!(text)));
            if principal.may(crate::Access::SYSTEM_ADMIN, "") {
                prop_assert!(by_rule || listed("temporal-system:admin"), "{}", claims);
            }
            if principal.grants.allow_somewhere(crate::Access::ADMIN) {
                prop_assert!(by_rule || listed("temporal-system:admin") || listed("a:admin"), "{}", claims);
            }
        }
    }

    #[test]
    fn no_change_of_a_right_token_is_accepted(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = format!("Bearer {}", WORLD.right).into_bytes();
        prop_assert!(identify(&bytes).is_some());
        let at = 7 + at.index(bytes.len() - 7);
        prop_assume!(bytes[at] != byte);
        bytes[at] = byte;
        prop_assert_eq!(identify(&bytes), None);
    }

    #[test]
    fn files_are_read_or_refused(text in "([ -~é\t\n\"\\\\]|elk_|claim |certificate |CN=|SAN=uri:|a:read|[0-9a-f]{64}|#){0,40}") {
        let numbered = |fault: String| fault.starts_with("line ");
        prop_assert!(ApiKeys::parse(&text).map_or_else(numbered, |keys| keys.identify("elk_x", 0.0).is_err()));
        let is_harmless = |rules: GrantRules| {
            rules.of_certificate(&CertificateNames::default()).is_none()
                && rules.of_claims(&serde_json::Map::new()).is_none()
        };
        prop_assert!(GrantRules::parse(&text).map_or_else(numbered, is_harmless));
    }

    #[test]
    fn certificates_and_key_sets_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), json in any_json()) {
        prop_assert!(CertificateNames::read(&bytes).is_err());
        prop_assert!(KeySet::default().add(&bytes).is_err());
        let keys = json!({"keys": [json.clone(), {"kid": "a", "kty": "RSA", "n": json, "e": "AQAB"}]});
        prop_assert_eq!(KeySet::default().add(keys.to_string().as_bytes()), Ok(0));
    }
    #[test]
    fn key_sets_and_certificates_that_were_changed_are_read_or_refused(replacements in replacements()) {
        let mut keys = KeySet::default();
        let added = keys.add(&changed(&KEY_SET, replacements.clone())).unwrap_or_default();
        prop_assert!(keys.len() <= added && added <= 3, "{} of {} keys", keys.len(), added);
        if let Ok(names) = CertificateNames::read(&changed(&CERTIFICATE, replacements)) {
            prop_assert!(names.any().len() <= 256);
        }
    }
}
