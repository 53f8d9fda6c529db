//! `everlog topics`: creates the topics of the log on Kafka, and says what is wrong with them.

use std::io::Write;

use anyhow::bail;
use everlog_config::Config;
use everlog_log_kafka::topics::{self, Creation, Difference, TopicDefinition};

use crate::cli::TopicsCommand;

/// The verdict on the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicsVerdict {
    /// They can be served on.
    Good,
    /// They cannot be served on.
    Refused,
}

/// Runs one of the commands and prints what differs.
///
/// # Errors
/// No brokers are set, none answers, or they refuse.
pub fn run(command: &TopicsCommand, config: &Config) -> anyhow::Result<TopicsVerdict> {
    let kafka = &config.kafka;
    if !kafka.is_used() {
        bail!(
            "no brokers are named; set kafka.bootstrap_servers (EVERLOG_KAFKA__BOOTSTRAP_SERVERS). The embedded log needs \
             no topics"
        );
    }
    let options = kafka.options(&config.server.name);
    let explain = |error| kafka.explain(error);
    let (text, differences) = match command {
        TopicsCommand::Plan(_) => {
            let differences = topics::check(&options).map_err(explain)?;
            (planned(&topics::wanted(&options, kafka.partitions), &differences), differences)
        }
        TopicsCommand::Check(_) => {
            let differences = topics::check(&options).map_err(explain)?;
            (table(&differences), differences)
        }
        TopicsCommand::Create(_) => {
            let Creation { created, differences } = topics::create(&options).map_err(explain)?;
            (format!("{}{}", made_text(created.len()), table(&differences)), differences)
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(if differences.iter().any(|difference| difference.refuses) {
        TopicsVerdict::Refused
    } else {
        TopicsVerdict::Good
    })
}

/// Creates missing topics, and logs it.
///
/// # Errors
/// No broker answers, or it refuses.
pub fn make_missing(config: &Config) -> anyhow::Result<()> {
    let options = config.kafka.options(&config.server.name);
    let Creation { created, .. } = topics::create(&options).map_err(|error| config.kafka.explain(error))?;
    if !created.is_empty() {
        tracing::info!(
            brokers = config.kafka.bootstrap_servers,
            prefix = config.kafka.prefix,
            replication = config.kafka.replication,
            topics = created.len(),
            "topics created"
        );
    }
    Ok(())
}

fn is_missing(difference: &Difference) -> bool {
    difference.setting == "topic"
}

/// What `create` would create, then what differs in the topics that exist.
fn planned(wanted: &[TopicDefinition], differences: &[Difference]) -> String {
    let (missing, changed): (Vec<_>, Vec<_>) = differences.iter().cloned().partition(is_missing);
    let is_to_make = |topic: &&TopicDefinition| missing.iter().any(|found| found.topic == topic.name);
    let line = |topic: &TopicDefinition| {
        let TopicDefinition { name, partitions, replication, .. } = topic;
        let retention = topic.retention();
        format!(
            "to make: {name}, {}, {}, {retention}\n",
            counted(u64::from(*partitions), "partition"),
            counted(u64::from(*replication), "replica")
        )
    };
    let mut text: String = wanted.iter().filter(is_to_make).map(line).collect();
    if missing.is_empty() || !changed.is_empty() {
        text.push_str(&table(&changed));
    }
    text
}

/// What `create` created; nothing where all topics existed.
fn made_text(topics: usize) -> String {
    if topics == 0 { String::new() } else { format!("made {}\n", counted(topics as u64, "topic")) }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn table(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "The topics are as they must be.\n".into();
    }
    let head = ["", "TOPIC", "SETTING", "IS", "WANTED"].map(str::to_owned);
    let row = |found: &Difference| {
        let verdict = if found.refuses { "REFUSED" } else { "told" };
        [verdict, &found.topic, &found.setting, &found.found, &found.wanted].map(str::to_owned)
    };
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(differences.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
        if let Some(found) = index.checked_sub(1).and_then(|index| differences.get(index)) {
            text.push_str(&format!("    meaning: {}\n    fix: {}\n", found.meaning, found.fix));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_difference_is_a_row_with_its_meaning_and_its_fix() {
        let found = Difference {
            topic: "everlog.journal".into(),
            setting: "retention.ms".into(),
            found: "604800000".into(),
            wanted: "-1".into(),
            meaning: "records are deleted by time, applied or not",
            fix: "Set it: kafka-configs.sh".into(),
            refuses: true,
        };
        let told = Difference { topic: "everlog.events".into(), refuses: false, ..found.clone() };
        expect![[r#"
                     TOPIC            SETTING       IS         WANTED
            REFUSED  everlog.journal  retention.ms  604800000  -1
                meaning: records are deleted by time, applied or not
                fix: Set it: kafka-configs.sh
            told     everlog.events   retention.ms  604800000  -1
                meaning: records are deleted by time, applied or not
                fix: Set it: kafka-configs.sh
        "#]]
        .assert_eq(&table(&[found, told]));
        assert_eq!(table(&[]), "The topics are as they must be.\n");
    }

    #[test]
    fn a_plan_lists_what_is_to_be_made_and_then_what_differs() {
        let options = everlog_log_kafka::Options::new("localhost:9092");
        let wanted = topics::wanted(&options, 4);
        let made: std::collections::BTreeMap<_, _> = wanted
            .iter()
            .filter(|topic| topic.name == "everlog.events" || topic.name == "everlog.control")
            .map(|topic| (topic.name.clone(), Default::default()))
            .collect();
        let differences = topics::plan(&made, &wanted);
        let text = planned(&wanted, &differences);
        let to_make: Vec<_> = text.lines().filter(|line| line.starts_with("to make: ")).collect();
        assert_eq!(to_make.len(), wanted.len() - 2, "{text}");
        assert_eq!(
            to_make[0],
            "to make: everlog.journal, 4 partitions, 3 replicas, kept until they are applied"
        );
        assert!(text.contains("everlog.events") && !text.contains("missing"), "{text}");
        assert_eq!(planned(&wanted, &[]), "The topics are as they must be.\n");
        assert_eq!([made_text(0), made_text(1), made_text(9)], ["", "made 1 topic\n", "made 9 topics\n"]);
    }

    #[test]
    fn without_brokers_nobody_looks() {
        let settings = crate::cli::Settings { config: None };
        let options = crate::cli::TopicsOptions { settings, kafka_bootstrap: None };
        let error = run(&TopicsCommand::Check(options), &Config::default()).expect_err("there are none");
        assert!(error.to_string().contains("EVERLOG_KAFKA__BOOTSTRAP_SERVERS"), "{error}");
    }
}
