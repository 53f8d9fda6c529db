//! Contents that no client could read, in every field of every request that the server never decodes: nothing of it is taken.

use std::collections::BTreeMap;

use anyhow::Context;
use bytes::Bytes;
use everlog_temporal_api::DESCRIPTOR;
use everlog_temporal_api::common::WorkflowExecution;
use everlog_temporal_api::full::temporal::api::common::v1::{Payload, Payloads};
use everlog_temporal_api::workflowservice::{
    SignalWorkflowExecutionRequest, TerminateWorkflowExecutionRequest,
};
use everlog_tests::dice::{Dice, seed_of_the_commit};
use everlog_tests::server::Server;
use prost::Message;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use tonic::{Code, Request};

use crate::world::{Run, World, observation};

/// Requests in whose fields there is something to break, and fields in all: those of the API as it is now, at the least.
const REQUESTS_MIN: usize = 60;
const FIELDS_MIN: usize = 400;
/// How deep fields are looked for. What lies deeper is of the same types as what lies above it.
const DEPTH_MAX: usize = 4;
/// Fields of one request: those of commands are many, and alike.
const FIELDS_MAX: usize = 60;

type Messages<'a> = BTreeMap<String, &'a DescriptorProto>;

/// Requests of each kind that are spoilt at random.
const SPOILT: usize = 150;

/// A message field by the numbers that lead to it from its request.
type Path = Vec<i32>;

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_no_client_can_read_are_refused_wherever_they_stand() -> anyhow::Result<()> {
    let set = FileDescriptorSet::decode(DESCRIPTOR)?;
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let world = World::new(server.connect().await?).await?;
    let messages = messages(&set);
    let (mut requests, mut fields, mut faults) = (0, 0, Vec::new());
    for (path, input) in methods(&set) {
        let request = messages.get(&input).context("a request is in the descriptor")?;
        let mut found = Vec::new();
        look(&messages, request, &mut Vec::new(), &mut found);
        found.truncate(FIELDS_MAX);
        requests += usize::from(!found.is_empty());
        for field in found {
            fields += 1;
            for (what, contents) in BROKEN {
                let request = Request::new(within(&field, contents));
                let observation = observation(world.call(&path, request).await);
                let is_refused = observation.code == Some(Code::Internal)
                    && observation.message.contains("error unmarshalling request");
                if !is_refused && observation.code != Some(Code::Unimplemented) {
                    faults.push(format!(
                        "{path} {field:?} {what}: {:?} {}",
                        observation.code, observation.message
                    ));
                }
            }
        }
    }
    faults.extend(crate::hurt(&mut server).await?);
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    assert!(requests >= REQUESTS_MIN && fields >= FIELDS_MIN, "only {fields} fields of {requests} requests");
    Ok(())
}

/// Starts, signals and terminations whose contents are spoilt somewhere at random. What is taken can be read, all of it.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_taken_can_be_read() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Server::start(dir.path(), &[]).await?;
    let world = World::new(server.connect().await?).await?;
    let mut dice = Dice::new(seed_of_the_commit());
    let (mut runs, mut taken, mut refused) = (Vec::new(), 0, 0);
    for _ in 0..SPOILT {
        let id = world.fresh("run");
        let mut start = world.start_of(&id);
        start.input = Some(contents(&mut dice));
        start.header = Some(contents(&mut dice));
        start.user_metadata = Some(contents(&mut dice));
        start.last_completion_result = Some(contents(&mut dice));
        start.continued_failure = Some(contents(&mut dice));
        let fine = world.begin(|_fine| {}).await?;
        let execution = Some(WorkflowExecution { workflow_id: fine.id.clone(), ..Default::default() });
        let signal = SignalWorkflowExecutionRequest {
            namespace: world.namespace.clone(),
            workflow_execution: execution.clone(),
            signal_name: "s".into(),
            input: Some(contents(&mut dice)),
            header: Some(contents(&mut dice)),
            ..Default::default()
        };
        let terminate = TerminateWorkflowExecutionRequest {
            namespace: world.namespace.clone(),
            workflow_execution: execution,
            details: Some(contents(&mut dice)),
            ..Default::default()
        };
        let answers = [
            world.send(start).await.map(drop),
            world.send(signal).await.map(drop),
            world.send(terminate).await.map(drop),
        ];
        if answers[0].is_ok() {
            runs.push(Run { queue: format!("{id}-queue"), run_id: String::new(), id });
        }
        runs.push(fine);
        taken += answers.iter().filter(|answer| answer.is_ok()).count();
        refused += answers.iter().filter(|answer| answer.is_err()).count();
    }
    for run in &runs {
        world.events(run).await.with_context(|| format!("the history of {} cannot be read", run.id))?;
    }
    assert!(taken > SPOILT / 4 && refused > SPOILT / 4, "{taken} taken, {refused} refused");
    let faults = crate::hurt(&mut server).await?;
    assert!(faults.is_empty(), "{faults:?}");
    Ok(())
}

