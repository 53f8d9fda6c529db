//! Attributes: what filters can name of a run.

/// What values of an attribute are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeType {
    /// A string that is compared as a whole, byte by byte.
    Keyword,
    /// A set of keywords.
    KeywordList,
    /// A text of which words are searched.
    Text,
    /// A signed 64-bit integer.
    Int,
    /// A 64-bit float.
    Double,
    /// True or false.
    Bool,
    /// A moment, in ns since 1970-01-01 UTC.
    Datetime,
}

/// An attribute that the server sets on every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SystemAttribute {
    /// The Workflow Id.
    WorkflowId,
    /// The run's UUID.
    RunId,
    /// The workflow type's name.
    WorkflowType,
    /// The run's normal task queue.
    TaskQueue,
    /// When the run began.
    StartTime,
    /// When its first workflow task may run.
    ExecutionTime,
    /// When it closed; none while it is open.
    CloseTime,
    /// The status: a number of `WorkflowExecutionStatus`.
    ExecutionStatus,
    /// From `ExecutionTime` to `CloseTime`, in ns; none while it is open.
    ExecutionDuration,
    /// Events of its history; none while it is open.
    HistoryLength,
    /// Encoded bytes of its history; none while it is open.
    HistorySizeBytes,
    /// Steps that changed it; none while it is open.
    StateTransitionCount,
    /// The Workflow Id of its parent; none without one.
    ParentWorkflowId,
    /// The run of its parent; none without one.
    ParentRunId,
    /// The Workflow Id of the first ancestor; its own without a parent.
    RootWorkflowId,
    /// The run of the first ancestor; its own without a parent.
    RootRunId,
}

/// Where the value of an attribute stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// In a field of the record.
    System(SystemAttribute),
    /// Among the record's search attributes, under this name: predefined and custom ones.
    Named(String),
}

/// An attribute as a filter names it: found, and of a known type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute {
    /// Where its value stands.
    pub source: Source,
    /// What its values are.
    pub kind: AttributeType,
}

impl Attribute {
    /// True of a predefined or custom attribute of this name.
    pub fn is_named(&self, name: &str) -> bool {
        matches!(&self.source, Source::Named(own) if own == name)
    }
}
