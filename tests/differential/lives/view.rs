//! What is compared of a schedule and of its runs: answers without what is a server's own.

use std::time::{SystemTime, UNIX_EPOCH};

use prost_types::Timestamp;
use serde_json::{Map, Value};

use crate::plain::{UUID_LEN, is_uuid};

/// A time that lies no further than this behind the present, or before the beginning of a life, is now.
const NOW_S: i64 = 60;
/// What is no further behind the present than this is soon.
const SOON_S: i64 = 10 * 86_400;
/// `2026-11-30T02:30:00`, which a fraction may follow, and `Z`.
const MOMENT_LEN: usize = 19;
const ACTION_ID: &str = "~w";

/// The runs of an action: those that follow each other by retries and continuations.
#[derive(Clone, Debug)]
pub struct RunChain {
    pub workflow_id: String,
    /// In their order.
    pub run_ids: Vec<String>,
    /// Of the last one.
    pub status: String,
    /// It was started whatever else was open.
    pub overlaps: bool,
}

impl RunChain {
    pub fn is_open(&self) -> bool {
        ["WORKFLOW_EXECUTION_STATUS_RUNNING", "WORKFLOW_EXECUTION_STATUS_PAUSED"]
            .contains(&self.status.as_str())
    }

    /// The one that may be open.
    pub fn last_run_id(&self) -> &str {
        self.run_ids.last().map_or("", String::as_str)
    }
}

/// What is known of a life at one server.
#[derive(Clone, Debug)]
pub struct LifeView {
    own: String,
    begun_s: i64,
    keeps_id: bool,
    /// In order of their starts.
    pub chains: Vec<RunChain>,
}

impl LifeView {
    /// `own` is what stands for `~`.
    pub fn new(own: &str, keeps_id: bool) -> Self {
        Self { own: own.to_owned(), begun_s: now_s(), keeps_id, chains: Vec::new() }
    }

    /// Learns of the runs that a description has. `overlaps` says how new ones were started.
    pub fn learn(&mut self, info: &Value, overlaps: bool) {
        let recent = list(&info["recent_actions"]).map(|action| &action["start_workflow_result"]);
        for execution in recent.chain(list(&info["running_workflows"])) {
            let text = |field: &str| execution[field].as_str().unwrap_or_default().to_owned();
            let (workflow_id, run_id) = (text("workflow_id"), text("run_id"));
            if !self.chains.iter().any(|chain| chain.run_ids[0] == run_id) {
                let status = "WORKFLOW_EXECUTION_STATUS_RUNNING".to_owned();
                self.chains.push(RunChain { workflow_id, run_ids: vec![run_id], status, overlaps });
            }
        }
    }

    fn overlaps(&self, execution: &Value) -> bool {
        let run_id = execution["run_id"].as_str().unwrap_or_default();
        self.chains.iter().any(|chain| chain.run_ids[0] == run_id && chain.overlaps)
    }

    /// What is compared of a description.
    pub fn schedule(&self, mut description: Value) -> Value {
        if let Some(code) = description.pointer("/error/code") {
            return code.clone();
        }
        if let Some(token) = description["conflict_token"].as_str().and_then(token_number) {
            description["conflict_token"] = token.into();
        }
        if let Some(Value::Object(info)) = description.get_mut("info") {
            info.remove("state_size_bytes");
            // A Temporal server does not look after runs that overlap.
            if let Some(Value::Array(running)) = info.get_mut("running_workflows") {
                running.retain(|execution| !self.overlaps(execution));
            }
            if info.get("running_workflows").is_some_and(|running| running.as_array() == Some(&Vec::new())) {
                info.remove("running_workflows");
            }
            for action in info.get_mut("recent_actions").and_then(Value::as_array_mut).into_iter().flatten() {
                if self.overlaps(&action["start_workflow_result"]) {
                    action.as_object_mut().map(|action| action.remove("start_workflow_status"));
                }
            }
        }
        self.plain(&description)
    }

    /// The state of each chain of runs.
    pub fn statuses(&self) -> Value {
        let chains = self.chains.iter().enumerate().map(|(number, chain)| {
            let id = self.plain_text(&chain.workflow_id);
            let status = chain.status.trim_start_matches("WORKFLOW_EXECUTION_STATUS_").to_lowercase();
            Value::from(format!("<run {number}> of {id}: {status} after {} runs", chain.run_ids.len()))
        });
        chains.collect()
    }

