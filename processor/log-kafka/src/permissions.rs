//! Permissions on the brokers (ACLs), and what is said where one is missing.
//!
//! A denial names the principal, the operation and the resource, and the line of kafka-acls.sh that permits it. Nothing is
//! permitted here.

use std::collections::BTreeMap;

use everlog_log::Error;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::errors::io;

/// An operation on a resource, by Kafka's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AclOperation {
    Read,
    Write,
    Create,
    Delete,
    Describe,
    DescribeConfigs,
}

/// A resource by its kind and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AclResource<'a> {
    Topic(&'a str),
    Group(&'a str),
    TransactionalId(&'a str),
}

/// What a call needs.
pub(crate) type AclNeeds<'a> = (AclOperation, AclResource<'a>);

/// What the brokers deny, and how it is permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclDenial {
    /// Who is denied what.
    pub denied: String,
    /// The line of kafka-acls.sh that permits it.
    pub fix: String,
}

/// As whom the brokers know a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KafkaUser {
    name: String,
    servers: String,
    prefix: String,
}

/// What a member of a group needs that reads a topic.
pub(crate) fn reads<'a>(topic: &'a str, group: &'a str) -> [AclNeeds<'a>; 2] {
    [(AclOperation::Read, AclResource::Topic(topic)), (AclOperation::Read, AclResource::Group(group))]
}

impl AclOperation {
    fn name(self) -> &'static str {
        match self {
            AclOperation::Read => "Read",
            AclOperation::Write => "Write",
            AclOperation::Create => "Create",
            AclOperation::Delete => "Delete",
            AclOperation::Describe => "Describe",
            AclOperation::DescribeConfigs => "DescribeConfigs",
        }
    }
}

impl AclDenial {
    /// As an error of the log.
    pub(crate) fn into_error(self) -> Error {
        Error::Denied { detail: self.denied, fix: self.fix }
    }

    /// Several of them as one error.
    pub(crate) fn all(denials: Vec<AclDenial>) -> Error {
        let (denied, fixes): (Vec<_>, Vec<_>) =
            denials.into_iter().map(|denial| (denial.denied, denial.fix)).unzip();
        Error::Denied { detail: denied.join("; "), fix: fixes.join("\n") }
    }
}

impl KafkaUser {
    /// `property`: of the client.
    pub(crate) fn of(servers: &str, prefix: &str, property: impl Fn(&str) -> Option<String>) -> Self {
        let protocol = property("security.protocol").unwrap_or_default().to_lowercase();
        let name = if protocol.starts_with("sasl") {
            property("sasl.username").unwrap_or_else(|| "(the user that logs in)".into())
        } else if protocol == "ssl" && property("ssl.certificate.location").is_some() {
            "(the subject of ssl.certificate.location)".into()
        } else {
            "ANONYMOUS".into()
        };
        KafkaUser { name: format!("User:{name}"), servers: servers.into(), prefix: prefix.into() }
    }

