//! What programs have met: commands, event types, policies, codes of errors.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::player::Noted;
use crate::program::{Program, Step};
use crate::schema::Schema;

/// The enums whose values are counted, with what must be met of them.
const ENUMS: &[&str] = &[
    ".temporal.api.enums.v1.CommandType",
    ".temporal.api.enums.v1.EventType",
    ".temporal.api.enums.v1.WorkflowIdReusePolicy",
    ".temporal.api.enums.v1.WorkflowIdConflictPolicy",
    ".temporal.api.enums.v1.WorkflowTaskFailedCause",
    ".temporal.api.enums.v1.TimeoutType",
    ".temporal.api.enums.v1.RetryState",
    ".temporal.api.enums.v1.QueryResultType",
    ".temporal.api.enums.v1.QueryRejectCondition",
    ".temporal.api.enums.v1.WorkflowExecutionStatus",
    ".temporal.api.enums.v1.ContinueAsNewInitiator",
    ".temporal.api.enums.v1.ParentClosePolicy",
];

/// How often each thing was met, by its group and name.
#[derive(Debug, Default)]
pub struct Coverage {
    met: BTreeMap<String, usize>,
    codes: BTreeMap<String, usize>,
    methods: BTreeMap<String, usize>,
    moves: BTreeMap<String, usize>,
}

impl Coverage {
    /// Counts what a program asks and what the reference answers.
    pub fn count(&mut self, program: &Program, noted: &[Noted]) {
        program.moves.iter().for_each(|one| *self.moves.entry((*one).to_owned()).or_default() += 1);
        for step in &program.steps {
            if let Step::Call { method, request, .. } | Step::Begin { method, request, .. } = step {
                *self.methods.entry((*method).to_owned()).or_default() += 1;
                self.walk(request);
            }
        }
        for noted in noted {
            // An event counts once: in the history that is read at the end.
            if !noted.step.starts_with("history of") {
                self.refusals(&noted.answer);
            } else {
                self.walk(&noted.answer);
            }
        }
    }

    fn refusals(&mut self, answer: &Value) {
        if let Some(code) = answer.pointer("/error/code").and_then(Value::as_str) {
            let detail =
                answer.pointer("/error/details/0/type").and_then(Value::as_str).unwrap_or("no detail");
            *self.codes.entry(format!("{code} ({detail})")).or_default() += 1;
        }
        if let Some(status) = answer.pointer("/workflow_execution_info/status").and_then(Value::as_str) {
            *self.met.entry(status.to_owned()).or_default() += 1;
        }
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.contains('_') => *self.met.entry(text.clone()).or_default() += 1,
            Value::Array(values) => values.iter().for_each(|value| self.walk(value)),
            Value::Object(tree) => tree.values().for_each(|value| self.walk(value)),
            _other => {}
        }
    }

    /// The table, with what was never met.
    pub fn table(&self, schema: &Schema) -> String {
        let mut table = String::new();
        for name in ENUMS {
            let group = name.rsplit('.').next().unwrap_or_default();
            table.push_str(&format!("{group}\n"));
            for value in schema.values_of(name).iter().filter(|value| !value.ends_with("_UNSPECIFIED")) {
                let times = self.met.get(value).copied().unwrap_or_default();
                table.push_str(&format!("  {times:>6} {value}\n"));
            }
        }
        table
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, group) in [("Moves", &self.moves), ("Methods", &self.methods), ("Refusals", &self.codes)]
        {
            writeln!(f, "{title}")?;
            group.iter().try_for_each(|(name, times)| writeln!(f, "  {times:>6} {name}"))?;
        }
        Ok(())
    }
}
