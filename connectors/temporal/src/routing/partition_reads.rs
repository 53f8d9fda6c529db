//! Asks the indices of partitions, wherever they are served: each partition answers for itself, and all do or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use everlog_partition::{CallFailure, VisibilityAnswer, VisibilityRead};
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full, Limited};
use prost::Message;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Method, Request, Response, StatusCode};

use crate::Gateway;
use crate::codec::status;
use crate::routing::peers::{Location, Peers};

/// The path of a question to another node.
pub(crate) const PATH: &str = "/everlog/visibility";
/// How long a partition may have no owner before the call is refused. A take-over takes less.
const OWNER_WITHIN: Duration = Duration::from_secs(3);
/// How long a call waits for a change of ownership before it looks again.
const RETRY_AFTER: Duration = Duration::from_millis(25);
/// How long another node may take to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Bytes of a question.
const QUESTION_BYTES_MAX: usize = 16 << 20;
/// Bytes of another node's answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// What one partition is asked.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartitionQuestion {
    /// The partition.
    #[prost(uint32, tag = "1")]
    pub partition: u32,
    /// What of it.
    #[prost(message, optional, tag = "2")]
    pub read: Option<VisibilityRead>,
}

/// Questions to partitions of one node.
#[derive(Clone, PartialEq, Message)]
struct Questions {
    #[prost(message, repeated, tag = "1")]
    questions: Vec<PartitionQuestion>,
}

/// Their answers, in the same order.
#[derive(Clone, PartialEq, Message)]
struct Answers {
    #[prost(message, repeated, tag = "1")]
    answers: Vec<PartitionAnswer>,
}

/// The answer of a partition; without one it was refused.
#[derive(Clone, PartialEq, Message)]
struct PartitionAnswer {
    #[prost(message, optional, tag = "1")]
    answer: Option<VisibilityAnswer>,
    /// Another node may serve the partition by now: it is looked for again.
    #[prost(bool, tag = "2")]
    is_gone: bool,
    /// Why there is no answer, as a number of `tonic::Code`, and as text.
    #[prost(int32, tag = "3")]
    code: i32,
    #[prost(string, tag = "4")]
    reason: String,
}

/// Why a partition has not answered.
enum Unanswered {
    /// It is served elsewhere, or will be.
    Gone,
    /// It was asked, and refuses.
    Refused(Status),
}

/// Asks partitions; the answers are in the order of the questions.
///
/// # Errors
/// UNAVAILABLE names a partition that nobody serves; else what a partition says.
pub(crate) async fn ask(
    gateway: &Gateway,
    questions: Vec<PartitionQuestion>,
) -> Result<Vec<VisibilityAnswer>, Status> {
    let mut answers: Vec<Option<VisibilityAnswer>> = vec![None; questions.len()];
    let mut open: Vec<usize> = (0..questions.len()).collect();
    let mut changes = gateway.peers.as_ref().map(|peers| peers.changes());
    let until = Instant::now() + OWNER_WITHIN;
    loop {
        if let Some(changes) = &mut changes {
            changes.mark_unchanged();
        }
        for (place, answer) in ask_once(gateway, &questions, &open).await {
            match answer {
                Ok(answer) => answers[place] = Some(answer),
                Err(Unanswered::Gone) => {}
                Err(Unanswered::Refused(status)) => return Err(status),
            }
        }
        open.retain(|place| answers[*place].is_none());
        let Some(missing) = open.first() else { return Ok(answers.into_iter().flatten().collect()) };
        if Instant::now() >= until {
            let partition = questions[*missing].partition;
            return Err(Status::unavailable(format!("partition {partition} is not served by any node now")));
        }
        match &mut changes {
            // The sender lives as long as the cluster; a change or a little while, whatever is first.
            Some(changes) => drop(tokio::time::timeout(RETRY_AFTER, changes.changed()).await),
            None => tokio::time::sleep(RETRY_AFTER).await,
        }
    }
}

type Answered = (usize, Result<VisibilityAnswer, Unanswered>);

