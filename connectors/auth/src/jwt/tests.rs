//! Which tokens are accepted, and what they grant. The rows are Temporal's, and ours where they differ.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::clock::testing::TestClocks;
use crate::testing::{KeyReply, KeyServer, RSA, SigningKey, encoded};
use crate::{Access, AuthError, Authenticator, Credentials};

const NOW_S: i64 = 1_767_225_600;

struct JwtCase {
    server: Arc<KeyServer>,
    clock: Arc<TestClocks>,
    authenticator: Authenticator,
    rules: PathBuf,
    p256: SigningKey,
    p384: SigningKey,
    _dir: tempfile::TempDir,
}

impl JwtCase {
    async fn new(change: impl FnOnce(&mut AuthSettings)) -> Self {
        let (p256, p384) = (SigningKey::p256(), SigningKey::p384());
        let keys = vec![RSA.jwk("rsa"), p256.jwk("p256"), p384.jwk("p384")];
        let server = KeyServer::start(KeyReply::Keys(keys)).await;
        let dir = tempfile::tempdir().expect("a directory");
        let rules = dir.path().join("rules");
        std::fs::write(&rules, "claim sub=system:serviceaccount:prod:orders orders:worker")
            .expect("it is written");
        let mut settings = AuthSettings {
            jwks: vec![server.url.clone()],
            jwks_allow_http: true,
            rules_file: Some(rules.clone()),
            ..AuthSettings::default()
        };
        change(&mut settings);
        let clock = Arc::new(TestClocks::new());
        let authenticator = Authenticator::with_clock(&settings, clock.clone()).expect("it opens");
        Self { server, clock, authenticator, rules, p256, p384, _dir: dir }
    }

    async fn identify(&self, token: &str) -> Result<Arc<Principal>, String> {
        let header = format!("Bearer {token}");
        let credentials = Credentials { authorization: &[header.as_bytes()], certificate: None };
        match self.authenticator.identify(credentials).await {
            Ok(principal) => Ok(principal.expect("there is a header")),
            Err(AuthError::Denied(reason)) => Err(reason),
            Err(AuthError::Unavailable(reason)) => panic!("unavailable: {reason}"),
        }
    }

    /// What claims lead to: "allowed", or the reason of the denial.
    async fn outcome(&self, claims: &Value) -> String {
        let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), claims);
        self.identify(&token).await.map_or_else(|reason| reason, |_principal| "allowed".into())
    }
}

fn claims() -> Value {
    json!({"sub": "ann", "exp": NOW_S + 60, "permissions": ["orders:write"]})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("an object").remove(name);
    claims
}

#[tokio::test]
async fn all_algorithms_of_rsa_and_ecdsa_are_accepted_and_no_other() {
    let case = JwtCase::new(|_| ()).await;
    for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"] {
        let token = RSA.token(&json!({"alg": algorithm, "kid": "rsa", "typ": "at+jwt"}), &claims());
        let principal = case.identify(&token).await.expect(algorithm);
        assert_eq!((principal.kind, principal.name.as_str()), (PrincipalKind::Jwt, "ann"));
        assert!(principal.may(Access::WRITE, "orders") && !principal.may(Access::READ, "stock"));
    }
    for (key, algorithm, id) in [(&case.p256, "ES256", "p256"), (&case.p384, "ES384", "p384")] {
        let token = key.token(&json!({"alg": algorithm, "kid": id}), &claims());
        case.identify(&token).await.expect(algorithm);
    }
    for algorithm in
        ["none", "None", "nOnE", "HS256", "HS384", "HS512", "EdDSA", "ES512", "ES256K", "rs256", "RS1", ""]
    {
        let token = RSA.token(&json!({"alg": algorithm, "kid": "rsa"}), &claims());
        let denied = case.identify(&token).await.expect_err(algorithm);
        assert!(denied.contains("algorithm is not accepted"), "{algorithm}: {denied}");
    }
    assert!(case.identify(&RSA.token(&json!({"kid": "rsa"}), &claims())).await.is_err());
    assert_eq!(case.server.requests(), 1);
}

