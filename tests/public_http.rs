//! The public HTTP address of a node without Kafka: commands are sent, topics are read, and schemas come from a
//! registry.

use anyhow::{Context, ensure};
use everlog_avro::event::WorkflowEvent;
use everlog_avro::outcome::Outcome;
use everlog_avro::rejection::Rejection;
use everlog_avro::{PublicTopic, Writer, frame};
use everlog_temporal_api::enums::IndexedValueType;
use everlog_temporal_api::full::temporal::api::common::v1::SearchAttributes;
use everlog_temporal_api::operatorservice::AddSearchAttributesRequest;
use everlog_temporal_api::workflowservice::{
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
};
use everlog_tests::caller::{Caller, execution};
use everlog_tests::server::{Server, free_address};
use everlog_tests::{page, patience};
use prost::Message;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Sends a command that asks for a reply, and gives the status and what is told.
async fn command(server: &Server, key: &str, value: &Value) -> anyhow::Result<(u16, Value)> {
    let headers = json!({"reply-topic": "everlog.replies", "correlation-id": format!("call {key}")});
    let body = json!({"key": key, "value": value, "headers": headers}).to_string();
    let (status, told) = page::ask(server.http_address(), "POST /commands", &[JSON], &body).await?;
    Ok((status, serde_json::from_str(&told).with_context(|| told.clone())?))
}

fn start() -> Value {
    json!({"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders", "input": [{"total": 12}]}})
}

/// All entries of a topic, of all partitions: their values.
async fn entries(server: &Server, topic: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let (mut values, mut partition, mut offset) = (Vec::new(), 0, 0);
    loop {
        let path = format!("/{topic}?partition={partition}&offset={offset}&max=2");
        let (status, body) = page::get(server.http_address(), &path).await?;
        ensure!(status == 200, "{path}: {status}: {body}");
        let told: Value = serde_json::from_str(&body)?;
        let records = told["records"].as_array().context("a list")?;
        for (record, expected) in records.iter().zip(offset..) {
            ensure!(record["offset"] == expected, "{path}: {told}");
            let value = record["value_base64"].as_str().context("a text")?;
            values.push(decoded(value)?);
        }
        offset = told["next"].as_u64().context("a number")?;
        if told["end"] == told["next"] {
            (partition, offset) = (partition + 1, 0);
        }
        if told["partitions"] == partition {
            return Ok(values);
        }
    }
}

fn decoded(text: &str) -> anyhow::Result<Vec<u8>> {
    let blob: everlog_avro::blob::Blob = serde_json::from_value(json!(text))?;
    Ok(blob.0.to_vec())
}

/// All entries of a topic, once there are so many.
async fn until(server: &Server, topic: &str, count: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        let found = entries(server, topic).await?;
        if found.len() >= count {
            return Ok(found);
        }
        ensure!(!deadline.is_over(), "{topic}: {} of {count} entries came", found.len());
    }
}

async fn schema_id(server: &Server, noun: PublicTopic) -> anyhow::Result<u64> {
    let path = format!("/subjects/everlog.{}-value/versions/latest", noun.topic());
    let (status, body) = page::get(server.http_address(), &path).await?;
    ensure!(status == 200, "{status}: {body}");
    serde_json::from_str::<Value>(&body)?["id"].as_u64().context("it has an id")
}

