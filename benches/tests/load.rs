//! The load generator against a server that knows only starts.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use everlog_benches::load::options::Options;
use everlog_benches::load::{self, report::Report};
use everlog_temporal_api::workflowservice::workflow_service_server::SERVICE_NAME;
use everlog_temporal_api::workflowservice::{StartWorkflowExecutionRequest, StartWorkflowExecutionResponse};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Context, Poll, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// Accepts starts, except each `refuses_each`-th. By hand: the generated server compiles all hundred calls for this one.
#[derive(Clone)]
struct Starts {
    asked: Arc<AtomicU64>,
    refuses_each: u64,
}

impl NamedService for Starts {
    const NAME: &'static str = SERVICE_NAME;
}

impl Service<http::Request<Body>> for Starts {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let starts = self.clone();
        Box::pin(async move {
            if !request.uri().path().ends_with("/StartWorkflowExecution") {
                return Ok(Status::unimplemented("only starts").into_http());
            }
            Ok(Grpc::new(ProstCodec::default()).unary(starts, request).await)
        })
    }
}

impl UnaryService<StartWorkflowExecutionRequest> for Starts {
    type Response = StartWorkflowExecutionResponse;
    type Future = BoxFuture<Response<Self::Response>, Status>;

    fn call(&mut self, _: Request<StartWorkflowExecutionRequest>) -> Self::Future {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let refused = self.refuses_each > 0 && asked.is_multiple_of(self.refuses_each);
        let started = StartWorkflowExecutionResponse { run_id: asked.to_string(), ..Default::default() };
        let answer =
            if refused { Err(Status::resource_exhausted("too much")) } else { Ok(Response::new(started)) };
        Box::pin(std::future::ready(answer))
    }
}

/// The report of one run, and how many starts the server was asked for.
async fn report(refuses_each: u64, line: &str) -> anyhow::Result<(Report, u64)> {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let asked = Arc::new(AtomicU64::new(0));
    let service = Starts { asked: asked.clone(), refuses_each };
    let server = tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
    let line = format!("everlog-load {line} --address {address}");
    let report = load::run(&Options::try_parse_from(line.split(' '))?).await?;
    server.abort();
    Ok((report, asked.load(Ordering::Relaxed)))
}

#[tokio::test]
async fn every_operation_is_performed_once_and_counted() {
    let (report, asked) = report(0, "open --operations 500 --concurrency 8").await.unwrap();
    assert_eq!((report.operations, asked), (500, 500));
    assert_eq!(report.latency_ms["StartWorkflowExecution"].count, 500);
    assert_eq!(report.timeline.iter().sum::<u64>(), 500);
    assert!(report.is_clean());
}

#[tokio::test]
async fn a_refused_operation_is_shown_with_its_code() {
    let (report, asked) = report(10, "open --operations 100 --concurrency 4").await.unwrap();
    assert_eq!((report.operations, asked), (90, 100));
    let failure = &report.failures[0];
    assert_eq!(
        (failure.what, failure.code.as_str(), failure.count),
        ("StartWorkflowExecution", "ResourceExhausted", 10)
    );
    assert!(!report.is_clean());
}

#[tokio::test]
async fn the_open_loop_keeps_its_rate_with_a_single_place() {
    let (report, asked) = report(0, "open --rate 1000 --operations 300 --max-in-flight 1").await.unwrap();
    assert_eq!((report.operations, asked), (300, 300));
    // The last one is due after 299 ms and no sooner.
    assert!(report.seconds >= 0.299, "{} s", report.seconds);
    assert!(report.is_clean());
}

#[tokio::test]
async fn calls_that_the_server_does_not_know_are_failures() {
    let (report, _) =
        report(0, "start --operations 1 --concurrency 1 --pollers 1 --timeout 0.2").await.unwrap();
    let failed: Vec<_> =
        report.failures.iter().map(|failure| (failure.what, failure.code.as_str())).collect();
    assert!(failed.contains(&("PollWorkflowTaskQueue", "Unimplemented")), "{failed:?}");
    assert!(failed.contains(&("operation", "Timeout")), "{failed:?}");
    assert_eq!(report.operations, 0);
}