#[tokio::test]
async fn a_key_and_an_algorithm_that_do_not_fit_are_denied() {
    let case = JwtCase::new(|_| ()).await;
    for (key, algorithm, id) in [
        (&case.p256, "ES256", "rsa"),
        (&case.p256, "ES256", "p384"),
        (&case.p256, "ES384", "p256"),
        (&case.p384, "ES256", "p384"),
        (&*RSA, "RS256", "p256"),
        (&*RSA, "PS256", "p384"),
    ] {
        let denied = case.identify(&key.token(&json!({"alg": algorithm, "kid": id}), &claims())).await;
        assert_eq!(
            denied,
            Err("the token's key is not for the token's algorithm".into()),
            "{algorithm} {id}"
        );
    }
    // The same key, said to be of another algorithm than it signed with.
    let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims());
    let header = encoded(json!({"alg": "PS256", "kid": "rsa"}).to_string());
    let (_, rest) = token.split_once('.').expect("it has parts");
    assert_eq!(
        case.identify(&format!("{header}.{rest}")).await,
        Err("the token's signature is wrong".into())
    );
}

#[tokio::test]
async fn the_public_key_is_no_secret_to_sign_with() {
    let case = JwtCase::new(|_| ()).await;
    let jwk = RSA.jwk("rsa");
    let public = jwk["n"].as_str().expect("it has one").to_owned();
    let message = format!(
        "{}.{}",
        encoded(json!({"alg": "HS256", "kid": "rsa"}).to_string()),
        encoded(claims().to_string())
    );
    for secret in [public.as_bytes(), jwk.to_string().as_bytes()] {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let signature = encoded(ring::hmac::sign(&key, message.as_bytes()));
        assert!(case.identify(&format!("{message}.{signature}")).await.is_err());
    }
}

#[tokio::test]
async fn the_header_names_a_known_key_and_nothing_else_in_it_is_used() {
    let case = JwtCase::new(|_| ()).await;
    let own = SigningKey::p256();
    let published = KeyServer::start(KeyReply::Keys(vec![own.jwk("p256")])).await;
    for (header, denied) in [
        (json!({"alg": "RS256"}), "no id of a key"),
        (json!({"alg": "RS256", "kid": ""}), "no id of a key"),
        (json!({"alg": "RS256", "kid": null}), "no id of a key"),
        (json!({"alg": "RS256", "kid": 7}), "cannot be read"),
        (json!({"alg": "RS256", "kid": ["rsa"]}), "cannot be read"),
        (json!({"alg": "RS256", "kid": "../../../../dev/null"}), "no key has the id"),
        (json!({"alg": "RS256", "kid": "x' UNION SELECT 'key' --"}), "no key has the id"),
        (json!({"alg": "RS256", "kid": "RSA"}), "no key has the id"),
        (json!({"alg": "RS256", "kid": published.url}), "no key has the id"),
        (json!({"alg": "RS256", "kid": "rsa", "crit": ["exp"]}), "cannot be read"),
        (json!({"alg": "RS256", "kid": "rsa", "b64": false, "crit": ["b64"]}), "cannot be read"),
    ] {
        let told = case.identify(&RSA.token(&header, &claims())).await.expect_err("it is denied");
        assert!(told.contains(denied), "{header}: {told}");
        assert!(!told.contains("UNION") && !told.contains("dev/null"), "{told}");
    }
    for header in [
        json!({"alg": "ES256", "kid": "p256", "jku": published.url}),
        json!({"alg": "ES256", "kid": "p256", "x5u": published.url}),
        json!({"alg": "ES256", "kid": "p256", "jwk": own.jwk("p256")}),
        json!({"alg": "ES256", "kid": "p256", "x5c": ["AAAA"]}),
    ] {
        let denied = case.identify(&own.token(&header, &claims())).await;
        assert_eq!(denied, Err("the token's signature is wrong".into()), "{header}");
        case.identify(&case.p256.token(&header, &claims())).await.expect("its own key has signed it");
    }
    assert_eq!(published.requests(), 0, "nobody fetches what a token names");
}

