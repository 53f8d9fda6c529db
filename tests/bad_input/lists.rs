//! Rows about lists and counts: queries that are refused, and page tokens that belong to another list.

use bytes::Bytes;
use everlog_temporal_api::enums::IndexedValueType as Type;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, SearchAttributes};
use everlog_temporal_api::operatorservice::{AddSearchAttributesRequest, AddSearchAttributesResponse};
use everlog_temporal_api::temporal::api::filter::v1::{StartTimeFilter, StatusFilter};
use everlog_temporal_api::workflowservice::list_closed_workflow_executions_request::Filters as ClosedFilters;
use everlog_temporal_api::workflowservice::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, ListArchivedWorkflowExecutionsRequest,
    ListClosedWorkflowExecutionsRequest, ListOpenWorkflowExecutionsRequest, ListWorkflowExecutionsRequest,
    ListWorkflowExecutionsResponse, ScanWorkflowExecutionsRequest, StartWorkflowExecutionResponse,
};
use everlog_tests::patience;
use futures::StreamExt;
use prost::Message;
use prost_types::Timestamp;
use tonic::{Code, Request};

use crate::row::{Action, Observation, Row, invalid, refused, row, story, taken};
use crate::world::{World, observation, path_of, request};

/// Groups of a count, at most.
const GROUPS_MAX: usize = 1_000;
const TOKEN_TEXT: &str = "the page token";
const SIGNED: &str = "a token belongs to its query, namespace and log; there it is taken for any";

/// Custom attributes of the world's namespace, one of each type.
const CUSTOM: [(&str, Type); 7] = [
    ("SeekKeyword", Type::Keyword),
    ("SeekList", Type::KeywordList),
    ("SeekText", Type::Text),
    ("SeekInt", Type::Int),
    ("SeekDouble", Type::Double),
    ("SeekBool", Type::Bool),
    ("SeekTime", Type::Datetime),
];

