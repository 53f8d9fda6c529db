//! The gateway's table of RPCs and the list in docs/api.md are true: an RPC that they have is served, every other one answers
//! UNIMPLEMENTED.

use std::collections::BTreeMap;

use bytes::Bytes;
use everlog_tests::server::Server;
use everlog_tests::{patience, raw};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::{Code, Request};

use crate::table::{State, rows, state};

/// Every method of both services, by path.
fn methods() -> anyhow::Result<Vec<String>> {
    let descriptors = FileDescriptorSet::decode(everlog_temporal_api::DESCRIPTOR)?;
    let mut methods = Vec::new();
    for file in &descriptors.file {
        for service in &file.service {
            for method in &service.method {
                methods.push(format!("/{}.{}/{}", file.package(), service.name(), method.name()));
            }
        }
    }
    Ok(methods)
}

/// What docs/api.md says: method name to whether it is served.
fn documented() -> anyhow::Result<BTreeMap<String, bool>> {
    let row =
        |row: Vec<String>| Some((row[0].trim_matches('`').to_owned(), state(&row[1])? == State::Served));
    Ok(rows("docs/api.md", None)?.into_iter().filter_map(row).collect())
}

#[tokio::test]
async fn the_list_of_rpcs_is_true() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let server = Server::start(dir.path(), &[]).await?;
    let channel = server.connect().await?;
    let documented = documented()?;
    let mut wrong = Vec::new();
    let methods = methods()?;
    assert!(methods.len() > 100, "only {} methods were found", methods.len());
    for path in &methods {
        let name = path.rsplit('/').next().unwrap_or_default();
        let mut request = Request::new(Bytes::new());
        request.set_timeout(patience::most());
        let answer = raw::call(&channel, path, request).await;
        let refusal = answer.err().filter(|status| status.code() == Code::Unimplemented);
        let served = refusal.is_none();
        let names_it = format!("{name} is not served by Everlog, see docs/api.md");
        if let Some(refusal) = refusal.filter(|refusal| refusal.message() != names_it) {
            wrong.push(format!("{name}: refused as {:?}", refusal.message()));
        }
        let (in_table, listed) = (everlog_temporal::is_served(path), documented.get(name));
        if in_table != served || listed != Some(&served) {
            wrong.push(format!(
                "{name}: served {served}, in the table {in_table}, docs/api.md says {listed:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
