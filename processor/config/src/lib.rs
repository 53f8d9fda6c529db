//! The settings of a node, its data directory, and its log lines. Settings come from defaults, then the file, then
//! the environment, then the command line. They are read once and passed down.

mod auth;
pub mod data_dir;
mod gateway;
mod kafka;
mod limits;
pub mod logs;
pub mod node_file;
mod page;
mod public_http;
pub mod secrets;
mod sections;
mod setting;
mod tls;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use toml::Value;

use crate::setting::{Given, Refusal, Section};

pub use crate::auth::Auth;
pub use crate::data_dir::DataDir;
pub use crate::gateway::Gateway;
pub use crate::kafka::Kafka;
pub use crate::limits::Limits;
pub use crate::public_http::{Http, Ingress, Registry};
pub use crate::sections::{
    Cluster, Log, LogFormat, Logs, Memory, Partition, Queues, Recover, Server, Sync, Threads, Tokens,
};
pub use crate::tls::{ClientCertificates, Tls, VersionMin};

/// Variables that set a key are named `EVERLOG_SECTION__KEY`.
///
/// The double underscore tells them from variables that Kubernetes sets by itself for a service named everlog.
const ENVIRONMENT_PREFIX: &str = "EVERLOG_";

/// All settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[server]`
    pub server: Server,
    /// `[log]`
    pub log: Log,
    /// `[kafka]`
    pub kafka: Kafka,
    /// `[memory]`
    pub memory: Memory,
    /// `[threads]`
    pub threads: Threads,
    /// `[partition]`
    pub partition: Partition,
    /// `[queues]`
    pub queues: Queues,
    /// `[limits]`
    pub limits: Limits,
    /// `[gateway]`
    pub gateway: Gateway,
    /// `[http]`
    pub http: Http,
    /// `[tls]`
    pub tls: Tls,
    /// `[registry]`
    pub registry: Registry,
    /// `[ingress]`
    pub ingress: Ingress,
    /// `[cluster]`
    pub cluster: Cluster,
    /// `[auth]`
    pub auth: Auth,
    /// `[tokens]`
    pub tokens: Tokens,
    /// `[logs]`
    pub logs: Logs,
}

/// All faults of the settings at once.
#[derive(Debug)]
pub struct Faults(Vec<String>);

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [fault] => write!(formatter, "{fault}"),
            faults => {
                write!(formatter, "{} settings cannot be used:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(formatter, "\n  {fault}"))
            }
        }
    }
}