#[tokio::test]
async fn a_command_over_http_is_durable_when_it_is_answered_and_counts_once_whoever_is_killed()
-> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let mut places = Vec::new();
    for round in 0..3 {
        for number in 0..4 {
            let key = format!("order-{round}-{number}");
            let (status, told) = command(&server, &key, &start()).await?;
            ensure!(status == 200, "{status}: {told}");
            places.push((told["partition"].as_u64(), told["offset"].as_u64()));
        }
        server.crash().await?;
    }
    let (status, told) = command(&server, "order-0-0", &json!({"type": "dance"})).await?;
    ensure!(status == 422 && told["code"] == "command_unknown", "{status}: {told}");
    places.push((told["partition"].as_u64(), told["offset"].as_u64()));
    let mut different = places.clone();
    different.sort();
    different.dedup();
    ensure!(different.len() == places.len(), "two commands have one place: {places:?}");

    let outcomes = until(&server, "replies", 13).await?;
    ensure!(outcomes.len() == 13, "{} outcomes", outcomes.len());
    for bytes in &outcomes {
        let outcome = Outcome::read(&Writer::own(PublicTopic::Outcome), bytes)?;
        let place = (u64::try_from(outcome.partition).ok(), u64::try_from(outcome.offset).ok());
        ensure!(places.contains(&place), "{outcome:?}");
        let asked = format!("call {}", outcome.workflow_id.as_deref().unwrap_or_default());
        ensure!(outcome.correlation_id.as_ref().is_some_and(|id| id.0 == asked.as_bytes()), "{outcome:?}");
    }
    let rejections = until(&server, "rejections", 1).await?;
    let rejection = Rejection::read(&Writer::own(PublicTopic::Rejection), &rejections[0])?;
    ensure!((rejections.len(), rejection.code.as_ref()) == (1, "command_unknown"), "{rejection:?}");
    let events = until(&server, "events", 24).await?;
    ensure!(u64::from(frame(&events[0])?.schema_id) == schema_id(&server, PublicTopic::Event).await?);
    let events: Result<Vec<_>, _> =
        events.iter().map(|bytes| WorkflowEvent::read(&Writer::own(PublicTopic::Event), bytes)).collect();
    let events = events?;
    ensure!(events.iter().all(|event| event.namespace == "default"));
    let begun = events.iter().filter(|event| event.r#type == "WorkflowExecutionStarted").count();
    ensure!(begun == 12, "{begun} runs began");
    Ok(())
}

#[tokio::test]
async fn a_start_by_record_has_its_search_attributes_and_one_that_nobody_knows_is_refused()
-> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let caller = Caller(server.connect().await?);
    let registered = AddSearchAttributesRequest {
        search_attributes: [("Customer".to_owned(), IndexedValueType::Keyword.into())].into(),
        namespace: "default".into(),
    };
    caller.send(registered).await?;
    let with = |name: &str| {
        let mut command = start();
        command["start"]["search_attributes"] = json!({name: "jones"});
        command
    };
    let (status, told) = command(&server, "order-1", &with("Customer")).await?;
    ensure!(status == 200, "{status}: {told}");
    let (status, told) = command(&server, "order-2", &with("Nonsense")).await?;
    let unknown = "Namespace default has no mapping defined for search attribute Nonsense";
    ensure!(
        status == 422 && told["code"] == "invalid_argument" && told["reason"] == unknown,
        "{status}: {told}"
    );
    let rejections = until(&server, "rejections", 1).await?;
    let rejection = Rejection::read(&Writer::own(PublicTopic::Rejection), &rejections[0])?;
    ensure!(rejection.reason == unknown, "{rejection:?}");

    let describe =
        |id: &str| DescribeWorkflowExecutionRequest { namespace: "default".into(), execution: execution(id) };
    let found = DescribeWorkflowExecutionResponse::decode(caller.send(describe("order-1")).await?)?;
    let info = found.workflow_execution_info.context("a description has it")?;
    let attributes = SearchAttributes::decode(info.search_attributes.context("it has some")?)?;
    let customer = attributes.indexed_fields.get("Customer").context("it is one of them")?;
    ensure!(customer.data == "\"jones\"" && customer.metadata["type"] == "Keyword", "{customer:?}");
    let missing = caller.send(describe("order-2")).await;
    ensure!(missing.as_ref().is_err_and(|status| status.code() == Code::NotFound), "{missing:?}");
    Ok(())
}

