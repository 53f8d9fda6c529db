//! Identities and roles over HTTP: commands, topics, schemas.

use anyhow::ensure;
use everlog_tests::page;
use everlog_tests::server::Server;
use serde_json::{Value, json};

use crate::callers::{
    CALLERS, Caller, EXPIRED, NOBODY, OTHER, OTHER_WRITER, OWN, READER, ROOT, STRANGER, UNKNOWN, WORKER,
    WRITER, serve,
};

const OPEN: (&str, &str) = ("EVERLOG_INGRESS__NAMESPACES_OPEN", "*");

async fn ask(server: &Server, caller: Caller, what: &str, body: &str) -> anyhow::Result<u16> {
    let authorization = format!("Bearer {}", caller.key());
    let mut headers = vec![("Content-Type", "application/json")];
    if caller != NOBODY {
        headers.push(("Authorization", &authorization));
    }
    Ok(page::ask(server.http_address(), what, &headers, body).await?.0)
}

fn command(namespace: &str, kind: &str, value: &Value) -> String {
    let value = json!({"type": kind, kind: value});
    json!({"key": "order-1", "value": value, "headers": {"namespace": namespace}}).to_string()
}

fn start(namespace: &str) -> String {
    command(namespace, "start", &json!({"workflow_type": "Order", "task_queue": "orders"}))
}

#[tokio::test]
async fn a_command_needs_the_role_of_its_call_in_its_namespace() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (server, _channel) = serve(dir.path(), &[OPEN]).await?;
    for (caller, namespace, status) in [
        (NOBODY, OWN, 401),
        (STRANGER, OWN, 401),
        (EXPIRED, OWN, 401),
        (READER, OWN, 403),
        (WORKER, OWN, 403),
        (OTHER_WRITER, OWN, 403),
        (WRITER, OTHER, 403),
        // The same whether or not it exists.
        (WRITER, UNKNOWN, 403),
        (WRITER, OWN, 200),
        (ROOT, OTHER, 200),
        (ROOT, UNKNOWN, 422),
    ] {
        let told = ask(&server, caller, "POST /commands", &start(namespace)).await?;
        ensure!(told == status, "{} in {namespace}: {told}, not {status}", caller.name);
    }
    // What cannot be read is a rejection of a writer, and nothing of a worker.
    let value = json!({"type": "start", "start": {"workflow_type": "Order", "task_queue": "orders"}});
    let headers = json!({"namespace": OTHER, "deliver-at": "x"});
    let unreadable = json!({"key": "order-1", "value": value, "headers": headers}).to_string();
    ensure!(ask(&server, WORKER, "POST /commands", &unreadable).await? == 403);
    ensure!(ask(&server, ROOT, "POST /commands", &unreadable).await? == 422);
    let complete = command(OWN, "complete_activity", &json!({"activity_id": "1"}));
    for (caller, is_let_in) in [(READER, false), (OTHER_WRITER, false), (WORKER, true), (WRITER, true)] {
        let told = ask(&server, caller, "POST /commands", &complete).await?;
        ensure!((told != 403) == is_let_in, "{}: {told}", caller.name);
    }
    Ok(())
}

#[tokio::test]
async fn topics_are_read_by_readers_of_the_cluster_and_schemas_by_all_who_are_known() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (server, _channel) = serve(dir.path(), &[]).await?;
    let schema = json!({"schema": "\"string\""}).to_string();
    for caller in CALLERS {
        let is_known = ![NOBODY, STRANGER, EXPIRED].contains(&caller);
        let is_system = caller.place == "temporal-system";
        let reads_all = is_system && caller.role != "worker";
        for (what, body, is_let_in) in [
            ("GET /events", "", reads_all),
            ("GET /replies", "", reads_all),
            ("GET /rejections", "", reads_all),
            ("GET /subjects", "", is_known),
            ("GET /config", "", is_known),
            ("POST /subjects/own-value", schema.as_str(), is_known),
            ("POST /subjects/own-value/versions", schema.as_str(), caller == ROOT),
            ("DELETE /subjects/own-value", "", caller == ROOT),
            ("POST /apis/registry/v2/groups/default/artifacts", schema.as_str(), caller == ROOT),
            ("POST /subjects/own-value/versions/", schema.as_str(), caller == ROOT),
            ("PUT /config", r#"{"compatibility": "FULL"}"#, caller == ROOT),
        ] {
            let told = ask(&server, caller, what, body).await?;
            let expected = match (is_let_in, is_known) {
                (true, _) => told != 401 && told != 403,
                (false, true) => told == 403,
                (false, false) => told == 401,
            };
            ensure!(expected, "{what} by {}: {told}", caller.name);
        }
    }
    // As clients of schema registries send it.
    let basic = "Basic cm9vdDo=";
    let (told, _) =
        page::ask(server.http_address(), "GET /subjects", &[("Authorization", basic)], "").await?;
    ensure!(told == 401, "an empty password: {told}");
    let (health, _) = page::get(server.metrics_address(), "/health/ready").await?;
    let (metrics, _) = page::get(server.metrics_address(), "/metrics").await?;
    ensure!((health, metrics) != (401, 401) && metrics == 200, "{health}, {metrics}");
    Ok(())
}
