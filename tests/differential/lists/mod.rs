//! Lists and counts of the same runs, made of a seed, at Everlog and at a Temporal server: same rows, order, counts, codes and texts.
//!
//! A namespace is filled with runs of all kinds and attributes of all types; then generated queries are asked of it, valid
//! ones and ones that are damaged at random. Runs are told by their numbers, so that answers of two servers compare.

mod queries;
mod recorded;
mod runs;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use everlog_temporal_api::full::temporal::api::common::v1::Payload;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse,
};
use everlog_tests::dice::Dice;
use everlog_tests::raw;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::servers::{Everlog, Reference};
use queries::ListQuery;
use runs::FilledNamespace;

/// Queries that are asked of one namespace.
const QUERIES: usize = 400;
/// Namespaces of a live run.
const LIVE_SEEDS: u64 = 6;
/// The seed of the recorded one.
const RECORDED_SEED: u64 = 1;
/// How the answer to a query begins that is refused.
const REFUSED: &str = "InvalidArgument: ";

/// Why answers may differ, and of which query, theirs and ours.
type Allowance = (&'static str, fn(&ListQuery, &str, &str) -> bool);

/// Where answers may differ.
#[rustfmt::skip]
const ALLOWED: &[Allowance] = &[
    ("ORDER BY of a time is accepted in lists", |query, theirs, ours| {
        !query.is_count && theirs.ends_with("operation is not supported: 'order by' clause") && !is_refused(ours)
    }),
    ("GROUP BY takes any keyword", |query, theirs, ours| {
        query.is_count && theirs.contains("is only supported for ExecutionStatus") && !is_refused(ours)
    }),
    ("an open run has no close time", |query, theirs, ours| {
        query.text.contains("CloseTime") && !is_refused(theirs) && !is_refused(ours)
    }),
    ("names keep their spelling in messages", |_, theirs, ours| {
        is_refused(theirs) && theirs.eq_ignore_ascii_case(ours)
    }),
    ("an operand in brackets, or an argument, is refused without being read", |query, theirs, ours| {
        query.text.contains('(') && is_refused(ours) && theirs.contains("malformed SQL query: syntax error")
    }),
    ("a clause that is not supported is refused before what stands behind it is read", |_, theirs, ours| {
        theirs.contains("malformed SQL query: syntax error") && ours.contains("operation is not supported")
    }),
    ("a test among the values of IN is a syntax error", |query, theirs, ours| {
        query.text.contains("IN (") && is_refused(theirs) && ours.contains("malformed SQL query: syntax error")
    }),
];

fn is_refused(answer: &str) -> bool {
    answer.starts_with(REFUSED)
}

/// What a server answers to each query, in words.
type QueryAnswers = Vec<(ListQuery, String)>;

/// Fills a namespace and asks of it what belongs to the seed.
async fn play(channel: &Channel, seed: u64) -> Result<QueryAnswers> {
    let namespace = FilledNamespace::fill(channel, seed).await?;
    let mut told = Vec::with_capacity(QUERIES);
    for query in queries::of_seed(&mut Dice::new(seed), QUERIES) {
        let answer = tell(channel, &namespace, &query).await.with_context(|| query.text.clone())?;
        told.push((query, answer));
    }
    Ok(told)
}

async fn tell(channel: &Channel, namespace: &FilledNamespace, query: &ListQuery) -> Result<String> {
    let text = namespace.filled_in(&query.text);
    let answer = match query.is_count {
        true => count(channel, namespace, text).await?,
        false => list(channel, namespace, text, query.page_size).await?,
    };
    let answer = answer.unwrap_or_else(|refused| format!("{:?}: {}", refused.code(), refused.message()));
    Ok(namespace.numbered(&answer))
}

/// The numbers of the runs, in the order of the list.
async fn list(
    channel: &Channel,
    namespace: &FilledNamespace,
    query: String,
    page_size: i32,
) -> Result<Result<String, Status>> {
    let (mut listed, mut next_page_token) = (Vec::new(), Bytes::new());
    loop {
        let (namespace, query) = (namespace.name.clone(), query.clone());
        let request = ListWorkflowExecutionsRequest { namespace, page_size, next_page_token, query };
        let page = match raw::send(channel, request).await {
            Ok(page) => ListWorkflowExecutionsResponse::decode(page)?,
            Err(refused) => return heard(refused),
        };
        listed.extend(page.executions.into_iter().filter_map(|run| run.execution));
        next_page_token = page.next_page_token;
        if next_page_token.is_empty() {
            break;
        }
    }
    let number = |run: &everlog_temporal_api::common::WorkflowExecution| namespace.number_of(&run.run_id);
    let numbers: Vec<_> = listed.iter().map(number).collect::<Result<_>>()?;
    Ok(Ok(format!("{numbers:?}")))
}

/// The count, and its groups by their values.
async fn count(
    channel: &Channel,
    namespace: &FilledNamespace,
    query: String,
) -> Result<Result<String, Status>> {
    let request = CountWorkflowExecutionsRequest { namespace: namespace.name.clone(), query };
    let counted = match raw::send(channel, request).await {
        Ok(counted) => CountWorkflowExecutionsResponse::decode(counted)?,
        Err(refused) => return heard(refused),
    };
    let mut groups = Vec::new();
    for group in counted.groups {
        let values: Vec<_> = group.group_values.into_iter().map(Payload::decode).collect::<Result<_, _>>()?;
        ensure!(values.len() == 1, "{values:?}");
        groups.push(format!("{} {}", String::from_utf8_lossy(&values[0].data), group.count));
    }
    groups.sort();
    Ok(Ok(format!("{} {groups:?}", counted.count)))
}

/// A refusal is an answer; what says nothing of the query is none.
fn heard(refused: Status) -> Result<Result<String, Status>> {
    let is_answer =
        ![Code::ResourceExhausted, Code::DeadlineExceeded, Code::Cancelled].contains(&refused.code());
    if is_answer { Ok(Err(refused)) } else { Err(refused.into()) }
}

/// What differs and may not, and how often each difference that is allowed was met.
fn compare(theirs: &QueryAnswers, ours: &QueryAnswers) -> (Vec<String>, Vec<usize>) {
    let (mut wrong, mut met) = (Vec::new(), vec![0; ALLOWED.len()]);
    for ((query, theirs), (_, ours)) in theirs.iter().zip(ours) {
        if theirs == ours {
            continue;
        }
        match ALLOWED.iter().position(|(_, allows)| allows(query, theirs, ours)) {
            Some(place) => met[place] += 1,
            None => wrong.push(format!("{query}\n    theirs {theirs}\n    ours   {ours}")),
        }
    }
    (wrong, met)
}

fn judge(seed: u64, theirs: &QueryAnswers, ours: &QueryAnswers) -> Result<()> {
    let asked = |answers: &QueryAnswers| answers.iter().map(|(query, _)| query.clone()).collect::<Vec<_>>();
    ensure!(asked(theirs) == asked(ours), "the queries are others than those that were recorded");
    let (wrong, met) = compare(theirs, ours);
    let answered = theirs.iter().filter(|(_, answer)| !is_refused(answer)).count();
    let allowed: Vec<_> =
        ALLOWED.iter().zip(met).map(|((reason, _), times)| format!("{reason}: {times}")).collect();
    println!(
        "{} queries of lists, {} differ; {answered} are answered, seed {seed}; allowed: {allowed:?}",
        theirs.len(),
        wrong.len()
    );
    ensure!(answered * 3 > theirs.len(), "too few queries are valid");
    ensure!(wrong.is_empty(), "seed {seed}, {} answers differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_as_at_a_temporal_server() -> Result<()> {
    let everlog = Everlog::start().await?;
    let ours = everlog.connect().await?;
    let Ok(place) = std::env::var("EVERLOG_REFERENCE") else {
        return judge(RECORDED_SEED, &recorded::read()?, &play(&ours, RECORDED_SEED).await?);
    };
    let reference = Reference::start(&place).await?;
    let channel = reference.connect().await?;
    if std::env::var("EVERLOG_DIFFERENTIAL_RECORD").is_ok() {
        return recorded::write(&play(&channel, RECORDED_SEED).await?);
    }
    for seed in 0..LIVE_SEEDS {
        let (theirs, told) = tokio::join!(play(&channel, seed), play(&ours, seed));
        judge(seed, &theirs?, &told?)?;
    }
    Ok(())
}