#[tokio::test]
async fn claims_are_judged_row_by_row() {
    let case = JwtCase::new(|_| ()).await;
    let ahead = "the token is not valid yet";
    let no_number = "a time in the token is no number";
    let subject = "the token has no text as subject";
    for (claims, expected) in [
        (claims(), "allowed"),
        (with("exp", json!(NOW_S as f64 + 0.5)), "allowed"),
        (with("exp", json!(1e300)), "allowed"),
        (with("exp", json!(NOW_S)), "the token has expired"),
        (with("exp", json!(NOW_S - 60)), "the token has expired"),
        (with("exp", json!(-1)), "the token has expired"),
        (with("exp", json!((NOW_S + 60).to_string())), no_number),
        (with("exp", json!(null)), no_number),
        (with("exp", json!([NOW_S + 60])), "the token cannot be read"),
        (without("exp"), "the token has no expiry"),
        (with("nbf", json!(NOW_S)), "allowed"),
        (with("nbf", json!(NOW_S + 1)), ahead),
        (with("nbf", json!(NOW_S + 60)), ahead),
        (with("nbf", json!("0")), no_number),
        (with("iat", json!(NOW_S + 3_600)), "allowed"),
        (without("sub"), subject),
        (with("sub", json!("")), subject),
        (with("sub", json!(7)), subject),
        (with("sub", json!(["ann"])), "the token cannot be read"),
        (with("sub", json!("a".repeat(1_025))), "the token's subject is longer than 1,024 bytes"),
        (with("iss", json!("anyone")), "allowed"),
        (with("aud", json!("anyone")), "allowed"),
        (json!([]), "the token cannot be read"),
        (json!("claims"), "the token cannot be read"),
    ] {
        assert_eq!(case.outcome(&claims).await, expected, "{claims}");
    }
}

#[tokio::test]
async fn issuer_and_audience_are_judged_where_they_are_set() {
    let case = JwtCase::new(|settings| {
        settings.issuers = vec!["https://id.example.org".into(), "https://kubernetes.default.svc".into()];
        settings.audience = Some("everlog".into());
    })
    .await;
    let issuer = "the token's issuer is not one of auth.issuers";
    let audience = "the token is not for auth.audience";
    let right =
        || json!({"sub": "ann", "exp": NOW_S + 60, "iss": "https://id.example.org", "aud": "everlog"});
    for (name, value, expected) in [
        ("iss", json!("https://id.example.org"), "allowed"),
        ("iss", json!("https://kubernetes.default.svc"), "allowed"),
        ("iss", json!("https://id.example.org/"), issuer),
        ("iss", json!(["https://id.example.org"]), issuer),
        ("iss", json!(null), issuer),
        ("aud", json!(["other", "everlog"]), "allowed"),
        ("aud", json!(["other"]), audience),
        ("aud", json!([["everlog"]]), audience),
        ("aud", json!([]), audience),
        ("aud", json!("Everlog"), audience),
        ("aud", json!("everlog other"), audience),
        ("aud", json!({"everlog": true}), audience),
        ("aud", json!(null), audience),
    ] {
        let mut claims = right();
        claims[name] = value;
        assert_eq!(case.outcome(&claims).await, expected, "{claims}");
    }
    for (name, expected) in [("iss", issuer), ("aud", audience)] {
        let mut claims = right();
        claims.as_object_mut().expect("an object").remove(name);
        assert_eq!(case.outcome(&claims).await, expected, "without {name}");
    }
}

#[tokio::test]
async fn leeway_and_tokens_without_expiry_are_settings() {
    let case = JwtCase::new(|settings| {
        settings.leeway = Duration::from_secs(60);
        settings.require_expiry = false;
    })
    .await;
    for (claims, expected) in [
        (without("exp"), "allowed"),
        (with("exp", json!(NOW_S - 59)), "allowed"),
        (with("exp", json!(NOW_S - 60)), "the token has expired"),
        (with("nbf", json!(NOW_S + 60)), "allowed"),
        (with("nbf", json!(NOW_S + 61)), "the token is not valid yet"),
    ] {
        assert_eq!(case.outcome(&claims).await, expected, "{claims}");
    }
}

#[tokio::test]
async fn permissions_grant_and_without_them_rules_do() {
    let case = JwtCase::new(|_| ()).await;
    let account = "system:serviceaccount:prod:orders";
    let granted = async |claims: Value| {
        let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
        case.identify(&token).await.expect("it is accepted").grants.clone()
    };
    let exp = NOW_S + 60;
    let system =
        granted(json!({"sub": "ann", "exp": exp, "permissions": ["temporal-system:admin", 7, "x"]})).await;
    assert!(system.allow(Access::SYSTEM_ADMIN, "") && system.allow(Access::ADMIN, "any"));
    assert_eq!(case.authenticator.counts().permissions_skipped.load(std::sync::atomic::Ordering::Relaxed), 2);
    let by_rule = granted(json!({"sub": account, "exp": exp})).await;
    assert!(by_rule.allow(Access::WORK, "orders") && !by_rule.allow(Access::WRITE, "orders"));
    for permissions in [json!([]), json!("orders:admin"), json!(null), json!({"orders": "admin"})] {
        let none = granted(json!({"sub": account, "exp": exp, "permissions": permissions})).await;
        assert!(none.is_empty(), "no rule stands in for {permissions}");
    }
    assert!(
        granted(json!({"sub": "stranger", "exp": exp, "Permissions": ["orders:admin"]})).await.is_empty()
    );
}

