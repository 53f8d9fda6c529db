//! Rules: which grants a certificate or a token without permissions has. The first rule that matches counts.

use serde_json::{Map, Value};

use crate::api_keys::read_grants;
use crate::certificate::CertificateNames;
use crate::principal::Grants;

const CERTIFICATE: &str = "a line is certificate CN=NAME|SAN=uri:NAME|SAN=dns:NAME NAMESPACE:ROLE[,...]";
const CLAIM: &str = "a line is claim NAME=VALUE [NAME=VALUE ...] NAMESPACE:ROLE[,...]";

/// The rules of a file, in its order.
#[derive(Debug, Default)]
pub(crate) struct GrantRules {
    certificates: Vec<(Selector, Grants)>,
    claims: Vec<(Vec<WantedClaim>, Grants)>,
}

/// What a certificate must have.
#[derive(Debug, PartialEq, Eq)]
enum Selector {
    CommonName(String),
    Uri(String),
    Dns(String),
}

/// A claim at the top of a token, and its text.
#[derive(Debug, PartialEq, Eq)]
struct WantedClaim {
    name: String,
    value: String,
}

impl GrantRules {
    /// Reads lines. Faults name words by their place, because a secret may stand where it does not belong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            rules.take_line(line).map_err(|fault| format!("line {number}: {fault}"))?;
        }
        Ok(rules)
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        let words = words(line)?;
        let Some((kind, rest)) = words.split_first() else { return Ok(()) };
        match kind.as_str() {
            "certificate" => {
                let [selector, grants] = rest else { return Err(CERTIFICATE.into()) };
                self.certificates.push((Selector::read(selector)?, last_word(grants)?));
            }
            "claim" => {
                let Some((grants, claims)) = rest.split_last().filter(|(_, claims)| !claims.is_empty())
                else {
                    return Err(CLAIM.into());
                };
                let claims: Option<Vec<WantedClaim>> =
                    claims.iter().map(|word| WantedClaim::read(word)).collect();
                self.claims.push((claims.ok_or(CLAIM)?, last_word(grants)?));
            }
            _ => {
                return Err(format!(
                    "the first word is neither certificate nor claim; {CERTIFICATE}, or {CLAIM}"
                ));
            }
        }
        Ok(())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.certificates.len() + self.claims.len()
    }

    /// The name by which a certificate is known, and its grants; none without a rule for it.
    pub(crate) fn of_certificate(&self, names: &CertificateNames) -> Option<(String, Grants)> {
        let (selector, grants) = self.certificates.iter().find(|(selector, _)| selector.matches(names))?;
        Some((selector.name(), grants.clone()))
    }

    /// The grants of a token's claims; none without a rule for them.
    pub(crate) fn of_claims(&self, claims: &Map<String, Value>) -> Option<Grants> {
        let has = |claim: &WantedClaim| claims.get(&claim.name).and_then(Value::as_str) == Some(&claim.value);
        let (_, grants) = self.claims.iter().find(|(wanted, _)| wanted.iter().all(has))?;
        Some(grants.clone())
    }
}

impl Selector {
    fn read(word: &str) -> Result<Self, String> {
        let (kind, value) = match word.split_once('=') {
            Some(("CN", name)) => (Self::CommonName as fn(String) -> Self, name),
            Some(("SAN", name)) => match name.split_once(':') {
                Some(("uri", name)) => (Self::Uri as fn(String) -> Self, name),
                Some(("dns", name)) => (Self::Dns as fn(String) -> Self, name),
                _ => return Err(CERTIFICATE.into()),
            },
            _ => return Err(CERTIFICATE.into()),
        };
        if value.is_empty() {
            return Err(CERTIFICATE.into());
        }
        Ok(kind(value.to_owned()))
    }

    fn matches(&self, names: &CertificateNames) -> bool {
        match self {
            Self::CommonName(name) => names.common_name.as_ref() == Some(name),
            Self::Uri(name) => names.uris.contains(name),
            Self::Dns(name) => names.dns.iter().any(|dns| dns.eq_ignore_ascii_case(name)),
        }
    }

    /// As in the file.
    fn name(&self) -> String {
        match self {
            Self::CommonName(name) => format!("CN={name}"),
            Self::Uri(name) => format!("SAN=uri:{name}"),
            Self::Dns(name) => format!("SAN=dns:{name}"),
        }
    }
}

impl WantedClaim {
    fn read(word: &str) -> Option<Self> {
        let (name, value) = word.split_once('=')?;
        let is_one = !name.is_empty() && !value.is_empty();
        is_one.then(|| Self { name: name.to_owned(), value: value.to_owned() })
    }
}

fn last_word(grants: &str) -> Result<Grants, String> {
    // Otherwise a rule whose grants are forgotten would have its last condition for grants.
    if grants.contains('=') {
        return Err("the last word is a condition, and not NAMESPACE:ROLE[,...]".into());
    }
    read_grants(grants)
}

/// The words of a line. In double quotes a space is a part of a word, and `\"` and `\\` are characters. A word that begins
/// with `#` begins a comment.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => words.push(word(&mut characters)?),
        }
    }
}