async fn ask_once(gateway: &Gateway, questions: &[PartitionQuestion], open: &[usize]) -> Vec<Answered> {
    let mut here = Vec::new();
    let mut there: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    let mut answered = Vec::new();
    for place in open {
        let owner = gateway.peers.as_ref().map(|peers| peers.owner(questions[*place].partition));
        match owner {
            None | Some(Location::Here) => here.push(*place),
            Some(Location::There(node)) => there.entry(node).or_default().push(*place),
            Some(Location::Nowhere) => answered.push((*place, Err(Unanswered::Gone))),
        }
    }
    let own = join_all(here.iter().map(|place| ask_here(gateway, &questions[*place])));
    let others = join_all(there.into_iter().filter_map(|(node, places)| {
        let peers = gateway.peers.as_deref()?;
        Some(ask_node(peers, node, questions, places))
    }));
    let (own, others) = tokio::join!(own, others);
    answered.extend(here.into_iter().zip(own));
    answered.extend(others.into_iter().flatten());
    answered
}

async fn ask_here(gateway: &Gateway, question: &PartitionQuestion) -> Result<VisibilityAnswer, Unanswered> {
    let read = question.read.clone().unwrap_or_default();
    match gateway.router.visibility(question.partition, read).await {
        Ok(answer) => Ok(answer),
        Err(CallFailure::Moved) => Err(Unanswered::Gone),
        // A read changes nothing: it is asked again while its partition comes back.
        Err(CallFailure::Unavailable) => Err(Unanswered::Gone),
        Err(failure) => Err(Unanswered::Refused(status::of_failure(failure))),
    }
}

async fn ask_node(
    peers: &dyn Peers,
    node: Arc<str>,
    questions: &[PartitionQuestion],
    places: Vec<usize>,
) -> Vec<Answered> {
    let asked = Questions { questions: places.iter().map(|place| questions[*place].clone()).collect() };
    let answers = tokio::time::timeout(ANSWERED_WITHIN, exchange(peers, node, &asked)).await;
    let mut answers = answers.ok().flatten().unwrap_or_default().answers.into_iter();
    let read = |place| (place, answers.next().map_or(Err(Unanswered::Gone), PartitionAnswer::read));
    places.into_iter().map(read).collect()
}

/// None where the node has not answered, or not in a way that can be read.
async fn exchange(peers: &dyn Peers, node: Arc<str>, questions: &Questions) -> Option<Answers> {
    let request = Request::builder().method(Method::POST).uri(PATH);
    let request = request.body(Bytes::from(questions.encode_to_vec())).ok()?;
    let response = peers.call(node, request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.ok()?;
    Answers::decode(body.to_bytes()).ok()
}

impl PartitionAnswer {
    fn read(self) -> Result<VisibilityAnswer, Unanswered> {
        match self.answer {
            Some(answer) => Ok(answer),
            None if self.is_gone => Err(Unanswered::Gone),
            None => Err(Unanswered::Refused(Status::new(self.code.into(), self.reason))),
        }
    }
}

/// Answers the questions of another node for the partitions that this one serves.
pub(crate) async fn answer_peer(gateway: &Gateway, request: Request<Body>) -> Response<Body> {
    let body = Limited::new(request.into_body(), QUESTION_BYTES_MAX).collect().await;
    let questions = body.ok().and_then(|body| Questions::decode(body.to_bytes()).ok());
    let Some(Questions { questions }) = questions else {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return response;
    };
    let answers = join_all(questions.iter().map(async |question| match ask_here(gateway, question).await {
        Ok(answer) => PartitionAnswer { answer: Some(answer), ..PartitionAnswer::default() },
        Err(Unanswered::Gone) => PartitionAnswer { is_gone: true, ..PartitionAnswer::default() },
        Err(Unanswered::Refused(status)) => {
            let (code, reason) = (status.code().into(), status.message().to_owned());
            PartitionAnswer { code, reason, ..PartitionAnswer::default() }
        }
    }));
    let answers = Answers { answers: answers.await };
    Response::new(Body::new(Full::new(Bytes::from(answers.encode_to_vec()))))
}
