//! The query of ListWorkers: comparisons of heartbeat fields, joined by AND and OR, with brackets.

use everlog_temporal_api::enums::WorkerStatus;
use everlog_temporal_api::full::temporal::api::worker::v1::WorkerHeartbeat;
use tonic::Status;

use crate::codec::status::invalid;

/// The longest query, in bytes.
const QUERY_BYTES_MAX: usize = 4_096;
/// The depth of brackets. It bounds the recursion of the parser.
const DEPTH_MAX: usize = 16;

/// A parsed query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WorkerFilter {
    All,
    Both(Box<WorkerFilter>, Box<WorkerFilter>),
    Either(Box<WorkerFilter>, Box<WorkerFilter>),
    Compare(Attribute, Comparison, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    InstanceKey,
    Identity,
    HostName,
    TaskQueue,
    DeploymentName,
    BuildId,
    SdkName,
    SdkVersion,
    Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Other,
    Begins,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Name(String),
    Text(String),
    Sign(&'static str),
}

impl WorkerFilter {
    /// Parses a query; an empty one matches every worker.
    pub(crate) fn read(query: &str) -> Result<Self, Status> {
        if query.len() > QUERY_BYTES_MAX {
            return Err(malformed("it is too long"));
        }
        let words = words(query)?;
        if words.is_empty() {
            return Ok(Self::All);
        }
        let mut rest = words.as_slice();
        let filter = either(&mut rest, 0)?;
        match rest {
            [] => Ok(filter),
            _more => Err(malformed("something stands behind its end")),
        }
    }

    /// True if the worker matches.
    pub(crate) fn passes(&self, worker: &WorkerHeartbeat) -> bool {
        match self {
            Self::All => true,
            Self::Both(one, other) => one.passes(worker) && other.passes(worker),
            Self::Either(one, other) => one.passes(worker) || other.passes(worker),
            Self::Compare(attribute, comparison, text) => {
                let value = attribute.of(worker);
                match comparison {
                    Comparison::Equal => value == text,
                    Comparison::Other => value != text,
                    Comparison::Begins => value.starts_with(text),
                }
            }
        }
    }
}

impl Attribute {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "WorkerInstanceKey" => Self::InstanceKey,
            "WorkerIdentity" => Self::Identity,
            "HostName" => Self::HostName,
            "TaskQueue" => Self::TaskQueue,
            "DeploymentName" => Self::DeploymentName,
            "BuildId" => Self::BuildId,
            "SdkName" => Self::SdkName,
            "SdkVersion" => Self::SdkVersion,
            "Status" => Self::Status,
            _unknown => return None,
        })
    }

    fn of(self, worker: &WorkerHeartbeat) -> &str {
        let version = worker.deployment_version.as_ref();
        match self {
            Self::InstanceKey => &worker.worker_instance_key,
            Self::Identity => &worker.worker_identity,
            Self::HostName => worker.host_info.as_ref().map_or("", |host| &host.host_name),
            Self::TaskQueue => &worker.task_queue,
            Self::DeploymentName => version.map_or("", |version| &version.deployment_name),
            Self::BuildId => version.map_or("", |version| &version.build_id),
            Self::SdkName => &worker.sdk_name,
            Self::SdkVersion => &worker.sdk_version,
            Self::Status => match WorkerStatus::try_from(worker.status) {
                Ok(WorkerStatus::Running) => "Running",
                Ok(WorkerStatus::ShuttingDown) => "ShuttingDown",
                Ok(WorkerStatus::Shutdown) => "Shutdown",
                Ok(WorkerStatus::Unspecified) | Err(_) => "Unspecified",
            },
        }
    }
}

fn either(rest: &mut &[Word], depth: usize) -> Result<WorkerFilter, Status> {
    let mut filter = both(rest, depth)?;
    while is_next(rest, "OR") {
        filter = WorkerFilter::Either(Box::new(filter), Box::new(both(rest, depth)?));
    }
    Ok(filter)
}

fn both(rest: &mut &[Word], depth: usize) -> Result<WorkerFilter, Status> {
    let mut filter = single(rest, depth)?;
    while is_next(rest, "AND") {
        filter = WorkerFilter::Both(Box::new(filter), Box::new(single(rest, depth)?));
    }
    Ok(filter)
}