#[tokio::test]
async fn what_a_page_in_a_browser_may_send_commands_nothing() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[("EVERLOG_INGRESS__RECORD_BYTES_MAX", "1024")]).await?;
    let body = json!({"key": "order-1", "value": start()}).to_string();
    let large = json!({"key": "order-1", "value_base64": "A".repeat(70_000)}).to_string();
    let origin = ("Origin", "http://shop.example");
    for (expected, headers, body) in [
        (403, &[JSON, origin][..], &body),
        (403, &[JSON, ("Host", "shop.example:7234")], &body),
        (415, &[("Content-Type", "text/plain")], &body),
        (415, &[], &body),
        (400, &[JSON], &"{}".to_owned()),
        (413, &[JSON], &large),
    ] {
        let (status, told) = page::ask(server.http_address(), "POST /commands", headers, body).await?;
        ensure!(status == expected, "{headers:?}: {status}: {told}");
    }
    let (status, _) = page::ask(server.http_address(), "GET /events", &[origin], "").await?;
    ensure!(status == 403, "{status}");
    for path in ["/events?partition=8", "/events?offset=1", "/events?max=1001", "/events?from=1"] {
        let (status, told) = page::get(server.http_address(), path).await?;
        ensure!(status == 400, "{path}: {status}: {told}");
    }
    ensure!(entries(&server, "events").await?.is_empty() && entries(&server, "rejections").await?.is_empty());
    let (status, _) = page::ask(server.http_address(), "POST /commands", &[JSON], &body).await?;
    ensure!(status == 200, "the same command is taken from anybody else");
    Ok(())
}

/// The status that is said to these lines, which are a request with a body of two bytes.
async fn said(server: &Server, lines: &[&str]) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(server.http_address()).await?;
    stream.write_all(format!("{}\r\nConnection: close\r\n\r\n{{}}", lines.join("\r\n")).as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer)?;
    Ok(answer.split(' ').nth(1).context("an answer has a status")?.to_owned())
}

#[tokio::test]
async fn a_browser_finds_links_at_the_root_and_a_client_of_the_registry_what_it_expects() -> anyhow::Result<()>
{
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let browser = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let (status, page) = page::ask(server.http_address(), "GET /", &[browser], "").await?;
    ensure!(status == 200 && page.contains("<a href=\"/events\">"), "{status}: {page}");
    for path in ["/subjects", "/schemas", "/config", "/events", "/replies", "/rejections"] {
        let (status, body) = page::ask(server.http_address(), &format!("GET {path}"), &[browser], "").await?;
        ensure!(status == 200 && page.contains(&format!("\"{path}\"")), "{path}: {status}: {body}");
    }
    let client = ("Accept", "application/vnd.schemaregistry.v1+json");
    let answer = page::ask(server.http_address(), "GET /", &[client], "").await?;
    ensure!(answer == (200, "{}".to_owned()), "{answer:?}");
    let other_site = ("Origin", "http://example.com");
    let (status, _) = page::ask(server.http_address(), "GET /", &[browser, other_site], "").await?;
    ensure!(status == 403, "{status}");
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_not_one_for_one_host_is_refused() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let many: Vec<_> = (0..200).map(|number| format!("X-{number}: 1")).collect();
    let many: Vec<_> =
        ["GET / HTTP/1.1", "Host: localhost"].into_iter().chain(many.iter().map(String::as_str)).collect();
    for (expected, lines) in [
        ("200", &["GET / HTTP/1.1", "Host: localhost"][..]),
        ("200", &["GET / HTTP/1.0"]),
        ("200", &["GET http://localhost/ HTTP/1.1", "Host: localhost"]),
        ("403", &["GET / HTTP/1.1", "Host: shop.example"]),
        ("403", &["GET / HTTP/1.0", "Host: shop.example"]),
        ("400", &["GET / HTTP/1.1"]),
        ("400", &["GET / HTTP/1.1", "Host:"]),
        ("400", &["GET / HTTP/1.1", "Host: localhost", "Host: localhost"]),
        ("400", &["GET / HTTP/1.1", "Host: localhost", "Host: shop.example"]),
        ("400", &["GET / HTTP/1.1", "Host: shop.example@localhost"]),
        ("400", &["GET / HTTP/1.1", "Host: localhost:80:80"]),
        ("400", &["GET http://shop.example/ HTTP/1.1", "Host: localhost"]),
        // What follows is not ours to refuse, and has to stay refused.
        ("400", &["GET / HTTP/1.1", "Host: localhost", " shop.example"]),
        ("400", &["GET / HTTP/1.1", "Host : localhost"]),
        ("400", &["POST /subjects/s HTTP/1.1", "Host: localhost", "Content-Length: 2", "Content-Length: 3"]),
        ("400", &["POST /subjects/s HTTP/1.1", "Host: localhost", "Content-Length: +2"]),
        ("400", &["POST /subjects/s HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked, identity"]),
        ("431", &many),
    ] {
        let status = said(&server, lines).await?;
        ensure!(status == expected, "{lines:?}: {status}, not {expected}");
    }
    Ok(())
}

