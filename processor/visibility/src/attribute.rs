//! Attributes: what filters can name of a run.
//!
//! The server sets system attributes. Predefined ones exist in every namespace, and stand among the search attributes of
//! a run as custom ones do, which a namespace registers.

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
pub enum AttributeSource {
    /// In a field of the record.
    System(SystemAttribute),
    /// Among the record's search attributes, under this name: predefined and custom ones.
    Named(String),
}

/// An attribute as a filter names it: found, and of a known type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute {
    /// Where its value stands.
    pub source: AttributeSource,
    /// What its values are.
    pub kind: AttributeType,
}

impl Attribute {
    /// A system attribute.
    pub fn system(attribute: SystemAttribute) -> Self {
        Self { source: AttributeSource::System(attribute), kind: attribute.kind() }
    }

    /// True of a predefined or custom attribute of this name.
    pub fn is_named(&self, name: &str) -> bool {
        matches!(&self.source, AttributeSource::Named(own) if own == name)
    }
}

/// System attributes by name.
pub const SYSTEM: [(&str, SystemAttribute); 16] = [
    ("WorkflowId", SystemAttribute::WorkflowId),
    ("RunId", SystemAttribute::RunId),
    ("WorkflowType", SystemAttribute::WorkflowType),
    ("StartTime", SystemAttribute::StartTime),
    ("ExecutionTime", SystemAttribute::ExecutionTime),
    ("CloseTime", SystemAttribute::CloseTime),
    ("ExecutionStatus", SystemAttribute::ExecutionStatus),
    ("TaskQueue", SystemAttribute::TaskQueue),
    ("HistoryLength", SystemAttribute::HistoryLength),
    ("HistorySizeBytes", SystemAttribute::HistorySizeBytes),
    ("ExecutionDuration", SystemAttribute::ExecutionDuration),
    ("StateTransitionCount", SystemAttribute::StateTransitionCount),
    ("ParentWorkflowId", SystemAttribute::ParentWorkflowId),
    ("ParentRunId", SystemAttribute::ParentRunId),
    ("RootWorkflowId", SystemAttribute::RootWorkflowId),
    ("RootRunId", SystemAttribute::RootRunId),
];

/// Predefined attributes by name.
pub const PREDEFINED: [(&str, AttributeType); 17] = [
    ("TemporalChangeVersion", AttributeType::KeywordList),
    ("BinaryChecksums", AttributeType::KeywordList),
    ("BuildIds", AttributeType::KeywordList),
    ("TemporalPauseInfo", AttributeType::KeywordList),
    ("TemporalReportedProblems", AttributeType::KeywordList),
    ("TemporalUsedWorkerDeploymentVersions", AttributeType::KeywordList),
    ("BatcherNamespace", AttributeType::Keyword),
    ("BatcherUser", AttributeType::Keyword),
    ("TemporalScheduledById", AttributeType::Keyword),
    ("TemporalNamespaceDivision", AttributeType::Keyword),
    ("TemporalWorkerDeployment", AttributeType::Keyword),
    ("TemporalWorkerDeploymentVersion", AttributeType::Keyword),
    ("TemporalWorkflowVersioningBehavior", AttributeType::Keyword),
    ("TemporalScheduledStartTime", AttributeType::Datetime),
    ("TemporalSchedulePaused", AttributeType::Bool),
    ("TemporalExternalPayloadCount", AttributeType::Int),
    ("TemporalExternalPayloadSizeBytes", AttributeType::Int),
];

/// Predefined attributes that only the server sets.
pub const SERVER_SET: [&str; 3] = [
    "TemporalUsedWorkerDeploymentVersions",
    "TemporalExternalPayloadCount",
    "TemporalExternalPayloadSizeBytes",
];

/// The system or predefined attribute of a name.
pub fn known(name: &str) -> Option<Attribute> {
    if let Some((_, attribute)) = SYSTEM.iter().find(|(known, _)| *known == name) {
        return Some(Attribute::system(*attribute));
    }
    let predefined = PREDEFINED.iter().find(|(known, _)| *known == name);
    predefined
        .map(|(known, kind)| Attribute { source: AttributeSource::Named((*known).to_owned()), kind: *kind })
}

impl SystemAttribute {
    /// What its values are.
    pub fn kind(self) -> AttributeType {
        match self {
            Self::StartTime | Self::ExecutionTime | Self::CloseTime => AttributeType::Datetime,
            Self::ExecutionDuration
            | Self::HistoryLength
            | Self::HistorySizeBytes
            | Self::StateTransitionCount => AttributeType::Int,
            Self::WorkflowId
            | Self::RunId
            | Self::WorkflowType
            | Self::TaskQueue
            | Self::ExecutionStatus
            | Self::ParentWorkflowId
            | Self::ParentRunId
            | Self::RootWorkflowId
            | Self::RootRunId => AttributeType::Keyword,
        }
    }
}

impl AttributeType {
    /// Its number in the API: `IndexedValueType`.
    pub fn number(self) -> i32 {
        match self {
            Self::Text => 1,
            Self::Keyword => 2,
            Self::Int => 3,
            Self::Double => 4,
            Self::Bool => 5,
            Self::Datetime => 6,
            Self::KeywordList => 7,
        }
    }

    /// The type of a number of `IndexedValueType`; none of an unknown one, and of unspecified.
    pub fn from_number(number: i32) -> Option<Self> {
        const ALL: [AttributeType; 7] = [
            AttributeType::Text,
            AttributeType::Keyword,
            AttributeType::Int,
            AttributeType::Double,
            AttributeType::Bool,
            AttributeType::Datetime,
            AttributeType::KeywordList,
        ];
        ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its name in SDKs and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::Keyword => "Keyword",
            Self::Int => "Int",
            Self::Double => "Double",
            Self::Bool => "Bool",
            Self::Datetime => "Datetime",
            Self::KeywordList => "KeywordList",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_by_name() {
        for (name, attribute) in SYSTEM {
            assert_eq!(known(name), Some(Attribute::system(attribute)));
        }
        for (name, kind) in PREDEFINED {
            assert_eq!(known(name).map(|found| (found.is_named(name), found.kind)), Some((true, kind)));
        }
        assert_eq!(known("workflowid"), None);
    }

    #[test]
    fn types_have_the_numbers_of_the_api() {
        for number in 1..=7 {
            assert_eq!(AttributeType::from_number(number).map(AttributeType::number), Some(number));
        }
        assert_eq!(AttributeType::from_number(0), None);
        assert_eq!(AttributeType::from_number(8), None);
    }
}
