//! Ways around: tokens of another namespace, inner requests, forged metadata, malformed headers, and secrets in what is shown.

use anyhow::{Context, ensure};
use bytes::Bytes;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::Operation;
use everlog_temporal_api::workflowservice::execute_multi_operation_request::operation::Operation as Kind;
use everlog_temporal_api::workflowservice::*;
use everlog_tests::server::LOG;
use everlog_tests::{page, raw};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::callers::{
    CALLERS, Caller, OTHER, OTHER_WRITER, OWN, READER, ROOT, STRANGER, WORKER, WRITER, is_denied, serve,
};
use crate::targets::{start, take};

const SERVICE: &str = "/temporal.api.workflowservice.v1.WorkflowService";

#[tokio::test]
async fn a_task_token_opens_no_other_namespace() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    WRITER.send(&channel, start(OWN, "w")).await?;
    let token = take(WORKER, &channel, OWN).await?.task_token;
    macro_rules! answers {
        ($caller:expr, $namespace:expr) => {{
            let (task_token, namespace) = (token.clone(), String::from($namespace));
            let mut answers = Vec::new();
            answers!(@of $caller, task_token, namespace, answers, [
                RespondWorkflowTaskCompletedRequest, RespondWorkflowTaskFailedRequest, RespondQueryTaskCompletedRequest,
                RespondActivityTaskCompletedRequest, RespondActivityTaskFailedRequest, RespondActivityTaskCanceledRequest,
                RecordActivityTaskHeartbeatRequest,
            ]);
            answers
        }};
        (@of $caller:expr, $token:ident, $namespace:ident, $answers:ident, [$($request:ident,)*]) => {$(
            let request = $request {
                task_token: $token.clone(),
                namespace: $namespace.clone(),
                ..Default::default()
            };
            $answers.push((stringify!($request), $caller.send(&channel, request).await));
        )*};
    }
    for (name, answer) in answers!(OTHER_WRITER, "") {
        ensure!(is_denied(&answer), "{name} without a namespace: {answer:?}");
    }
    for (name, answer) in answers!(OTHER_WRITER, OWN) {
        ensure!(is_denied(&answer), "{name} in the token's namespace: {answer:?}");
    }
    for (name, answer) in answers!(OTHER_WRITER, OTHER) {
        let told = answer.err().context(name)?;
        ensure!(told.code() == Code::InvalidArgument, "{name} in its own: {told:?}");
        ensure!(told.message() == "Operation requested with a token from a different namespace.", "{told:?}");
    }
    // A token that nobody made says nothing of a namespace.
    let request = RespondWorkflowTaskCompletedRequest { task_token: "made up".into(), ..Default::default() };
    ensure!(is_denied(&OTHER_WRITER.send(&channel, request).await));
    let request = RespondWorkflowTaskCompletedRequest { task_token: token.clone(), ..Default::default() };
    WORKER.send(&channel, request).await.context("the task is still its worker's")?;
    Ok(())
}

#[tokio::test]
async fn the_operations_of_a_call_stay_in_its_namespace() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    let operation = |kind| Operation { operation: Some(kind) };
    for (first, second) in [(OTHER, OWN), (OWN, OTHER), (OTHER, OTHER)] {
        let update = UpdateWorkflowExecutionRequest { namespace: second.into(), ..Default::default() };
        let request = ExecuteMultiOperationRequest {
            namespace: OWN.into(),
            operations: vec![
                operation(Kind::StartWorkflow(start(first, "inner"))),
                operation(Kind::UpdateWorkflow(update)),
            ],
            ..Default::default()
        };
        let told = WRITER.send(&channel, request).await.err().context("it is refused")?;
        ensure!(told.code() == Code::InvalidArgument, "{told:?}");
    }
    let request = CountWorkflowExecutionsRequest { namespace: OTHER.into(), ..Default::default() };
    let counted = OTHER_WRITER.send(&channel, request).await?;
    ensure!(counted.is_empty(), "nothing runs there: {counted:?}");
    Ok(())
}