#[tokio::test]
async fn requests_that_never_end_leave_room_for_others_and_are_let_go() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    // Room for seventeen requests of as many bytes as a schema may have.
    let bounds = [("EVERLOG_HTTP__BYTES_MAX", "41943040"), ("EVERLOG_HTTP__REQUEST_TIMEOUT_MS", "2000")];
    let server = Server::start(dir.path(), &bounds).await?;
    let address = server.http_address();
    let head =
        format!("POST /subjects/s/versions HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2097152\r\n\r\n");
    let mut endless = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        endless.push(stream);
    }
    let (status, _) = page::get(address, "/subjects").await?;
    ensure!(status == 200, "{status}");
    let mut told = Vec::new();
    for mut stream in endless {
        let mut answer = Vec::new();
        patience::answer("the end", stream.read_to_end(&mut answer)).await??;
        told.push(String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned());
    }
    for status in ["503", "504"] {
        ensure!(told.iter().any(|told| told == status), "{status} is missing: {told:?}");
    }
    let command = json!({"key": "order-1", "value": start()}).to_string();
    let (status, told) = page::ask(address, "POST /commands", &[JSON], &command).await?;
    ensure!(status == 200, "{status}: {told}");
    Ok(())
}

#[tokio::test]
async fn a_node_waits_for_its_registry_says_so_and_goes_on_without_it() -> anyhow::Result<()> {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let registry_address = free_address()?;
    let url = format!("http://{registry_address}");
    let mut server = Server::begin(one.path(), &[("EVERLOG_REGISTRY__URL", &url)], free_address()?)?;
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        ensure!(!deadline.is_over(), "it does not say what it waits for");
        let Ok((status, page)) = page::get(server.metrics_address(), "/health/ready").await else { continue };
        if status == 503 && page.contains("the schema registry at") && page.contains(&url) {
            break;
        }
    }
    let mut registry = Server::begin(other.path(), &[], registry_address)?;
    registry.ready().await?;
    server.ready().await?;
    let id = schema_id(&registry, PublicTopic::Event).await?;
    let (status, told) = page::get(server.http_address(), "/subjects").await?;
    ensure!(status == 404 && told.contains(&url), "{status}: {told}");
    registry.stop()?;
    let (status, told) = command(&server, "order-1", &start()).await?;
    ensure!(status == 200, "{status}: {told}");
    let events = until(&server, "events", 2).await?;
    ensure!(u64::from(frame(&events[0])?.schema_id) == id);
    let (status, page) = page::get(server.metrics_address(), "/health/ready").await?;
    ensure!(status == 200, "{page}");
    Ok(())
}

#[tokio::test]
async fn entries_of_public_topics_are_forgotten_when_they_are_old() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[("EVERLOG_LOG__PUBLIC_RETENTION_MS", "1000")]).await?;
    command(&server, "order-1", &start()).await?;
    let (deadline, mut looks) = (patience::deadline(), patience::looks());
    loop {
        looks.tick().await;
        ensure!(!deadline.is_over(), "they are still there");
        let mut trimmed = false;
        for partition in 0..8 {
            let path = format!("/events?max=0&partition={partition}");
            let told: Value = serde_json::from_str(&page::get(server.http_address(), &path).await?.1)?;
            trimmed |= told["start"].as_u64() >= Some(2);
        }
        if trimmed {
            return Ok(());
        }
    }
}
