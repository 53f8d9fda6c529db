//! The matrix: every RPC of the API, by every caller, in its own namespace, another one, none, and one that does not exist.

use bytes::Bytes;
use everlog_temporal_api::DESCRIPTOR;
use everlog_temporal_api::workflowservice::{ListNamespacesRequest, ListNamespacesResponse};
use everlog_tests::patience;
use prost::Message;
use prost::encoding::string;
use prost_types::{DescriptorProto, FileDescriptorSet};

use crate::callers::{
    BOTH_WRITER, CALLERS, Caller, EXPIRED, NOBODY, OTHER, OTHER_WRITER, OWN, READER, ROOT, STRANGER, SYSTEM,
    UNKNOWN, is_denied, serve,
};
use crate::table::{Needs, needs};

/// A method: its path, its name, and the number of the field with the namespace's name.
struct Method {
    path: String,
    name: String,
    namespace: Option<u32>,
}

/// All methods of the API. Those that make and delete namespaces come last.
fn methods() -> Vec<Method> {
    let set = FileDescriptorSet::decode(DESCRIPTOR).expect("the API's descriptor");
    let messages: Vec<(String, &DescriptorProto)> = set
        .file
        .iter()
        .flat_map(|file| {
            let package = file.package();
            file.message_type.iter().map(move |message| (format!(".{package}.{}", message.name()), message))
        })
        .collect();
    let mut methods = Vec::new();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                let input =
                    messages.iter().find(|(name, _)| name == method.input_type()).expect("it is there").1;
                let field = input.field.iter().find(|field| field.name() == "namespace");
                methods.push(Method {
                    path: format!("/{}.{}/{}", file.package(), service.name(), method.name()),
                    name: method.name().to_owned(),
                    namespace: field.map(|field| u32::try_from(field.number()).expect("it is positive")),
                });
            }
        }
    }
    methods.sort_by_key(|method| matches!(&*method.name, "RegisterNamespace" | "DeleteNamespace"));
    methods
}

/// What docs/security.md says.
fn is_allowed(rpc: &str, caller: Caller, namespace: &str) -> bool {
    let Caller { place, role, .. } = caller;
    let is_known = ![NOBODY, STRANGER, EXPIRED].contains(&caller);
    let is_system = place == SYSTEM;
    let counts = is_known && (is_system || place == namespace);
    let (reads, writes) = (["read", "write", "admin"].contains(&role), ["write", "admin"].contains(&role));
    let (works, rules) = (["worker", "write", "admin"].contains(&role), role == "admin");
    match needs(rpc) {
        Needs::Nothing => true,
        Needs::Known => is_known,
        Needs::ReaderSomewhere => is_known && reads,
        Needs::SystemReader => is_system && reads,
        Needs::SystemAdmin => is_system && rules,
        Needs::Reader => counts && reads,
        Needs::ReaderOrWorker => counts && (reads || works),
        Needs::Writer => counts && writes,
        Needs::WriterOrWorker => counts && works,
        Needs::Admin => counts && rules,
    }
}

#[tokio::test]
async fn every_rpc_is_open_to_those_whom_the_table_names_and_to_nobody_else() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for Method { path, name, namespace: field } in methods() {
        for caller in CALLERS {
            for namespace in [OWN, OTHER, "", UNKNOWN] {
                let mut request = Vec::new();
                if let Some(field) = field {
                    string::encode(field, &namespace.to_owned(), &mut request);
                }
                let call = caller.call(&channel, &path, Bytes::from(request));
                let answer = patience::answer(&path, call).await?;
                let is_let_in = !is_denied(&answer);
                judged += 1;
                if is_let_in != is_allowed(&name, caller, if field.is_some() { namespace } else { "" }) {
                    wrong.push(format!("{name} by {} in {namespace:?}: {answer:?}", caller.name));
                }
            }
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
    assert!(judged > 5_000, "{judged} calls");
    Ok(())
}

/// The Web UI lists namespaces on each page: it shows each person those that they may open.
#[tokio::test]
async fn namespaces_are_listed_to_those_who_may_read_them() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (_server, channel) = serve(dir.path(), &[]).await?;
    for (caller, shown) in
        [(READER, vec![OWN]), (OTHER_WRITER, vec![OTHER]), (BOTH_WRITER, vec![OTHER, OWN]), (ROOT, vec![])]
    {
        let (mut listed, mut pages, mut next_page_token) = (Vec::new(), 0, Bytes::new());
        loop {
            let request = ListNamespacesRequest { page_size: 1, next_page_token, ..Default::default() };
            let page = ListNamespacesResponse::decode(caller.send(&channel, request).await?)?;
            let infos = page.namespaces.into_iter().filter_map(|namespace| namespace.namespace_info);
            listed.extend(infos.map(|info| info.name));
            (pages, next_page_token) = (pages + 1, page.next_page_token);
            if next_page_token.is_empty() {
                break;
            }
        }
        assert_eq!(pages, listed.len(), "{}", caller.name);
        if caller == ROOT {
            assert!([OWN, OTHER, "default"].iter().all(|name| listed.iter().any(|listed| listed == name)));
        } else {
            assert_eq!(listed, shown, "{}", caller.name);
        }
    }
    Ok(())
}
