//! What a program is: steps that are data, the same for every server.
//!
//! In texts of requests `~` stands for what is the run's own, so that programs do not meet, and a text that begins with `@` is
//! a reference to what the server has given: `@task W`, `@former W`, `@query W`, `@activity A`, `@former A`, `@run W N` (or `last`),
//! `@scheduled A`, `@queries W`, `@event W TYPE first|middle|last` of the history that was read last; `@long N` is a text of N
//! letters.

use std::fmt;

use serde_json::Value;

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A call, and its answer.
    Call {
        method: &'static str,
        request: Value,
        within_s: u64,
    },
    /// A call whose answer is waited for by [`Step::Join`].
    Begin {
        name: String,
        method: &'static str,
        request: Value,
        within_s: u64,
    },
    Join {
        name: String,
    },
    /// Waits until the current run of a workflow has so many events of a type, or so many more than at its mark.
    Await {
        workflow: String,
        event: &'static str,
        count: usize,
        is_marked: bool,
    },
    /// Counts the events that a run has got when it begins, as a reset gives it.
    Mark {
        workflow: String,
    },
    /// Waits until a workflow has been forgotten.
    Vanish {
        workflow: String,
    },
    /// Lets a call that has begun arrive: nobody can see that it has.
    Pause {
        ms: u64,
    },
}

/// A program, and what it is known by.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub seed: u64,
    pub steps: Vec<Step>,
    /// The names of the moves it is made of, and the step that each begins with.
    pub moves: Vec<(&'static str, usize)>,
}

impl Program {
    /// The moves up to the one that this step is of.
    pub fn moves_to(&self, step: usize) -> impl Iterator<Item = &'static str> {
        self.moves.iter().filter(move |(_, first)| *first <= step).map(|(name, _)| *name)
    }

    /// What tells two programs apart.
    pub fn mark(&self) -> String {
        let text: String = self.steps.iter().map(|step| format!("{step}\n")).collect();
        let start = 0xcbf2_9ce4_8422_2325_u64;
        let mark =
            text.bytes().fold(start, |mark, byte| (mark ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        format!("{mark:016x}")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { method, request, within_s } => write!(f, "{method} {request} within {within_s} s"),
            Self::Begin { name, method, request, within_s } => {
                write!(f, "begin {name}: {method} {request} within {within_s} s")
            }
            Self::Join { name } => write!(f, "join {name}"),
            Self::Await { workflow, event, count, is_marked } => {
                let more = if *is_marked { " more" } else { "" };
                write!(f, "await {workflow}: {count}{more} {event}")
            }
            Self::Mark { workflow } => write!(f, "mark {workflow}"),
            Self::Vanish { workflow } => write!(f, "until {workflow} has vanished"),
            Self::Pause { ms } => write!(f, "pause {ms} ms"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moves: Vec<_> = self.moves.iter().map(|(name, _)| *name).collect();
        writeln!(f, "program {} ({})", self.seed, moves.join(", "))?;
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "  {number}: {step}"))
    }
}