impl Config {
    /// The defaults, with what the file and the environment change.
    ///
    /// # Errors
    /// Every fault, each with the key, the value and what is allowed.
    pub fn load(file: Option<&Path>, environment: &BTreeMap<String, String>) -> Result<Self, Faults> {
        let mut config = Self::default();
        let mut faults = Vec::new();
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Faults(vec![format!("{} cannot be read: {error}", path.display())]))?;
            config.take_file(&path.display().to_string(), &text, &mut faults);
        }
        config.take_environment(environment, &mut faults);
        config.kafka.open_properties_file(&mut faults);
        config.check(&mut faults);
        if faults.is_empty() { Ok(config) } else { Err(Faults(faults)) }
    }

    /// Checks that concern several keys.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn validate(&self) -> Result<(), Faults> {
        let mut faults = Vec::new();
        self.check(&mut faults);
        if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
    }

    /// The sections in the order of the documentation.
    fn sections(&self) -> [&dyn Section; 17] {
        let Self {
            server,
            log,
            kafka,
            memory,
            threads,
            partition,
            queues,
            limits,
            gateway,
            http,
            tls,
            registry,
            ingress,
            cluster,
            auth,
            tokens,
            logs,
        } = self;
        [
            server, log, kafka, memory, threads, partition, queues, limits, gateway, http, tls, registry,
            ingress, cluster, auth, tokens, logs,
        ]
    }

    /// A file with the same settings.
    pub fn to_file(&self) -> String {
        page::file(self)
    }

    fn section(&mut self, name: &str) -> Option<&mut dyn Section> {
        let Self {
            server,
            log,
            kafka,
            memory,
            threads,
            partition,
            queues,
            limits,
            gateway,
            http,
            tls,
            registry,
            ingress,
            cluster,
            auth,
            tokens,
            logs,
        } = self;
        let sections: [&mut dyn Section; 17] = [
            server, log, kafka, memory, threads, partition, queues, limits, gateway, http, tls, registry,
            ingress, cluster, auth, tokens, logs,
        ];
        sections.into_iter().find(|section| section.name() == name)
    }

    fn take_file(&mut self, name: &str, text: &str, faults: &mut Vec<String>) {
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => return faults.push(format!("{name}: {}", error.to_string().trim_end())),
        };
        for (section, content) in &table {
            let Value::Table(content) = content else {
                faults.push(format!("{name}: {section} stands outside a section; {}", self.known_sections()));
                continue;
            };
            for (key, value) in content {
                let shown = value.to_string();
                self.take(name, section, key, Given::File(value), &shown, faults);
            }
            if content.is_empty() && self.section(section).is_none() {
                faults.push(format!("{name}: [{section}] is unknown; {}", self.known_sections()));
            }
        }
    }

    fn take_environment(&mut self, environment: &BTreeMap<String, String>, faults: &mut Vec<String>) {
        for (variable, value) in environment {
            let Some((section, key)) =
                variable.strip_prefix(ENVIRONMENT_PREFIX).and_then(|rest| rest.split_once("__"))
            else {
                continue;
            };
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            let shown = format!("{value:?}");
            self.take(variable, &section, &key, Given::Environment(value), &shown, faults);
        }
    }

    fn take(
        &mut self,
        origin: &str,
        section: &str,
        key: &str,
        given: Given,
        shown: &str,
        faults: &mut Vec<String>,
    ) {
        // A mistyped password must not be in a log.
        let secret =
            [("kafka", "properties"), ("registry", "url"), ("auth", "jwks")].contains(&(section, key));
        let shown = if secret { "(hidden)" } else { shown };
        let Some(found) = self.section(section) else {
            return faults.push(format!("{origin}: [{section}] is unknown; {}", self.known_sections()));
        };
        match found.set(key, given) {
            Ok(()) => {}
            Err(Refusal::NotAllowed(allowed)) => {
                faults.push(format!(
                    "{origin}: {section}.{key} = {shown} is not allowed; allowed is {allowed}"
                ));
            }
            Err(Refusal::Unknown) => {
                let keys: Vec<_> = found.keys().iter().map(|key| key.name).collect();
                faults.push(format!(
                    "{origin}: {section}.{key} is unknown; [{section}] has {}",
                    keys.join(", ")
                ));
            }
        }
    }

    fn known_sections(&self) -> String {
        let names = self.sections().map(|section| format!("[{}]", section.name()));
        format!("there are {}", names.join(", "))
    }

    fn check(&self, faults: &mut Vec<String>) {
        let Self { server, kafka, limits, gateway, http, tls, ingress, cluster, auth, .. } = self;
        let (calls, metrics, face) = (server.address, server.metrics_address, http.address);
        for (key, address, taken) in [
            ("server.metrics_address", metrics, &[("server.address", calls)][..]),
            ("http.address", face, &[("server.address", calls), ("server.metrics_address", metrics)]),
        ] {
            if let Some((other, _)) = taken.iter().find(|(_, taken)| *taken == address && address.port() != 0)
            {
                faults
                    .push(format!("{key} = \"{address}\" is not allowed; allowed is any other than {other}"));
            }
        }
        limits.check(faults);
        gateway.check(faults);
        auth.check(faults);
        tls.check(faults);
        kafka.check(self, faults);
        ingress.check(self, faults);
        cluster.check(kafka.is_used(), faults);
    }
}