#[rustfmt::skip]
pub fn rows() -> Vec<Row> {
    let mut rows: Vec<_> = QUERIES.iter().map(|(query, text)| row(81, query, list(query), invalid(text))).collect();
    rows.extend(COUNTS.iter().map(|(query, text)| row(81, query, count(query), invalid(text))));
    rows.extend([
        row(81, "a query that Scan refuses too", request(|world| ScanWorkflowExecutionsRequest {
            namespace: world.namespace.clone(), query: "Nonsense = 1".into(), ..Default::default()
        }), invalid("invalid query: invalid expression: column name 'Nonsense' is not a valid search attribute")),
        row(82, "a query of 64 KiB: one long text", made(|| format!("SeekKeyword = '{}'", "x".repeat(64 << 10))), taken("")),
        row(82, "a query of 64 KiB: many tests", made(|| vec!["SeekInt = 1"; 4_400].join(" OR ")), taken("")),
        row(82, "a query of more tests than may be", made(|| vec!["SeekInt = 1"; 5_001].join(" OR ")),
            invalid("invalid query: a filter has more than 5000 tests").unlike("there the number has no limit")),
        row(82, "a query of 64 KiB: signs without an end", made(|| "'\\".repeat(32 << 10)),
            invalid("invalid query: malformed SQL query: syntax error")),
        row(82, "a query of 64 KiB: a comment without an end", made(|| format!("/*{}", "*".repeat(64 << 10))),
            invalid("invalid query: malformed SQL query: syntax error")),
        row(82, "10,000 brackets", made(|| format!("{}SeekInt = 1{}", "(".repeat(10_000), ")".repeat(10_000))),
            invalid("invalid query: malformed SQL query: max nesting level reached at position ")),
        row(82, "10,000 functions in each other", made(|| format!("SeekInt = {}", "f(".repeat(10_000))),
            invalid("invalid query: malformed SQL query: max nesting level reached at position ")),
        row(82, "10,000 times NOT", made(|| format!("{}SeekInt = 1", "NOT ".repeat(10_000))), taken("")),
        row(82, "a query that is not UTF-8", raw(b"\xff\xfe = 1"), refused(Code::Internal, "")),
        row(82, "a query with a byte of 0, which is passed over", list("SeekKeyword\0 = 'x'"), taken("")),
        row(82, "a query with two of them", list("SeekKeyword\0\0 = 'x'"),
            invalid("invalid query: malformed SQL query: syntax error")),
        row(83, "a page token that is garbage", story(garbage), invalid(TOKEN_TEXT).unlike(SIGNED)),
        row(83, "a page token that is empty but for its format", token(b"\x08\x01"), invalid(TOKEN_TEXT).unlike(SIGNED)),
        row(83, "a page token of 1 MiB", story(long_token), invalid(TOKEN_TEXT).unlike(SIGNED)),
        row(83, "a page token cut short, at any place", story(cut), invalid(TOKEN_TEXT).unlike(SIGNED)),
        row(83, "a page token with a byte changed, at any place: its answer or a refusal", story(changed),
            invalid(TOKEN_TEXT).unlike(SIGNED)),
        row(83, "a page token of another query", story(of_another_query),
            invalid("the page token belongs to another query").unlike(SIGNED)),
        row(83, "a page token of another order", story(of_another_order),
            invalid("the page token belongs to another query").unlike(SIGNED)),
        row(83, "a page token of another namespace", story(of_another_namespace),
            invalid("the page token belongs to another query").unlike(SIGNED)),
        row(83, "a page token of another log", story(of_another_log),
            invalid("the page token belongs to an earlier log: begin the list anew").unlike(SIGNED)),
        row(84, "more than 1,000 groups of a count", story(crowded_groups),
            invalid("invalid query: the count has more than 1000 groups").leaves("1001 runs, 1001 listed")
                .unlike("there only ExecutionStatus is grouped by")),
        row(85, "ListOpen from a later to an earlier time", request(|world| ListOpenWorkflowExecutionsRequest {
            namespace: world.namespace.clone(), start_time_filter: Some(backwards()), ..Default::default()
        }), invalid("EarliestTime in StartTimeFilter should not be larger than LatestTime.")),
        row(85, "ListClosed from a later to an earlier time", closed(backwards(), None),
            invalid("EarliestTime in StartTimeFilter should not be larger than LatestTime.")),
        row(85, "ListClosed of runs that run", closed(StartTimeFilter::default(), Some(1)),
            invalid("StatusFilter must be specified and must be not Running.")),
        row(85, "ListClosed of no status", closed(StartTimeFilter::default(), Some(0)),
            invalid("StatusFilter must be specified and must be not Running.")),
        row(85, "ListArchived without archival", request(|world| ListArchivedWorkflowExecutionsRequest {
            namespace: world.namespace.clone(), ..Default::default()
        }), invalid("Cluster is not configured for visibility archival.")),
        row(85, "a list of a namespace that nobody knows", request(|_| ListWorkflowExecutionsRequest {
            namespace: "unknown".into(), ..Default::default()
        }), refused(Code::NotFound, "Namespace unknown is not found.").with("NamespaceNotFoundFailure")),
        row(85, "a count of a namespace that nobody knows", request(|_| CountWorkflowExecutionsRequest {
            namespace: "unknown".into(), ..Default::default()
        }), refused(Code::NotFound, "Namespace unknown is not found.").with("NamespaceNotFoundFailure")),
        row(85, "a page of -1 runs", sized(-1), taken("")),
        row(85, "a page of 2,147,483,647 runs", sized(i32::MAX), taken("")),
    ]);
    rows
}

