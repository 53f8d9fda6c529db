//! The rules of the product in the simulation: all of them, or all but the one that a plan removes.

use std::cell::Cell;

use everlog_engine::request::{Request, RequestRecord};
use everlog_partition::{Rule, Rules};

/// What makes the engine panic, where a signal's name begins with it.
pub const POISON: &str = "poison";

thread_local! {
    static WITHOUT: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// The rules of every partition in a simulation.
pub struct Loose;

impl Rules for Loose {
    fn keeps(rule: Rule) -> bool {
        WITHOUT.get() != Some(rule)
    }

    fn before(input: &RequestRecord) {
        if let Some(Request::Signal(signal)) = &input.request
            && signal.name.starts_with(POISON)
        {
            std::panic::resume_unwind(Box::new("poison"));
        }
    }
}

/// While it lives, a rule is taken out of every partition of this thread.
pub struct Without(Option<Rule>);

impl Without {
    pub fn rule(rule: impl Into<Option<Rule>>) -> Self {
        Self(WITHOUT.replace(rule.into()))
    }
}

impl Drop for Without {
    fn drop(&mut self) {
        WITHOUT.set(self.0);
    }
}