fn word(characters: &mut std::iter::Peekable<std::str::Chars>) -> Result<String, String> {
    let mut word = String::new();
    let mut is_quoted = false;
    while let Some(character) = characters.next_if(|c| is_quoted || !c.is_whitespace()) {
        match character {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => match characters.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                _ => return Err("in quotes a backslash is followed by a quote or a backslash".into()),
            },
            other => word.push(other),
        }
    }
    if is_quoted { Err("a quote is not closed".into()) } else { Ok(word) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Access;

    const RULES: &str = r#"
        # who is who
        certificate CN=orders-worker orders:worker
        certificate "CN=Zoë \"the\" Admin" temporal-system:admin   # her laptop
        certificate SAN=uri:spiffe://example.org/ns/prod/sa/stock stock:worker,stock:read
        certificate SAN=dns:ops.example.org temporal-system:read
        certificate CN=orders-worker orders:admin
        claim sub=system:serviceaccount:prod:orders iss=https://kubernetes.default.svc orders:worker
        claim team="the orders" orders:write
    "#;

    fn names(common_name: &str, uris: &[&str], dns: &[&str]) -> CertificateNames {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let common_name = (!common_name.is_empty()).then(|| common_name.to_owned());
        CertificateNames { common_name, uris: owned(uris), dns: owned(dns) }
    }

    #[test]
    fn the_first_rule_that_a_certificate_matches_grants() {
        let rules = GrantRules::parse(RULES).expect("they are right");
        assert_eq!(rules.len(), 7);
        let known = |names: CertificateNames| rules.of_certificate(&names);
        let (name, grants) = known(names("orders-worker", &[], &[])).expect("it has a rule");
        assert_eq!(name, "CN=orders-worker");
        assert!(grants.allow(Access::WORK, "orders") && !grants.allow(Access::ADMIN, "orders"));
        let (_, grants) = known(names("Zoë \"the\" Admin", &[], &[])).expect("it has a rule");
        assert!(grants.allow(Access::SYSTEM_ADMIN, ""));
        let both = names(
            "other",
            &["spiffe://other", "spiffe://example.org/ns/prod/sa/stock"],
            &["OPS.example.org"],
        );
        assert_eq!(
            known(both).map(|known| known.0).as_deref(),
            Some("SAN=uri:spiffe://example.org/ns/prod/sa/stock")
        );
        assert!(known(names("", &[], &["OPS.example.org"])).is_some());
        for stranger in [
            names("", &[], &[]),
            names("Orders-worker", &["orders-worker"], &["orders-worker"]),
            names("orders-worker2", &["spiffe://example.org/ns/prod/sa/stock2"], &["x.ops.example.org"]),
        ] {
            assert_eq!(known(stranger), None);
        }
    }

    #[test]
    fn a_rule_of_claims_wants_all_of_its_texts() {
        let rules = GrantRules::parse(RULES).expect("they are right");
        let granted = |claims: Value| rules.of_claims(claims.as_object().expect("an object"));
        let account = "system:serviceaccount:prod:orders";
        let grants =
            granted(json!({"sub": account, "iss": "https://kubernetes.default.svc"})).expect("a rule");
        assert!(grants.allow(Access::WORK, "orders") && !grants.allow(Access::WRITE, "orders"));
        assert!(
            granted(json!({"team": "the orders"}))
                .is_some_and(|grants| grants.allow(Access::WRITE, "orders"))
        );
        for claims in [
            json!({}),
            json!({"sub": account}),
            json!({"sub": account, "iss": "https://other"}),
            json!({"sub": [account], "iss": "https://kubernetes.default.svc"}),
            json!({"team": "the orders "}),
            json!({"team": ["the orders"]}),
            json!({"team": {"the orders": true}}),
            json!({"Team": "the orders"}),
        ] {
            assert_eq!(granted(claims.clone()), None, "{claims}");
        }
    }

    #[test]
    fn a_fault_names_its_line_and_repeats_nothing_of_it() {
        for line in [
            "canary",
            "certificate",
            "certificate CN=canary",
            "certificate CN= canary:read",
            "certificate canary a:read",
            "certificate OU=canary a:read",
            "certificate SAN=canary a:read",
            "certificate SAN=ip:canary a:read",
            "certificate SAN=uri: a:read",
            "certificate CN=canary a:owner",
            "certificate CN=canary b a:read",
            "certificate CN=canary a:read,",
            "certificate CN=\"canary a:read",
            "certificate CN=\"canary\\n\" a:read",
            "claim",
            "claim sub=canary",
            "claim canary a:read",
            "claim =canary a:read",
            "claim sub= a:read",
            "claim sub=canary iss=canary:read",
            "claim sub=canary a",
            "\"\" sub=canary a:read",
        ] {
            let told = GrantRules::parse(&format!("# first\n{line}\n")).expect_err(line);
            assert!(told.starts_with("line 2: ") && !told.contains("canary"), "{line}: {told}");
        }
        assert_eq!(GrantRules::parse("  \n# a\n\t# b").map(|rules| rules.len()), Ok(0));
    }
}
