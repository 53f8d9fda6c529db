//! Search attributes: registered, listed, removed, and given their types on the way to a partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use everlog_engine::request::{Request, RequestRecord};
use everlog_engine::{Rejection, Reply};
use everlog_partition::InboxMessage;
use everlog_temporal::Limits;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, SearchAttributes};
use everlog_temporal_api::operatorservice::operator_service_client::OperatorServiceClient;
use everlog_temporal_api::operatorservice::*;
use everlog_temporal_api::workflowservice::GetSearchAttributesRequest;
use parking_lot::Mutex;
use prost::Message;
use tonic::Code;
use tonic::transport::Channel;

use crate::Front;
use crate::sample::{NS, expect, refused, start};

const KEYWORD: i32 = 2;
const INT: i32 = 3;

/// A gateway before partitions that refuse every order, and what they were ordered.
async fn watched() -> (Front, OperatorServiceClient<Channel>, Arc<Mutex<Vec<RequestRecord>>>) {
    let ordered = Arc::new(Mutex::new(Vec::new()));
    let seen = ordered.clone();
    let front = Front::with(
        Limits::default(),
        Arc::new(move |_partition, event| {
            let InboxMessage::Request { input, reply, .. } = event else { return false };
            seen.lock().push(input);
            drop(reply.send(Ok(Reply::Rejected(Rejection::unknown()))));
            true
        }),
    )
    .await;
    let operator = OperatorServiceClient::new(front.channel.clone());
    (front, operator, ordered)
}

fn add(name: &str, r#type: i32) -> AddSearchAttributesRequest {
    AddSearchAttributesRequest {
        search_attributes: BTreeMap::from([(name.to_owned(), r#type)]),
        namespace: NS.into(),
    }
}

async fn listed(operator: &mut OperatorServiceClient<Channel>) -> BTreeMap<String, i32> {
    let answer = operator.list_search_attributes(ListSearchAttributesRequest { namespace: NS.into() }).await;
    let answer = answer.expect("listed").into_inner();
    assert_eq!(answer.system_attributes.get("CloseTime"), Some(&6));
    answer.custom_attributes
}

fn of(name: &str, json: &str) -> Option<Bytes> {
    let metadata = [("encoding".to_owned(), Bytes::from_static(b"json/plain"))].into();
    let payload = Payload { metadata, data: json.to_owned().into(), ..Payload::default() };
    let indexed_fields = [(name.to_owned(), payload)].into();
    Some(SearchAttributes { indexed_fields }.encode_to_vec().into())
}

#[tokio::test]
async fn attributes_are_there_from_their_registration_to_their_removal() {
    let (mut front, mut operator, ordered) = watched().await;
    let with = |json: &str| {
        let mut request = start();
        request.search_attributes = of("Customer", json);
        request
    };
    let unknown = "Namespace default has no mapping defined for search attribute Customer";
    let status = refused!(front, start_workflow_execution, with("7"));
    expect("before", &status, Code::InvalidArgument, unknown);
    operator.add_search_attributes(add("Customer", INT)).await.expect("new");
    operator.add_search_attributes(add("Customer", KEYWORD)).await.expect("it is there, and keeps its type");
    assert_eq!(listed(&mut operator).await, BTreeMap::from([("Customer".to_owned(), INT)]));
    let wrong = "invalid value for search attribute Customer of type Int: seven";
    let status = refused!(front, start_workflow_execution, with("\"seven\""));
    expect("of another type", &status, Code::InvalidArgument, wrong);
    assert!(ordered.lock().is_empty(), "nothing has reached a partition so far");
    let status = refused!(front, start_workflow_execution, with("7"));
    assert_eq!(status.code(), Code::NotFound, "the partition's word");
    let input = ordered.lock().pop().expect("it has reached a partition");
    let Some(Request::Start(begin)) = input.request else { panic!("it is a start") };
    let given = SearchAttributes::decode(begin.search_attributes.expect("given")).expect("a map");
    assert_eq!(given.indexed_fields["Customer"].metadata["type"], Bytes::from_static(b"Int"));
    let remove = || RemoveSearchAttributesRequest {
        search_attributes: vec!["Customer".into(), "nobody".into()],
        namespace: NS.into(),
    };
    operator.remove_search_attributes(remove()).await.expect("there");
    operator.remove_search_attributes(remove()).await.expect("gone, as was asked for");
    assert_eq!(listed(&mut operator).await, BTreeMap::new());
    let status = refused!(front, start_workflow_execution, with("7"));
    expect("after", &status, Code::InvalidArgument, unknown);
}

#[tokio::test]
async fn what_cannot_be_registered_or_removed_is_refused() {
    let (mut front, mut operator, _ordered) = watched().await;
    let long = "x".repeat(1_001);
    let cases = [
        (add("WorkflowId", KEYWORD), "Search attribute WorkflowId is reserved by system."),
        (add("TemporalMine", KEYWORD), "Search attribute TemporalMine is reserved by system."),
        (add("Mine", 0), "Unknown search attribute type: 0."),
        (add("", KEYWORD), "SearchAttribute is not set on request."),
        (add(&long, KEYWORD), "SearchAttribute length exceeds limit."),
        (
            AddSearchAttributesRequest { namespace: NS.into(), ..Default::default() },
            "SearchAttributes are not set",
        ),
        (
            AddSearchAttributesRequest { namespace: String::new(), ..add("Mine", KEYWORD) },
            "Namespace is not set",
        ),
    ];
    for (request, message) in cases {
        let status = operator.add_search_attributes(request).await.map(drop).expect_err(message);
        expect("add", &status, Code::InvalidArgument, message);
    }
    let elsewhere = AddSearchAttributesRequest { namespace: "nowhere".into(), ..add("Mine", KEYWORD) };
    let status = operator.add_search_attributes(elsewhere).await.map(drop).expect_err("no such namespace");
    expect("add", &status, Code::NotFound, "Namespace nowhere is not found.");
    let search_attributes = vec!["RunId".to_owned()];
    let remove = RemoveSearchAttributesRequest { search_attributes, namespace: NS.into() };
    let status = operator.remove_search_attributes(remove).await.map(drop).expect_err("there always");
    expect("remove", &status, Code::InvalidArgument, "Unable to remove non-custom search attributes: RunId.");
    assert_eq!(listed(&mut operator).await, BTreeMap::new(), "a refusal leaves nothing");
    let keys = front.client.get_search_attributes(GetSearchAttributesRequest {}).await;
    let keys = keys.expect("there always").into_inner().keys;
    assert_eq!((keys.len(), keys.get("TemporalChangeVersion")), (33, Some(&7)));
}

#[tokio::test]
async fn there_are_never_more_attributes_of_a_type_than_the_limit() {
    let (_front, mut operator, _ordered) = watched().await;
    let many = |count: usize| AddSearchAttributesRequest {
        search_attributes: (0..count).map(|number| (format!("Mine{number}"), KEYWORD)).collect(),
        namespace: NS.into(),
    };
    let status = operator.add_search_attributes(many(101)).await.map(drop).expect_err("one too many");
    let message =
        "Unable to create search attributes: cannot have more than 100 search attribute of type Keyword.";
    expect("add", &status, Code::InvalidArgument, message);
    assert_eq!(listed(&mut operator).await.len(), 0, "all or none");
    operator.add_search_attributes(many(100)).await.expect("as many as there may be");
    operator.add_search_attributes(many(100)).await.expect("the same again");
    operator.add_search_attributes(add("Number", INT)).await.expect("of another type");
}