/// Every refusal of a query by its text.
#[rustfmt::skip]
const QUERIES: &[(&str, &str)] = &[
    ("SeekKeyword =", "invalid query: malformed SQL query: syntax error at position 41"),
    ("SeekKeyword == 'a'", "invalid query: malformed SQL query: syntax error at position 42"),
    ("SeekInt = 1 SeekInt", "invalid query: malformed SQL query: syntax error at position 47 near 'SeekInt'"),
    ("SeekKeyword IN ()", "invalid query: malformed SQL query: syntax error at position 45"),
    ("Nonsense IS NULL", "invalid query: invalid expression: column name 'Nonsense' is not a valid search attribute"),
    ("upper(SeekKeyword) = 'A'", "invalid query: invalid expression: must be a column name but was *sqlparser.FuncExpr"),
    ("1 = 1", "invalid query: invalid expression: must be a column name but was *sqlparser.SQLVal"),
    ("SeekKeyword", "invalid query: invalid expression: incomplete expression"),
    ("upper(SeekKeyword)", "invalid query: operation is not supported: function expression"),
    ("5", "invalid query: operation is not supported: expression of type *sqlparser.SQLVal"),
    ("SeekInt + 1", "invalid query: operation is not supported: expression of type *sqlparser.BinaryExpr"),
    ("!SeekInt", "invalid query: operation is not supported: expression of type *sqlparser.UnaryExpr"),
    ("exists (select 1)", "invalid query: operation is not supported: expression of type *sqlparser.ExistsExpr"),
    ("SeekKeyword LIKE 'a%'", "invalid query: invalid expression: invalid operator 'like' in `SeekKeyword like 'a%'`"),
    ("SeekKeyword REGEXP 'a'", "invalid query: invalid expression: invalid operator 'regexp' in `SeekKeyword regexp 'a'`"),
    ("SeekKeyword <=> 'a'", "invalid query: invalid expression: invalid operator '<=>' in `SeekKeyword <=> 'a'`"),
    ("SeekList > 'a'", "invalid query: invalid expression: operator '>' not supported for KeywordList type search attribute in `SeekList > 'a'`"),
    ("SeekText IN ('a')", "invalid query: invalid expression: operator 'in' not supported for Text type search attribute in `SeekText in ('a')`"),
    ("SeekKeyword STARTS_WITH 5", "invalid query: invalid expression: right-hand side of 'starts_with' must be a literal string (got: 5)"),
    ("SeekBool BETWEEN false AND true", "invalid query: invalid expression: cannot do range condition on search attribute 'SeekBool' of type Bool"),
    ("SeekText BETWEEN 'a' AND 'b'", "invalid query: invalid expression: cannot do range condition on search attribute 'SeekText' of type Text"),
    ("SeekList BETWEEN 'a' AND 'b'", "invalid query: invalid expression: cannot do range condition on search attribute 'SeekList' of type KeywordList"),
    ("SeekBool IS TRUE", "invalid query: invalid expression: 'IS' operator can only be used with 'NULL' or 'NOT NULL'"),
    ("SeekKeyword = red", "invalid query: operation is not supported: column name on the right side of comparison expression (did you forget to quote 'red'?)"),
    ("SeekKeyword = upper('a')", "invalid query: operation is not supported: nested func"),
    ("SeekKeyword = group_concat(a)", "invalid query: operation is not supported: 'group_concat'"),
    ("SeekInt = NULL", "invalid query: invalid expression: unexpected value type *sqlparser.NullVal"),
    ("SeekDouble = -1.5", "invalid query: invalid expression: unexpected value type *sqlparser.UnaryExpr"),
    ("SeekInt = 0x1F", "invalid expression: unable to parse 0x1F"),
    ("SeekInt = :x", "invalid expression: unable to parse :x"),
    ("SeekTime = '2026-01-01'", "invalid query: invalid expression: unable to parse datetime '2026-01-01'"),
    ("SeekTime = 1.5", "invalid query: invalid expression: unexpected value type float64 for search attribute SeekTime"),
    ("ExecutionStatus = 'running'", "invalid query: invalid expression: invalid ExecutionStatus value 'running'"),
    ("ExecutionDuration = '1y'", "invalid query: invalid value for search attribute ExecutionDuration: 1y (invalid duration"),
    ("SeekText = ' '", "invalid query: invalid expression: unexpected value for Text type search attribute (no tokens found in ' ')"),
    ("SeekList = 5", "invalid query: invalid expression: unexpected value type (expected string, got 5)"),
    ("SeekList IN ('a', 5)", "invalid query: invalid expression: unexpected value type in tuple (expected string, got 5)"),
    ("ORDER BY SeekInt", "invalid query: operation is not supported: 'order by' clause"),
    ("SeekInt = 1 LIMIT 1", "invalid query: operation is not supported: 'limit' clause"),
    ("GROUP BY ExecutionStatus", "invalid query: operation is not supported: 'group by' clause"),
];

/// And of counts.
#[rustfmt::skip]
const COUNTS: &[(&str, &str)] = &[
    ("Nonsense = 1 GROUP BY ExecutionStatus", "invalid query: invalid expression: column name 'Nonsense' is not a valid search attribute"),
    ("ORDER BY StartTime", "invalid query: operation is not supported: 'order by' clause"),
    ("SeekInt = 1 LIMIT 1", "invalid query: operation is not supported: 'limit' clause"),
    ("GROUP BY ExecutionStatus, WorkflowType", "invalid query: operation is not supported: 'group by' clause supports only a single field"),
    ("GROUP BY SeekInt", "invalid query: operation is not supported: 'group by' clause is only supported for ExecutionStatus search attribute"),
];