/// Contents that every message may have, or that were spoilt.
fn contents(dice: &mut Dice) -> Bytes {
    let payload = Payload {
        data: "x".into(),
        metadata: [("encoding".into(), "json/plain".into())].into(),
        ..Payload::default()
    };
    let mut contents = Payloads { payloads: vec![payload] }.encode_to_vec();
    // Read as another message than payloads it is spoilt as it is; a field of another number is none's.
    match dice.below(8) {
        0 => contents.clear(),
        1 => contents = within(&[15], &contents).to_vec(),
        2 => {
            let at = dice.index(contents.len());
            contents[at] ^= 1 << dice.below(8);
        }
        3 => contents.truncate(dice.index(contents.len())),
        _whole => {}
    }
    contents.into()
}

/// What is no message of any type: a key that is none, a field that is cut short, a group that never ends.
const BROKEN: &[(&str, &[u8])] =
    &[("garbage", &[0xff; 12]), ("cut short", b"\x0a\x7f"), ("an open group", b"\x7b")];

/// Contents within the fields that lead there.
fn within(path: &[i32], contents: &[u8]) -> Bytes {
    let wrapped = path.iter().rev().fold(contents.to_vec(), |body, number| {
        let mut field = Vec::new();
        let tag = u32::try_from(*number).expect("numbers of fields are positive");
        prost::encoding::encode_key(tag, prost::encoding::WireType::LengthDelimited, &mut field);
        prost::encoding::encode_varint(body.len() as u64, &mut field);
        field.extend(body);
        field
    });
    wrapped.into()
}

/// Every method that is served, by its path, and the type of its request.
fn methods(set: &FileDescriptorSet) -> Vec<(String, String)> {
    let of_file = |file: &FileDescriptorProto| {
        let package = file.package().to_owned();
        let services = file.service.iter().flat_map(move |service| {
            let name = format!("{package}.{}", service.name());
            service
                .method
                .iter()
                .map(move |method| (format!("/{name}/{}", method.name()), method.input_type()))
        });
        services.map(|(path, input)| (path, input.to_owned())).collect::<Vec<_>>()
    };
    set.file.iter().flat_map(of_file).collect()
}

fn messages(set: &FileDescriptorSet) -> Messages<'_> {
    let mut messages = Messages::new();
    for file in &set.file {
        collect(&format!(".{}", file.package()), &file.message_type, &mut messages);
    }
    messages
}

fn collect<'a>(scope: &str, types: &'a [DescriptorProto], messages: &mut Messages<'a>) {
    for message in types {
        let name = format!("{scope}.{}", message.name());
        collect(&name, &message.nested_type, messages);
        messages.insert(name, message);
    }
}

/// Message fields, each by its path.
fn look(messages: &Messages<'_>, message: &DescriptorProto, above: &mut Path, found: &mut Vec<Path>) {
    for field in message.field.iter().filter(|field| field.r#type() == Type::Message) {
        above.push(field.number());
        found.push(above.clone());
        if let Some(inner) = messages.get(field.type_name()).filter(|_| above.len() < DEPTH_MAX) {
            look(messages, inner, above, found);
        }
        above.pop();
    }
}