fn single(rest: &mut &[Word], depth: usize) -> Result<WorkerFilter, Status> {
    match *rest {
        [Word::Sign("("), more @ ..] if depth < DEPTH_MAX => {
            *rest = more;
            let filter = either(rest, depth + 1)?;
            let [Word::Sign(")"), more @ ..] = *rest else { return Err(malformed("a bracket is left open")) };
            *rest = more;
            Ok(filter)
        }
        [Word::Name(name), sign, Word::Text(text), more @ ..] => {
            let attribute = Attribute::named(name);
            let attribute = attribute.ok_or_else(|| malformed(&format!("{name} cannot be asked for")))?;
            let comparison = match sign {
                Word::Sign("=") => Comparison::Equal,
                Word::Sign("!=") => Comparison::Other,
                Word::Name(name) if name.eq_ignore_ascii_case("STARTS_WITH") => Comparison::Begins,
                _unknown => return Err(malformed("a comparison is =, != or STARTS_WITH")),
            };
            *rest = more;
            Ok(WorkerFilter::Compare(attribute, comparison, text.clone()))
        }
        _other => Err(malformed("expected a name, a comparison and a text in quotes")),
    }
}

fn is_next(rest: &mut &[Word], word: &str) -> bool {
    match *rest {
        [Word::Name(name), more @ ..] if name.eq_ignore_ascii_case(word) => {
            *rest = more;
            true
        }
        _other => false,
    }
}

fn words(query: &str) -> Result<Vec<Word>, Status> {
    let mut words = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length) = match first {
            '\'' | '"' => {
                let text = rest.get(1..).unwrap_or_default();
                let end = text.find(first).ok_or_else(|| malformed("a quote is left open"))?;
                (Word::Text(text.get(..end).unwrap_or_default().to_owned()), end + 2)
            }
            _sign_or_name => match ["!=", "=", "(", ")"].into_iter().find(|sign| rest.starts_with(sign)) {
                Some(sign) => (Word::Sign(sign), sign.len()),
                None => {
                    let is_over = |char: char| !char.is_ascii_alphanumeric() && char != '_';
                    let end = rest.find(is_over).unwrap_or(rest.len());
                    if end == 0 {
                        return Err(malformed(&format!("{first:?} means nothing")));
                    }
                    (Word::Name(rest.get(..end).unwrap_or_default().to_owned()), end)
                }
            },
        };
        words.push(word);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(words)
}

fn malformed(why: &str) -> Status {
    invalid(format!("malformed query: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(query: &str) -> bool {
        let worker = WorkerHeartbeat {
            worker_instance_key: "k1".into(),
            task_queue: "orders".into(),
            sdk_name: "temporal-python".into(),
            status: WorkerStatus::Running.into(),
            ..WorkerHeartbeat::default()
        };
        WorkerFilter::read(query).expect(query).passes(&worker)
    }

    #[test]
    fn what_is_asked_for_passes() {
        for query in [
            "",
            "  ",
            "TaskQueue = 'orders'",
            "TaskQueue=\"orders\" AND SdkName starts_with 'temporal-'",
            "TaskQueue = 'x' OR WorkerInstanceKey = 'k1'",
            "(TaskQueue = 'x' or TaskQueue = 'orders') and Status = 'Running'",
            "HostName = ''",
            "BuildId != 'b1'",
            "TaskQueue = 'x' AND TaskQueue = 'y' OR SdkVersion = ''",
        ] {
            assert!(passes(query), "{query}");
        }
        for query in
            ["TaskQueue = 'order'", "TaskQueue != 'orders'", "Status = 'Shutdown' AND TaskQueue = 'orders'"]
        {
            assert!(!passes(query), "{query}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_whatever_it_is() {
        let deep = format!("{}TaskQueue = 'x'{}", "(".repeat(DEPTH_MAX + 1), ")".repeat(DEPTH_MAX + 1));
        let long = format!("TaskQueue = '{}'", "x".repeat(QUERY_BYTES_MAX));
        for query in [
            "x y z",
            "TaskQueue",
            "TaskQueue =",
            "TaskQueue = orders",
            "TaskQueue = 'x",
            "(TaskQueue = 'x'",
            "Foo = '1'",
            "TaskQueue > 'x'",
            "TaskQueue = 'x' TaskQueue = 'y'",
            "ä = 'x'",
            "\u{0}",
            "AND",
            "'x' = TaskQueue",
            &deep,
            &long,
        ] {
            let refusal = WorkerFilter::read(query).expect_err(query);
            assert!(refusal.message().starts_with("malformed query"), "{query}: {}", refusal.message());
        }
    }
}