/// Registers the custom attributes, and waits until queries know them.
pub async fn prepare(world: &World) -> anyhow::Result<()> {
    for namespace in [&world.namespace, &world.other_namespace] {
        let search_attributes = CUSTOM.map(|(name, kind)| (name.to_owned(), kind.into())).into();
        let request = AddSearchAttributesRequest { namespace: namespace.clone(), search_attributes };
        world.answer::<AddSearchAttributesResponse>(request).await?;
        let query = CUSTOM.map(|(name, _)| format!("{name} IS NULL")).join(" AND ");
        let (deadline, mut looks) = (patience::deadline(), patience::looks());
        while world.send(question(namespace, &query, 1, Bytes::new())).await.is_err() {
            anyhow::ensure!(!deadline.is_over(), "custom attributes of {namespace} are not known");
            looks.tick().await;
        }
    }
    Ok(())
}

fn question(
    namespace: &str,
    query: &str,
    page_size: i32,
    next_page_token: Bytes,
) -> ListWorkflowExecutionsRequest {
    ListWorkflowExecutionsRequest {
        namespace: namespace.into(),
        page_size,
        next_page_token,
        query: query.into(),
    }
}

fn list(query: &'static str) -> Action {
    request(move |world| question(&world.namespace, query, 10, Bytes::new()))
}

fn made(query: fn() -> String) -> Action {
    request(move |world| question(&world.namespace, &query(), 10, Bytes::new()))
}

fn sized(page_size: i32) -> Action {
    request(move |world| question(&world.namespace, "", page_size, Bytes::new()))
}

fn token(token: &'static [u8]) -> Action {
    request(move |world| question(&world.namespace, "", 1, Bytes::from_static(token)))
}

fn count(query: &'static str) -> Action {
    request(move |world| CountWorkflowExecutionsRequest {
        namespace: world.namespace.clone(),
        query: query.into(),
    })
}

fn backwards() -> StartTimeFilter {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    StartTimeFilter { earliest_time: at(2), latest_time: at(1) }
}

fn closed(times: StartTimeFilter, status: Option<i32>) -> Action {
    request(move |world| ListClosedWorkflowExecutionsRequest {
        namespace: world.namespace.clone(),
        start_time_filter: Some(times),
        filters: status.map(|status| ClosedFilters::StatusFilter(StatusFilter { status })),
        ..ListClosedWorkflowExecutionsRequest::default()
    })
}

/// A request whose query is these bytes, whatever they are.
fn raw(query: &'static [u8]) -> Action {
    Box::new(move |world| {
        Box::pin(async move {
            let mut bytes = question(&world.namespace, "", 10, Bytes::new()).encode_to_vec();
            prost::encoding::bytes::encode(4, &query.to_vec(), &mut bytes);
            let path = path_of::<ListWorkflowExecutionsRequest>();
            Ok(observation(world.call(&path, Request::new(bytes.into())).await))
        })
    })
}

/// The token of a first page of one run; the world has two.
async fn true_token(world: &World) -> anyhow::Result<Bytes> {
    let page: ListWorkflowExecutionsResponse =
        world.answer(question(&world.namespace, "", 1, Bytes::new())).await?;
    anyhow::ensure!(page.executions.len() == 1 && !page.next_page_token.is_empty(), "{page:?}");
    Ok(page.next_page_token)
}

/// The first answer that is neither a page nor a refusal as bad input; else the last refusal.
async fn worst(world: &World, tokens: impl Iterator<Item = Vec<u8>>) -> Observation {
    let mut worst = Observation::default();
    for token in tokens {
        let answer = world.send(question(&world.namespace, "", 1, token.into())).await;
        let observation = observation(answer);
        match observation.code {
            Some(Code::Ok) => {}
            Some(Code::InvalidArgument) => worst = observation,
            _other => return observation,
        }
    }
    worst
}

async fn garbage(world: World) -> anyhow::Result<Observation> {
    let tokens = [&b"garbage"[..], b"\xff\xff\xff", b"{\"CloseTime\":1}", &[0; 64]];
    Ok(worst(&world, tokens.into_iter().map(<[u8]>::to_vec)).await)
}

