//! Answers with plain names: ids, tokens and times, which differ from server to server, by order of appearance.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::runner::NO_RUN;

/// A time that lies no further than this behind the end of a program, or before its beginning, is now.
const NOW_S: f64 = 45.0;
/// Other times are rounded to this.
const ROUND_S: f64 = 300.0;
/// What lies further ahead than this has been set by a schedule: the day and the hour of the year, whatever the year.
const FAR_S: f64 = 10_800.0;
/// Longer texts are known by their length.
const LONG_LEN: usize = 50_000;
const DAY_S: i64 = 86_400;
pub const UUID_LEN: usize = 36;
/// What Go has for no time.
const YEAR_ONE_S: f64 = -62_135_596_800.0;

/// The names given so far in one program.
#[derive(Debug)]
pub struct Names {
    own: String,
    uuids: Vec<String>,
    begun_s: f64,
}

impl Names {
    /// `own` is what stands for `~` in this run of the program.
    pub fn new(own: &str) -> Self {
        Self { own: own.to_owned(), uuids: Vec::new(), begun_s: now_s() }
    }

    /// Replaces whatever is a server's or a run's own.
    pub fn make_plain(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.plain(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.make_plain(value)),
            Value::Object(tree) => {
                if let Some(until) = backoff_until(tree) {
                    tree["workflow_execution_started_event_attributes"]["first_workflow_task_backoff"] =
                        until.into();
                }
                for (key, value) in tree.iter_mut() {
                    if let ("pending_activities" | "pending_children", Value::Array(pending)) =
                        (key.as_str(), &mut *value)
                    {
                        // A server may give them in any order.
                        pending.sort_by_cached_key(|one| {
                            format!("{}{}", one["activity_id"], one["initiated_id"])
                        });
                    }
                    if let ("messages", Value::Array(messages)) = (key.as_str(), &mut *value) {
                        // So it may give updates.
                        messages.sort_by_cached_key(|one| one["protocol_instance_id"].to_string());
                    }
                    match (key.as_str(), &mut *value) {
                        ("task_token" | "next_page_token", Value::String(token)) if !token.is_empty() => {
                            *token = "<token>".to_owned();
                        }
                        // What programs give is no UUID; one that a server makes up is seen nowhere else.
                        ("request_id", Value::String(id)) if is_uuid(id) => *id = "<request>".to_owned(),
                        ("execution_duration", Value::String(span)) => *span = "<span>".to_owned(),
                        (_other, value) => self.make_plain(value),
                    }
                }
                for (number, (key, value)) in std::mem::take(tree).into_iter().enumerate() {
                    // Ids of queries and requests that a server has made up.
                    let is_made_up = key.get(..UUID_LEN).is_some_and(is_uuid) || is_query(&key, &value);
                    let name =
                        if is_made_up { format!("<key {number}>") } else { key.replace(&self.own, "~") };
                    tree.insert(name, value);
                }
            }
            _number => {}
        }
    }

    fn plain(&mut self, text: &str) -> String {
        if let Some(time) = text.strip_prefix("time ").and_then(|time| time.parse::<f64>().ok()) {
            return self.time(time);
        }
        if text.len() > LONG_LEN {
            return format!("<{} bytes>", text.len());
        }
        let text = text.replace(&self.own, "~");
        let (mut plain, mut rest) = (String::new(), text.as_str());
        while !rest.is_empty() {
            match rest.get(..UUID_LEN).filter(|part| is_uuid(part)) {
                Some(uuid) => {
                    plain.push_str(&self.name_of(uuid));
                    rest = &rest[UUID_LEN..];
                }
                None => {
                    let sign = rest.chars().next().unwrap_or_default();
                    plain.push(sign);
                    rest = &rest[sign.len_utf8()..];
                }
            }
        }
        plain
    }

    fn name_of(&mut self, uuid: &str) -> String {
        if uuid == NO_RUN {
            return "<no run>".to_owned();
        }
        let known = self.uuids.iter().position(|known| known == uuid);
        let number = known.unwrap_or_else(|| {
            self.uuids.push(uuid.to_owned());
            self.uuids.len() - 1
        });
        format!("<id {number}>")
    }

    fn time(&self, time_s: f64) -> String {
        match time_s {
            0.0 => "time 0".to_owned(),
            YEAR_ONE_S => "time of the year 1".to_owned(),
            time_s if time_s > self.begun_s - NOW_S && time_s < now_s() + NOW_S => "time now".to_owned(),
            time_s if time_s > self.begun_s + FAR_S => day_and_hour(time_s),
            time_s => {
                let rounded_s = ((time_s - self.begun_s) / ROUND_S).round() * ROUND_S;
                format!("time now {:+} min", rounded_s / 60.0)
            }
        }
    }
}

/// Until when a run waits that a schedule has put off for long: its Started event.
fn backoff_until(event: &Map<String, Value>) -> Option<String> {
    let started = event.get("workflow_execution_started_event_attributes")?;
    let backoff_s: f64 = started["first_workflow_task_backoff"].as_str()?.strip_suffix('s')?.parse().ok()?;
    let begun_s: f64 = event.get("event_time")?.as_str()?.strip_prefix("time ")?.parse().ok()?;
    (backoff_s > FAR_S).then(|| day_and_hour(begun_s + backoff_s))
}

/// `on 02-29 at 04:30`, to the nearest minute.
fn day_and_hour(time_s: f64) -> String {
    let time_s = (time_s / 60.0).round() as i64 * 60;
    let (days, second) = (time_s.div_euclid(DAY_S), time_s.rem_euclid(DAY_S));
    // Years begin in March here, so that the day which not every year has is the last of them.
    let days = days + 719_468;
    let day_of_era = days.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("on {month:02}-{day:02} at {:02}:{:02}", second / 3_600, second / 60 % 60)
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn is_query(key: &str, value: &Value) -> bool {
    key != "query" && value.get("query_type").is_some()
}

pub fn is_uuid(text: &str) -> bool {
    let is_dash = |at: usize| [8, 13, 18, 23].contains(&at);
    let mut signs = text.bytes().enumerate();
    text.len() == UUID_LEN
        && signs.all(|(at, sign)| if is_dash(at) { sign == b'-' } else { sign.is_ascii_hexdigit() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Names, day_and_hour};

    #[test]
    fn a_schedule_is_known_by_its_day_and_hour() {
        for (time_s, expected) in [
            (0.0, "on 01-01 at 00:00"),
            (951_798_599.4, "on 02-29 at 04:30"),
            (1_835_407_800.0, "on 02-29 at 03:30"),
            (1_798_761_599.0, "on 01-01 at 00:00"),
        ] {
            assert_eq!(day_and_hour(time_s), expected);
        }
    }

    #[test]
    fn ids_are_named_in_order_of_appearance() {
        let mut names = Names::new("own7");
        let (one, two) = ("0123abcd-0000-4000-8000-00000000000a", "0123abcd-0000-4000-8000-00000000000b");
        let mut answer = json!({
            "a": format!("run {two} of own7w"),
            "b": [one, two],
            "next_page_token": "abc",
            "time": "time 0.000000000",
        });
        names.make_plain(&mut answer);
        let plain = json!({
            "a": "run <id 0> of ~w",
            "b": ["<id 1>", "<id 0>"],
            "next_page_token": "<token>",
            "time": "time 0",
        });
        assert_eq!(answer, plain);
    }
}
