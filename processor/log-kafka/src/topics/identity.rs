//! The ids of the topics that the state is made of, as they were when the log was made. A topic that was deleted and made again has
//! another id, whatever is in it.

use std::collections::BTreeMap;

use everlog_log::Error;

use crate::control::control_topic::ControlTopic;
use crate::errors::refused;
use crate::options::Options;
use crate::topics::admin::Admin;
use crate::topics::definition::{Difference, wanted};

/// A topic's id, which Kafka gives it when it is made.
pub(crate) type TopicId = [u8; 16];

/// By the topic's name without the prefix.
pub(crate) type TopicIds = BTreeMap<String, TopicId>;

/// How a log goes on whose topic is lost.
const WAY_OUT: &str =
    "Restore the storage of the brokers, or import an export under another prefix: docs/disaster-recovery.md";

/// The topics that hold state, without those that are not there. `control` is none of them: it has the ids.
///
/// # Errors
/// `Io`: no broker answers.
pub(crate) fn found(options: &Options, admin: &Admin) -> Result<TopicIds, Error> {
    let of_state: Vec<String> = wanted(options, 1)
        .into_iter()
        .filter(|topic| topic.holds_state() && topic.name != options.topic("control"))
        .map(|topic| topic.name)
        .collect();
    let ids = admin.ids(&of_state)?.into_iter();
    Ok(ids.filter_map(|(name, id)| Some((name.strip_prefix(&options.prefix)?.to_owned(), id))).collect())
}

/// Refuses to make a topic anew that the state was made of.
///
/// # Errors
/// `Refused`: such a topic is missing.
pub(crate) fn refuse_missing(options: &Options, known: &TopicIds, found: &TopicIds) -> Result<(), Error> {
    let missing = known.keys().filter(|name| !found.contains_key(*name));
    let names: Vec<_> = missing.map(|name| options.topic(name)).collect();
    match names.as_slice() {
        [] => Ok(()),
        names => Err(refused(format!(
            "missing is what the state of this log is made of: {}. New topics would hold nothing of it. {WAY_OUT}",
            names.join(", ")
        ))),
    }
}

/// Notes the ids of topics that have none noted.
///
/// # Errors
/// As `ControlTopic::put`.
pub(crate) fn record(control: &ControlTopic, known: &TopicIds, found: &TopicIds) -> Result<(), Error> {
    let new = found.iter().filter(|(name, _)| !known.contains_key(*name));
    control.record_topic_ids(&new.map(|(name, id)| (name.as_str(), *id)).collect::<Vec<_>>())
}

/// Adds to the differences which topics are others than when the log was made. Those that are missing cannot be made again.
pub(crate) fn compare(
    options: &Options,
    known: &TopicIds,
    found: &TopicIds,
    differences: &mut Vec<Difference>,
) {
    for (name, id) in known {
        let topic = options.topic(name);
        match found.get(name) {
            Some(found) if found == id => {}
            Some(found) => differences.push(Difference {
                topic,
                setting: "topic id".into(),
                found: text(found),
                wanted: text(id),
                meaning: "it was deleted and made again, and what the state is made of is lost",
                fix: WAY_OUT.into(),
                refuses: true,
            }),
            None => {
                let is_missing =
                    |difference: &&mut Difference| difference.topic == topic && difference.setting == "topic";
                if let Some(missing) = differences.iter_mut().find(is_missing) {
                    missing.meaning = "what the state is made of is lost";
                    missing.fix = WAY_OUT.into();
                }
            }
        }
    }
}

/// An id as Kafka's tools write it.
fn text(id: &TopicId) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topics::definition::plan;

    #[test]
    fn another_id_refuses_and_a_missing_topic_is_not_to_be_made() {
        let options = Options::new("localhost:9092");
        let known: TopicIds = [("journal", 1), ("history", 2), ("timers", 3)]
            .map(|(name, number)| (name.to_owned(), [number; 16]))
            .into();
        let found = TopicIds::from([("journal".to_owned(), [1; 16]), ("history".to_owned(), [9; 16])]);
        let mut differences = plan(&BTreeMap::new(), &wanted(&options, 4));
        let before = differences.len();
        compare(&options, &known, &found, &mut differences);
        assert_eq!(differences.len(), before + 1);
        let remade = differences.last().expect("it was added").to_string();
        assert!(
            remade.starts_with(
                "everlog.history: topic id is CQkJCQkJCQkJCQkJCQkJCQ, wanted is AgICAgICAgICAgICAgICAg: "
            ),
            "{remade}"
        );
        let fix = |name: &str| differences.iter().find(|d| d.topic == options.topic(name)).map(|d| &*d.fix);
        assert_eq!(fix("timers"), Some(WAY_OUT));
        assert!(fix("events").is_some_and(|fix| fix.starts_with("Make it: ")));
        let refusal = refuse_missing(&options, &known, &found).expect_err("timers is missing").to_string();
        assert!(refusal.contains("everlog.timers") && !refusal.contains("everlog.history"), "{refusal}");
    }
}