/// The variables of the environment.
pub fn environment() -> BTreeMap<String, String> {
    // A name that is not UTF-8 is not a setting's.
    let named = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into()))
    };
    std::env::vars_os().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let mut config = Config::default();
        let mut faults = Vec::new();
        config.take_file("everlog.toml", file, &mut faults);
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        config.take_environment(&environment.collect(), &mut faults);
        config.check(&mut faults);
        if faults.is_empty() { Ok(config) } else { Err(Faults(faults).to_string()) }
    }

    fn refused(file: &str, environment: &[(&str, &str)], expected: Expect) {
        let faults = load(file, environment).expect_err("it is refused");
        expected.assert_eq(&faults);
    }

    #[test]
    fn an_empty_file_gives_the_defaults_of_dev() {
        assert_eq!(load("", &[]), Ok(Config::default()));
        Config::default().validate().expect("the defaults are allowed");
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let file = "[log]\npartitions = 16\nsync = 'never'\n[server]\naddress = '0.0.0.0:7000'";
        let environment = [("EVERLOG_LOG__PARTITIONS", "32"), ("EVERLOG_TOKENS__KEY_FILE", "/etc/keys")];
        let config = load(file, &environment).expect("all of it is allowed");
        assert_eq!((config.log.partitions, config.log.sync), (32, Sync::Never));
        assert_eq!(config.server.address.to_string(), "0.0.0.0:7000");
        assert_eq!(config.tokens.key_file, Some("/etc/keys".into()));
    }

    #[test]
    fn variables_without_a_double_underscore_are_not_settings() {
        let environment =
            [("EVERLOG_LOG", "debug"), ("EVERLOG_SERVICE_HOST", "10.0.0.1"), ("EVERLOG_PORT_7233_TCP", "x")];
        assert_eq!(load("", &environment), Ok(Config::default()));
    }

    #[test]
    fn an_unknown_key_is_refused_with_those_that_there_are() {
        refused(
            "[log]\npartitons = 8",
            &[],
            expect![
                "everlog.toml: log.partitons is unknown; [log] has sync, partitions, recover, waiting_appends_max, waiting_bytes_max, free_bytes_min, public_retention_ms"
            ],
        );
        refused(
            "[lag]\npartitions = 8",
            &[],
            expect![
                "everlog.toml: [lag] is unknown; there are [server], [log], [kafka], [memory], [threads], [partition], [queues], [limits], [gateway], [http], [tls], [registry], [ingress], [cluster], [auth], [tokens], [logs]"
            ],
        );
        refused(
            "[lag]",
            &[],
            expect![
                "everlog.toml: [lag] is unknown; there are [server], [log], [kafka], [memory], [threads], [partition], [queues], [limits], [gateway], [http], [tls], [registry], [ingress], [cluster], [auth], [tokens], [logs]"
            ],
        );
        refused(
            "partitions = 8",
            &[],
            expect![
                "everlog.toml: partitions stands outside a section; there are [server], [log], [kafka], [memory], [threads], [partition], [queues], [limits], [gateway], [http], [tls], [registry], [ingress], [cluster], [auth], [tokens], [logs]"
            ],
        );
        refused(
            "",
            &[("EVERLOG_LOG__PARTITONS", "8")],
            expect![
                "EVERLOG_LOG__PARTITONS: log.partitons is unknown; [log] has sync, partitions, recover, waiting_appends_max, waiting_bytes_max, free_bytes_min, public_retention_ms"
            ],
        );
    }

    #[test]
    fn a_bad_value_is_refused_with_its_key_and_what_is_allowed() {
        refused(
            "[log]\npartitions = 0",
            &[],
            expect!["everlog.toml: log.partitions = 0 is not allowed; allowed is 1 to 256"],
        );
        refused(
            "[log]\npartitions = 'many'",
            &[],
            expect![[r#"everlog.toml: log.partitions = "many" is not allowed; allowed is 1 to 256"#]],
        );
        refused(
            "[log]\nsync = 'sometimes'",
            &[],
            expect![[
                r#"everlog.toml: log.sync = "sometimes" is not allowed; allowed is "always" or "never""#
            ]],
        );
        refused(
            "[server]\naddress = 'localhost'",
            &[],
            expect![[
                r#"everlog.toml: server.address = "localhost" is not allowed; allowed is an IP address and a port, such as "127.0.0.1:7233""#
            ]],
        );
        refused(
            "[server]\ndata_dir = ''",
            &[],
            expect![[r#"everlog.toml: server.data_dir = "" is not allowed; allowed is a path"#]],
        );
        refused(
            "",
            &[("EVERLOG_PARTITION__COMMIT_INTERVAL_MS", "soon")],
            expect![[
                r#"EVERLOG_PARTITION__COMMIT_INTERVAL_MS: partition.commit_interval_ms = "soon" is not allowed; allowed is 1 to 60_000"#
            ]],
        );
        refused(
            "[server]\nmetrics_address = '127.0.0.1:7233'",
            &[],
            expect![[
                r#"server.metrics_address = "127.0.0.1:7233" is not allowed; allowed is any other than server.address"#
            ]],
        );
    }

    #[test]
    fn all_faults_are_told_at_once() {
        refused(
            "[log]\npartitions = 0\nrecover = 1",
            &[("EVERLOG_LOGS__FORMAT", "xml")],
            expect![[r#"
            3 settings cannot be used:
              everlog.toml: log.partitions = 0 is not allowed; allowed is 1 to 256
              everlog.toml: log.recover = 1 is not allowed; allowed is "strict" or "accept-loss"
              EVERLOG_LOGS__FORMAT: logs.format = "xml" is not allowed; allowed is "auto", "pretty" or "json""#]],
        );
    }

    #[test]
    fn a_file_that_is_no_toml_is_refused_with_the_line() {
        refused(
            "[log]\npartitions 8",
            &[],
            expect![[r#"
            everlog.toml: TOML parse error at line 2, column 12
              |
            2 | partitions 8
              |            ^
            key with no value, expected `=`"#]],
        );
    }
}
