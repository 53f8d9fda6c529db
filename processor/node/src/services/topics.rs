//! `everlog topics`: creates the topics of the log on Kafka, and says what is wrong with them.

use std::io::Write;

use anyhow::bail;
use everlog_config::Config;
use everlog_log_kafka::topics::{self, Difference};

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
    let differences = match command {
        TopicsCommand::Plan(_) | TopicsCommand::Check(_) => topics::check(&options),
        TopicsCommand::Create(_) => topics::create(&options),
    };
    let differences = differences.map_err(|error| kafka.explain(error))?;
    let mut text = table(&differences);
    if matches!(command, TopicsCommand::Plan(_)) {
        for topic in topics::wanted(&options, kafka.partitions) {
            if differences.iter().any(|difference| is_missing(difference) && difference.topic == topic.name) {
                let (name, partitions, replication) = (topic.name, topic.partitions, topic.replication);
                text.push_str(&format!(
                    "create would make {name} with {partitions} partitions and {replication} replicas\n"
                ));
            }
        }
    }
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
    let explain = |error| config.kafka.explain(error);
    let missing = topics::check(&options).map_err(explain)?.iter().filter(|found| is_missing(found)).count();
    if missing > 0 {
        topics::create(&options).map_err(explain)?;
        tracing::info!(
            brokers = config.kafka.bootstrap_servers,
            prefix = config.kafka.prefix,
            replication = config.kafka.replication,
            topics = missing,
            "topics created"
        );
    }
    Ok(())
}

fn is_missing(difference: &Difference) -> bool {
    difference.setting == "topic"
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
    fn without_brokers_nobody_looks() {
        let settings = crate::cli::Settings { config: None };
        let error = run(&TopicsCommand::Check(settings), &Config::default()).expect_err("there are none");
        assert!(error.to_string().contains("EVERLOG_KAFKA__BOOTSTRAP_SERVERS"), "{error}");
    }
}
