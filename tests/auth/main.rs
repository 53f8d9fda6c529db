//! Tokens of an issuer that is not ours, oauth2-mock-server, as the authenticator of a node judges them.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use everlog_auth::{Access, AuthError, AuthSettings, Authenticator, Credentials, Principal, PrincipalKind};
use everlog_tests::page;
use serde_json::{Value, json};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// It ends when its standard input does, which the child here holds.
struct Issuer {
    _child: Child,
    address: SocketAddr,
    name: String,
}

impl Issuer {
    fn start() -> Result<Self> {
        let run = concat!(env!("CARGO_MANIFEST_DIR"), "/auth/run");
        let mut child = Command::new(run).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line).with_context(|| format!("it says {line:?}"))?;
        let port = told["port"].as_u64().context("a port")?;
        let name = told["issuer"].as_str().context("a name")?.to_owned();
        Ok(Self { _child: child, address: format!("127.0.0.1:{port}").parse()?, name })
    }

    fn settings(&self) -> AuthSettings {
        AuthSettings {
            jwks: vec![format!("http://{}/jwks", self.address)],
            jwks_allow_http: true,
            issuers: vec![self.name.clone()],
            audience: Some("everlog".into()),
            ..AuthSettings::default()
        }
    }

    async fn token(&self, claims: &Value) -> Result<String> {
        let escaped: String = claims.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let body = format!("grant_type=client_credentials&claims={escaped}");
        let (status, answer) = page::ask(self.address, "POST /token", &[FORM], &body).await?;
        ensure!(status == 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["access_token"].as_str().context("a token")?.to_owned())
    }
}

async fn identify(authenticator: &Authenticator, token: &str) -> Result<Arc<Principal>, AuthError> {
    let header = format!("Bearer {token}");
    let credentials = Credentials { authorization: &[header.as_bytes()], certificate: None };
    authenticator.identify(credentials).await.map(|principal| principal.expect("there is a header"))
}

#[tokio::test]
async fn tokens_of_an_issuer_are_accepted_by_both_of_its_keys() -> Result<()> {
    let issuer = Issuer::start()?;
    let authenticator = Authenticator::open(&issuer.settings())?;
    let claims = json!({"sub": "orders", "aud": ["other", "everlog"], "permissions": ["orders:write"]});
    // Its keys sign by turns: RS256 and ES256.
    for _ in 0..4 {
        let principal = identify(&authenticator, &issuer.token(&claims).await?).await?;
        assert_eq!((principal.kind, principal.name.as_str()), (PrincipalKind::Jwt, "orders"));
        assert!(principal.may(Access::WRITE, "orders") && !principal.may(Access::READ, "stock"));
    }
    for (name, value) in
        [("aud", json!("other")), ("sub", json!(null)), ("exp", json!(1)), ("iss", json!("other"))]
    {
        let mut wrong = claims.clone();
        wrong[name] = value;
        let denied = identify(&authenticator, &issuer.token(&wrong).await?).await;
        assert!(matches!(denied, Err(AuthError::Denied(_))), "{wrong}: {denied:?}");
    }
    let other = Issuer::start()?;
    let foreign = identify(&authenticator, &other.token(&claims).await?).await;
    assert!(matches!(foreign, Err(AuthError::Denied(_))), "{foreign:?}");
    Ok(())
}