#[tokio::test]
async fn another_claim_and_an_expression_may_have_the_permissions() {
    let case = JwtCase::new(|settings| {
        settings.permissions_claim = "everlog".into();
        settings.permissions_regex = Some("ns/(?<namespace>[^/]+)/(?<role>.+)".into());
    })
    .await;
    let claims = json!({
        "sub": "ann", "exp": NOW_S + 60, "permissions": ["stock:admin"], "everlog": ["ns/orders/write", "stock:admin"],
    });
    let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
    let principal = case.identify(&token).await.expect("it is accepted");
    assert!(principal.may(Access::WRITE, "orders") && !principal.may(Access::READ, "stock"));
}

#[tokio::test]
async fn a_verified_token_is_judged_by_the_clock_the_rules_and_the_keys_of_each_call() {
    let case = JwtCase::new(|_| ()).await;
    let subject = "system:serviceaccount:prod:orders";
    let token = RSA.token(
        &json!({"alg": "RS256", "kid": "rsa"}),
        &json!({"sub": subject, "exp": NOW_S + 60, "nbf": NOW_S}),
    );
    let first = case.identify(&token).await.expect("it is accepted");
    assert!(
        Arc::ptr_eq(&first, &case.identify(&token).await.expect("it is accepted")),
        "it is not verified again"
    );

    case.clock.set_wall_by_s(-60.0);
    assert_eq!(case.identify(&token).await, Err("the token is not valid yet".into()));
    case.clock.set_wall_by_s(120.0);
    assert_eq!(case.identify(&token).await, Err("the token has expired".into()));
    case.clock.set_wall_by_s(-30.0);
    case.identify(&token).await.expect("it is accepted");

    std::fs::write(&case.rules, format!("claim sub={subject} stock:read")).expect("it is written");
    case.clock.advance(Duration::from_secs(1));
    let other = case.identify(&token).await.expect("it is accepted");
    assert!(other.may(Access::READ, "stock") && !other.may(Access::WORK, "orders"));

    // The issuer takes the key back.
    case.server.reply(KeyReply::Keys(vec![SigningKey::p256().jwk("new")]));
    case.clock.advance(Duration::from_secs(5));
    let unknown = RSA.token(&json!({"alg": "RS256", "kid": "unknown"}), &claims());
    assert_eq!(case.identify(&unknown).await, Err("no key has the id of the token's key".into()));
    assert_eq!(case.identify(&token).await, Err("no key has the id of the token's key".into()));
}

#[tokio::test]
async fn a_token_that_was_changed_is_denied() {
    let case = JwtCase::new(|_| ()).await;
    let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims());
    case.identify(&token).await.expect("it is accepted");
    let [header, _, signature] = token.split('.').collect::<Vec<_>>().try_into().expect("it has three parts");
    let admin = encoded(with("permissions", json!(["temporal-system:admin"])).to_string());
    for changed in [
        format!("{header}.{admin}.{signature}"),
        format!("{token}A"),
        format!("{token}="),
        format!("{header}.{admin}.AA"),
        token[..token.len() - 2].to_owned(),
        format!("A{token}"),
    ] {
        assert!(case.identify(&changed).await.is_err(), "{changed}");
    }
    let stranger = SigningKey::p256();
    let forged = stranger.token(&json!({"alg": "ES256", "kid": "p256"}), &claims());
    assert_eq!(case.identify(&forged).await, Err("the token's signature is wrong".into()));
}

#[tokio::test]
async fn without_issuers_tokens_are_denied() {
    let case = JwtCase::new(|settings| settings.jwks.clear()).await;
    assert_eq!(case.outcome(&claims()).await, "there are no issuers of tokens");
}