    /// The error of a call; where the brokers deny it, with what it needs. `needs`: each kind of resource once.
    pub(crate) fn fault(&self, what: &str, error: &KafkaError, needs: &[AclNeeds<'_>]) -> Error {
        let denial = error.rdkafka_error_code().and_then(|code| self.denial(code, needs));
        match denial {
            Some(denial) => Error::Denied { detail: format!("{what}: {}", denial.denied), fix: denial.fix },
            None => io(what, error),
        }
    }

    /// The same as text.
    pub(crate) fn explain(&self, error: &KafkaError, needs: &[AclNeeds<'_>]) -> String {
        match error.rdkafka_error_code().and_then(|code| self.denial(code, needs)) {
            Some(AclDenial { denied, fix }) => format!("{denied}; to permit it: {fix}"),
            None => error.to_string(),
        }
    }

    /// What a code of the brokers denies, if it does.
    pub(crate) fn denial(&self, code: RDKafkaErrorCode, needs: &[AclNeeds<'_>]) -> Option<AclDenial> {
        let is_denied = |resource: &AclResource<'_>| match resource {
            AclResource::Topic(_) => code == RDKafkaErrorCode::TopicAuthorizationFailed,
            AclResource::Group(_) => code == RDKafkaErrorCode::GroupAuthorizationFailed,
            AclResource::TransactionalId(_) => code == RDKafkaErrorCode::TransactionalIdAuthorizationFailed,
        };
        // A producer's id is denied by this code, where no topic at all may be written.
        let is_write = |(operation, _): &&AclNeeds<'_>| {
            code == RDKafkaErrorCode::ClusterAuthorizationFailed && *operation == AclOperation::Write
        };
        let denied = needs.iter().find(|(_, resource)| is_denied(resource));
        let (operation, resource) = denied.or_else(|| needs.iter().find(is_write))?;
        Some(self.deny(*operation, *resource))
    }

    /// One operation on one resource.
    pub(crate) fn deny(&self, operation: AclOperation, resource: AclResource<'_>) -> AclDenial {
        match resource {
            AclResource::Topic(name) => {
                self.text(operation, &format!("the topic {name}"), &format!("--topic {name}"))
            }
            AclResource::Group(name) => {
                self.text(operation, &format!("the group {name}"), &format!("--group {name}"))
            }
            AclResource::TransactionalId(name) if name.starts_with(&self.prefix) => self.text(
                operation,
                &format!("the transactional id {name}"),
                &format!("--resource-pattern-type prefixed --transactional-id {}", self.prefix),
            ),
            AclResource::TransactionalId(name) => self.text(
                operation,
                &format!("the transactional id {name}"),
                &format!("--transactional-id {name}"),
            ),
        }
    }

    /// Operations on topics. One that is missing on all of them is permitted by the prefix.
    pub(crate) fn deny_topics(
        &self,
        missing: &BTreeMap<AclOperation, Vec<&str>>,
        all: &[&str],
    ) -> Vec<AclDenial> {
        let denial = |(operation, topics): (&AclOperation, &Vec<&str>)| {
            let names = topics.join(", ");
            if topics.len() == all.len() && topics.len() > 1 {
                let prefixed = format!("--resource-pattern-type prefixed --topic {}", self.prefix);
                return self.text(*operation, &format!("the topics {names}"), &prefixed);
            }
            let plural = if topics.len() > 1 { "s" } else { "" };
            let topics: Vec<_> = topics.iter().map(|topic| format!("--topic {topic}")).collect();
            self.text(*operation, &format!("the topic{plural} {names}"), &topics.join(" "))
        };
        missing.iter().map(denial).collect()
    }

    fn text(&self, operation: AclOperation, resource: &str, option: &str) -> AclDenial {
        let KafkaUser { name, servers, .. } = self;
        let operation = operation.name();
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || ":._-@".contains(c));
        let quoted = if is_plain { name.clone() } else { format!("\"{name}\"") };
        AclDenial {
            denied: format!("the brokers deny {name} the operation {operation} on {resource}"),
            fix: format!(
                "kafka-acls.sh --bootstrap-server {servers} --add --allow-principal {quoted} --operation {operation} \
                 {option}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(pairs: &[(&str, &str)]) -> KafkaUser {
        let of =
            |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| (*value).to_owned());
        KafkaUser::of("broker-1:9093", "everlog.", of)
    }

    fn everlog() -> KafkaUser {
        principal(&[("security.protocol", "SASL_SSL"), ("sasl.username", "everlog")])
    }

    #[test]
    fn a_denial_names_principal_operation_and_resource_and_the_line_that_permits_it() {
        let needs = [
            (AclOperation::Read, AclResource::Group("everlog.nodes")),
            (AclOperation::Write, AclResource::Topic("everlog.journal")),
        ];
        let denial = everlog().denial(RDKafkaErrorCode::TopicAuthorizationFailed, &needs).expect("it is one");
        assert_eq!(
            denial.denied,
            "the brokers deny User:everlog the operation Write on the topic everlog.journal"
        );
        let fix = "kafka-acls.sh --bootstrap-server broker-1:9093 --add --allow-principal User:everlog --operation Write \
                   --topic everlog.journal";
        assert_eq!(denial.fix, fix);
        let denied = |code| everlog().denial(code, &needs).map(|denial| denial.denied).unwrap_or_default();
        assert!(
            denied(RDKafkaErrorCode::GroupAuthorizationFailed).ends_with("Read on the group everlog.nodes")
        );
        assert!(
            denied(RDKafkaErrorCode::ClusterAuthorizationFailed)
                .ends_with("Write on the topic everlog.journal")
        );
        assert_eq!(everlog().denial(RDKafkaErrorCode::RequestTimedOut, &needs), None);
        let id = everlog().deny(AclOperation::Write, AclResource::TransactionalId("everlog.group-3"));
        assert!(id.denied.ends_with("the transactional id everlog.group-3"));
        assert!(
            id.fix.ends_with("--resource-pattern-type prefixed --transactional-id everlog."),
            "{}",
            id.fix
        );
    }

    #[test]
    fn what_is_missing_everywhere_is_permitted_by_the_prefix() {
        let all = ["everlog.control", "everlog.events", "everlog.journal"];
        let missing = [
            (AclOperation::Read, all.to_vec()),
            (AclOperation::Delete, vec![all[2]]),
            (AclOperation::Write, all[1..].to_vec()),
        ];
        let denials = everlog().deny_topics(&missing.into(), &all);
        let ends: Vec<_> =
            denials.iter().map(|denial| denial.fix.split_once("--operation ").map(|(_, end)| end)).collect();
        let expected = [
            "Read --resource-pattern-type prefixed --topic everlog.",
            "Write --topic everlog.events --topic everlog.journal",
            "Delete --topic everlog.journal",
        ];
        assert_eq!(ends, expected.map(Some));
    }

    #[test]
    fn the_principal_is_that_of_the_properties() {
        assert_eq!(everlog().name, "User:everlog");
        assert_eq!(principal(&[]).name, "User:ANONYMOUS");
        let by_certificate =
            principal(&[("security.protocol", "ssl"), ("ssl.certificate.location", "/node.pem")]);
        let denial = by_certificate.deny(AclOperation::Read, AclResource::Topic("everlog.events"));
        assert!(denial.fix.contains("--allow-principal \"User:(the subject of ssl.certificate.location)\" "));
    }
}
