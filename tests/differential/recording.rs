//! Files of what a server has answered.
//!
//! Lines of text: `program SEED MARK` opens a program, `step NAME ANSWER` follows for each step. Values that a program
//! has shown before stand as `{"=": NUMBER}`, which makes the file a fraction of its size.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::runner::Noted;

/// Values shorter than this are not worth a reference.
const SHARED_LEN_MIN: usize = 40;

/// A program as the file has it: its seed, what tells it from others, and the answers.
pub fn written(seed: u64, mark: &str, noted: Vec<Noted>) -> String {
    let mut text = format!("program {seed} {mark}\n");
    let mut shared = Shared::default();
    for noted in noted {
        let answer = shared.shorten(&noted.answer);
        text.push_str(&format!("step {}\t{answer}\n", noted.step));
    }
    text
}

/// The seed of a program, what tells it from others, and the answers.
pub type Recorded = (u64, String, Vec<Noted>);

/// The programs of a file.
pub fn read(text: &str) -> Result<Vec<Recorded>> {
    let mut recorded: Vec<Recorded> = Vec::new();
    let mut shared = Shared::default();
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').context("a line has a kind")?;
        if kind == "program" {
            let (seed, mark) = rest.split_once(' ').context("a program has a mark")?;
            recorded.push((seed.parse()?, mark.to_owned(), Vec::new()));
            shared = Shared::default();
        } else {
            let (step, answer) = rest.split_once('\t').context("a step has an answer")?;
            let answer = shared.restore(&serde_json::from_str(answer)?)?;
            let program = recorded.last_mut().context("a step is of a program")?;
            program.2.push(Noted { step: step.to_owned(), answer });
        }
    }
    Ok(recorded)
}

/// The values that a program has shown so far, in order.
#[derive(Default)]
struct Shared {
    values: Vec<Value>,
}

impl Shared {
    /// A value with what was shown before as references. Parts come before the whole, as [`Shared::restore`] sees them.
    fn shorten(&mut self, value: &Value) -> Value {
        if let Some(number) = self.values.iter().position(|known| known == value) {
            return json!({ "=": number });
        }
        let short = match value {
            Value::Array(values) => values.iter().map(|value| self.shorten(value)).collect(),
            Value::Object(tree) => {
                tree.iter().map(|(key, value)| (key.clone(), self.shorten(value))).collect()
            }
            leaf => return leaf.clone(),
        };
        self.learn(value);
        short
    }

    fn restore(&mut self, short: &Value) -> Result<Value> {
        let whole = match short {
            Value::Array(values) => values.iter().map(|value| self.restore(value)).collect::<Result<_>>()?,
            Value::Object(tree) => {
                if let Some(number) = tree.get("=").and_then(Value::as_u64) {
                    let known = self.values.get(usize::try_from(number)?);
                    return known.cloned().context("a reference to what comes later");
                }
                let fields = tree.iter().map(|(key, value)| Ok((key.clone(), self.restore(value)?)));
                Value::Object(fields.collect::<Result<_>>()?)
            }
            leaf => return Ok(leaf.clone()),
        };
        self.learn(&whole);
        Ok(whole)
    }

    fn learn(&mut self, value: &Value) {
        if value.to_string().len() >= SHARED_LEN_MIN {
            self.values.push(value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Shared;

    #[test]
    fn what_is_recorded_reads_back_as_it_was() -> anyhow::Result<()> {
        let long = json!({"name": "a text that is long enough to be shared", "list": [1, {"deep": "another text that is long enough"}]});
        let answers = [json!({"one": long}), json!({"two": [long, long]}), long.clone(), json!("leaf")];
        let mut writer = Shared::default();
        let short: Vec<Value> = answers.iter().map(|answer| writer.shorten(answer)).collect();
        assert_eq!(short[2].as_object().map(serde_json::Map::len), Some(1), "{short:?}");
        let mut reader = Shared::default();
        let whole: Vec<Value> =
            short.iter().map(|short| reader.restore(short)).collect::<anyhow::Result<_>>()?;
        assert_eq!(whole, answers);
        Ok(())
    }
}