/// A call with these headers beside the caller's own.
async fn with_headers(
    caller: Caller,
    channel: &Channel,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<Bytes, Status> {
    let mut request = Request::new(Bytes::new());
    let metadata: &mut MetadataMap = request.metadata_mut();
    if let Some(authorization) = caller.authorization() {
        metadata.insert("authorization", authorization);
    }
    for (name, value) in headers {
        metadata.append(*name, value.parse().expect("it is ASCII"));
    }
    raw::call(channel, path, request).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn what_is_made_up_or_malformed_is_no_identity() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    let nobody = CALLERS[0];
    let list = format!("{SERVICE}/GetSearchAttributes");
    let forged = r#"{"kind":"server","name":"root","grants":{"system":15,"namespaces":{}}}"#.to_owned();
    let bearer = |scheme: &str, key: &str| ("authorization", format!("{scheme} {key}"));
    let key = ROOT.key();
    for (what, caller, headers) in [
        ("a principal of the nodes", nobody, vec![("everlog-principal", forged.clone())]),
        ("the same, of a reader", READER, vec![("everlog-principal", forged.clone())]),
        ("a namespace for routing", READER, vec![("temporal-namespace", "temporal-system".to_owned())]),
        ("a key without a scheme", nobody, vec![("authorization", key.clone())]),
        ("another scheme", nobody, vec![bearer("Basic", &key)]),
        ("two headers", nobody, vec![bearer("Bearer", &key), bearer("Bearer", &key)]),
        ("two keys in one", nobody, vec![bearer("Bearer", &format!("{key} {key}"))]),
        ("two keys with a comma", nobody, vec![bearer("Bearer", &format!("{key},{key}"))]),
        ("a part of a key", nobody, vec![bearer("Bearer", &key[..key.len() - 1])]),
        ("another case", nobody, vec![bearer("Bearer", &key.to_uppercase())]),
        ("20 KB", nobody, vec![bearer("Bearer", &"a".repeat(20_000))]),
        (
            "a token that is signed by nobody",
            nobody,
            vec![bearer("Bearer", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")],
        ),
    ] {
        let answer = with_headers(caller, &channel, &list, &headers).await;
        ensure!(is_denied(&answer), "{what}: {answer:?}");
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        with_headers(nobody, &channel, &list, &[bearer(scheme, &key)]).await.context(scheme)?;
    }
    // More than all headers may have: the call does not get as far as that.
    let answer = with_headers(nobody, &channel, &list, &[bearer("Bearer", &"a".repeat(1 << 20))]).await;
    ensure!(answer.is_err(), "{answer:?}");
    with_headers(ROOT, &channel, &list, &[]).await.context("the server goes on")?;
    Ok(())
}

/// SDKs connect by GetSystemInfo: a worker that starts while its issuer is away tries again, and does not give up.
#[tokio::test]
async fn without_the_keys_of_issuers_tokens_get_unavailable_and_clients_still_connect() -> anyhow::Result<()>
{
    let dir = tempfile::tempdir()?;
    let issuer = ("EVERLOG_AUTH__JWKS", "https://127.0.0.1:1/jwks");
    let (_server, channel) = serve(dir.path(), &[issuer]).await?;
    let nobody = CALLERS[0];
    // {"alg":"RS256","kid":"k"} and {"sub":"a","exp":9999999999}
    let token = "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ.AAAA";
    let headers = [("authorization", token.to_owned())];
    let listed = with_headers(nobody, &channel, &format!("{SERVICE}/ListNamespaces"), &headers).await;
    ensure!(listed.as_ref().is_err_and(|status| status.code() == Code::Unavailable), "{listed:?}");
    with_headers(nobody, &channel, &format!("{SERVICE}/GetSystemInfo"), &headers).await?;
    with_headers(nobody, &channel, "/grpc.health.v1.Health/Check", &headers).await?;
    ROOT.send(&channel, ListNamespacesRequest::default()).await.context("keys of its own are there")?;
    Ok(())
}

#[tokio::test]
async fn what_is_no_rpc_is_judged_as_well() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    let nobody = CALLERS[0];
    let check = "/grpc.health.v1.Health/Check";
    for caller in [nobody, STRANGER, READER] {
        caller.call(&channel, check, Bytes::new()).await.context(caller.name)?;
    }
    let watch = "/grpc.health.v1.Health/Watch";
    ensure!(is_denied(&nobody.call(&channel, watch, Bytes::new()).await));
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        for caller in [nobody, READER, WRITER] {
            ensure!(
                is_denied(&caller.call(&channel, &path, Bytes::new()).await),
                "{path} by {}",
                caller.name
            );
        }
        ensure!(!is_denied(&ROOT.call(&channel, &path, Bytes::new()).await));
    }
    let path = "/temporal.server.api.adminservice.v1.AdminService/DescribeCluster";
    ensure!(is_denied(&READER.call(&channel, path, Bytes::new()).await));
    Ok(())
}

#[tokio::test]
async fn keys_stand_in_no_log_line_no_metric_and_no_answer_and_admins_and_denials_do() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("log");
    let log_path = log.to_str().context("the path is text")?;
    let debug = ("EVERLOG_LOG", "debug");
    let (server, channel) = serve(dir.path(), &[(LOG, log_path), debug]).await?;
    let mut shown = String::new();
    for caller in CALLERS {
        let answer = caller.send(&channel, start(OTHER, "w")).await;
        shown.push_str(&format!("{answer:?}\n"));
        let authorization = format!("Bearer {}", caller.key());
        let headers = [("Authorization", authorization.as_str())];
        let (_, body) = page::ask(server.http_address(), "GET /subjects", &headers, "").await?;
        shown.push_str(&body);
    }
    let long = CountWorkflowExecutionsRequest { namespace: "n".repeat(1 << 20), ..Default::default() };
    ensure!(is_denied(&READER.send(&channel, long).await));
    shown.push_str(&page::get(server.metrics_address(), "/metrics").await?.1);
    let lines = std::fs::read_to_string(&log)?;
    ensure!(lines.contains("RegisterNamespace") && lines.contains("call of an administrator"), "{lines}");
    ensure!(lines.contains("call denied") && lines.contains("own-reader"), "{lines}");
    ensure!(lines.lines().all(|line| line.len() < 8_192), "a line is as long as a name");
    shown.push_str(&lines);
    for caller in CALLERS {
        let key = caller.key();
        ensure!(!shown.contains(&key), "the key of {} is shown", caller.name);
        ensure!(!shown.contains(key.trim_start_matches("elk_")), "the key of {} is shown", caller.name);
    }
    Ok(())
}