    /// A value with names in place of what is a server's own.
    pub fn plain(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.plain_text(text).into(),
            Value::Array(values) => values.iter().map(|value| self.plain(value)).collect(),
            Value::Object(tree) => {
                let fields = tree.iter().map(|(key, value)| (self.plain_text(key), self.plain(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            number => number.clone(),
        }
    }

    fn plain_text(&self, text: &str) -> String {
        if let Some(time) = text.strip_prefix("time ") {
            let parts = time.split_once('.').map(|(seconds, nanos)| (seconds.parse(), nanos.parse()));
            if let Some((Ok(seconds), Ok(nanos))) = parts {
                return self.time(Timestamp { seconds, nanos });
            }
        }
        let text = text.replace(&self.own, "~");
        let (mut plain, mut rest) = (String::new(), text.as_str());
        while let Some(sign) = rest.chars().next() {
            if let Some(uuid) = rest.get(..UUID_LEN).filter(|part| is_uuid(part)) {
                plain.push_str(&self.name_of(uuid));
                rest = &rest[UUID_LEN..];
            } else if let Some((moment, behind)) = moment(rest) {
                let is_id = plain.ends_with(&format!("{ACTION_ID}-"));
                let name = self.time(moment);
                rest = behind;
                if is_id && name == "now" {
                    rest = without_number(rest);
                }
                if is_id && self.keeps_id {
                    plain.pop();
                } else {
                    plain.push_str(&name);
                }
            } else {
                plain.push(sign);
                rest = &rest[sign.len_utf8()..];
            }
        }
        plain
    }

    fn name_of(&self, uuid: &str) -> String {
        for (number, chain) in self.chains.iter().enumerate() {
            match chain.run_ids.iter().position(|run_id| run_id == uuid) {
                Some(0) => return format!("<run {number}>"),
                Some(later) => return format!("<run {number}, {later} later>"),
                None => {}
            }
        }
        "<id>".to_owned()
    }

    fn time(&self, time: Timestamp) -> String {
        if time.seconds <= self.begun_s - NOW_S || time.seconds > self.begun_s + SOON_S {
            time.to_string()
        } else if time.seconds < now_s() + NOW_S {
            "now".to_owned()
        } else {
            // Until when a run may take: no specification has such times.
            "soon".to_owned()
        }
    }
}

/// The elements of a list, if it is one.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The number of a conflict token, as the schema reads bytes.
pub fn token_number(token: &str) -> Option<u64> {
    u64::from_str_radix(token.strip_prefix("hex:")?, 16).ok()
}

/// A moment at the beginning of a text, and what follows.
fn moment(text: &str) -> Option<(Timestamp, &str)> {
    text.get(..MOMENT_LEN).filter(|part| part.as_bytes()[4] == b'-' && part.as_bytes()[10] == b'T')?;
    let fraction = text[MOMENT_LEN..].find(|sign: char| sign != '.' && !sign.is_ascii_digit())?;
    let end = MOMENT_LEN + fraction + 1;
    let moment = text.get(..end)?.parse().ok()?;
    Some((moment, &text[end..]))
}

/// What follows the number of an action among those of its second.
fn without_number(text: &str) -> &str {
    let Some(number) = text.strip_prefix('-') else { return text };
    let rest = number.trim_start_matches(|sign: char| sign.is_ascii_digit());
    if rest.len() < number.len() { rest } else { text }
}

/// The second of this machine's clock.
pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;
    use serde_json::json;

    use super::{LifeView, now_s, token_number};

    #[test]
    fn what_is_a_servers_own_has_a_name() {
        let mut view = LifeView::new("own7", false);
        let run = "0123abcd-0000-4000-8000-00000000000a";
        let now = Timestamp { seconds: now_s(), nanos: 0 };
        let action =
            json!({"start_workflow_result": {"workflow_id": format!("own7w-{now}-2"), "run_id": run}});
        view.learn(&json!({ "recent_actions": [action.clone()] }), false);
        let result = json!({"workflow_id": "~w-now", "run_id": "<run 0>"});
        assert_eq!(view.plain(&action), json!({ "start_workflow_result": result }));
        assert_eq!(view.plain(&json!("own7w-2090-01-01T00:10:00Z-3")), json!("~w-2090-01-01T00:10:00Z-3"));
        assert_eq!(view.plain(&json!("time 3786912000.000000000")), json!("2090-01-01T00:00:00Z"));
        assert_eq!(view.statuses(), json!(["<run 0> of ~w-now: running after 1 runs"]));
        let keeper = LifeView::new("own7", true);
        assert_eq!(keeper.plain(&json!(format!("own7w-{now}: why"))), json!("~w: why"));
        assert_eq!(token_number("hex:0000000000000102"), Some(258));
    }
}