async fn long_token(world: World) -> anyhow::Result<Observation> {
    Ok(worst(&world, std::iter::once(vec![8; 1 << 20])).await)
}

async fn cut(world: World) -> anyhow::Result<Observation> {
    let token = true_token(&world).await?;
    // Nothing at all is the first page.
    for length in 1..token.len() {
        let answer = world.send(question(&world.namespace, "", 1, token.slice(..length))).await;
        let observation = observation(answer);
        if observation.code != Some(Code::InvalidArgument) {
            return Ok(Observation { left: format!("cut to {length} bytes"), ..observation });
        }
    }
    Ok(worst(&world, std::iter::once(token[..token.len() - 1].to_vec())).await)
}

async fn changed(world: World) -> anyhow::Result<Observation> {
    let token = true_token(&world).await?;
    let changed = (0..token.len()).flat_map(|at| {
        let token = &token;
        [0x01, 0x40, 0x80].map(move |bit| {
            let mut token = token.to_vec();
            token[at] ^= bit;
            token
        })
    });
    Ok(worst(&world, changed).await)
}

async fn of_another_query(world: World) -> anyhow::Result<Observation> {
    let token = true_token(&world).await?;
    Ok(observation(world.send(question(&world.namespace, "WorkflowType = 'Order'", 1, token)).await))
}

async fn of_another_order(world: World) -> anyhow::Result<Observation> {
    let token = true_token(&world).await?;
    Ok(observation(world.send(question(&world.namespace, "ORDER BY StartTime", 1, token)).await))
}

async fn of_another_namespace(world: World) -> anyhow::Result<Observation> {
    let token = true_token(&world).await?;
    Ok(observation(world.send(question(&world.other_namespace, "", 1, token)).await))
}

/// The part of a page token that says of which log it is.
#[derive(Clone, PartialEq, Message)]
struct ListTokenParts {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(bytes = "vec", tag = "2")]
    query: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    log: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    after: Vec<u8>,
    #[prost(uint64, repeated, tag = "5")]
    offsets: Vec<u64>,
    #[prost(int64, tag = "6")]
    latest_ms: i64,
    #[prost(uint64, repeated, tag = "7")]
    earlier_ms: Vec<u64>,
}

async fn of_another_log(world: World) -> anyhow::Result<Observation> {
    let mut token = ListTokenParts::decode(true_token(&world).await?)?;
    anyhow::ensure!(token.log.len() == 16, "a log is known by a UUID: {token:?}");
    token.log[0] ^= 1;
    Ok(observation(world.send(question(&world.namespace, "", 1, token.encode_to_vec().into())).await))
}

/// One run too many, each with a keyword of its own; what was refused is then counted and listed otherwise.
async fn crowded_groups(world: World) -> anyhow::Result<Observation> {
    let crowd = world.fresh("crowd");
    let starts = (0..=GROUPS_MAX).map(|number| {
        let mut start = world.start_of(&format!("{crowd}-{number}"));
        start.namespace.clone_from(&world.other_namespace);
        let metadata = [("encoding".to_owned(), Bytes::from_static(b"json/plain"))].into();
        let data = format!("\"{crowd}-{number}\"").into();
        let keyword = Payload { metadata, data, ..Payload::default() };
        let indexed_fields = [("SeekKeyword".to_owned(), keyword)].into();
        start.search_attributes = Some(SearchAttributes { indexed_fields }.encode_to_vec().into());
        world.answer::<StartWorkflowExecutionResponse>(start)
    });
    let begun: Vec<_> = futures::stream::iter(starts).buffer_unordered(64).collect().await;
    begun.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let namespace = world.other_namespace.clone();
    let count = |query: String| CountWorkflowExecutionsRequest { namespace: namespace.clone(), query };
    let all = format!("SeekKeyword STARTS_WITH '{crowd}-'");
    let refused = observation(world.send(count(format!("{all} GROUP BY SeekKeyword"))).await);
    let counted: CountWorkflowExecutionsResponse = world.answer(count(all.clone())).await?;
    let (mut listed, mut token) = (0, Bytes::new());
    loop {
        let page =
            world.answer::<ListWorkflowExecutionsResponse>(question(&namespace, &all, 1_000, token)).await?;
        listed += page.executions.len();
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    Ok(Observation { left: format!("{} runs, {listed} listed", counted.count), ..refused })
}
