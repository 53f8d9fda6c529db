//! Namespaces that are made, changed, deleted and learned of.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use prometheus::Registry;
use prost::Message;
use tonic::Code;

use crate::codec::random_ids;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::namespaces::namespace::*;

/// A durable map that is not.
#[derive(Default)]
struct Memory {
    rows: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Control for Memory {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.rows.lock().insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        self.rows.lock().remove(key);
        Ok(())
    }

    fn scan(&self) -> Result<Vec<Row>, String> {
        let rows = self.rows.lock();
        Ok(rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn open(control: &Arc<Memory>, limits: &Limits) -> Namespaces {
    let metrics = Metrics::register(&Registry::new()).expect("a new registry");
    Namespaces::open(control.clone(), limits, &metrics).expect("memory does not fail")
}

fn record(name: &str) -> NamespaceRecord {
    NamespaceRecord {
        id: random_ids::id(),
        name: name.into(),
        retention_ms: 3_600_000,
        ..NamespaceRecord::default()
    }
}

#[tokio::test]
async fn the_default_namespace_is_there_from_the_first_start_and_keeps_its_id() {
    let control = Arc::new(Memory::default());
    let first = open(&control, &Limits::default()).find(DEFAULT, 1_000).expect("made at the start");
    let second = open(&control, &Limits::default()).find(DEFAULT, 1_000).expect("read at the start");
    assert_eq!(first.record, second.record);
    assert_eq!(first.record.retention_ms, 3 * 86_400_000);
}

#[tokio::test]
async fn the_default_namespace_is_made_again_where_it_was_deleted() {
    let control = Arc::new(Memory::default());
    let namespaces = open(&control, &Limits::default());
    let id = namespaces.find(DEFAULT, 1_000).expect("made at the start").record.id.clone();
    namespaces.delete(&id).await.expect("deleted");
    let (here, there) = (open(&control, &Limits::default()), open(&control, &Limits::default()));
    let again = here.find(DEFAULT, 1_000).expect("made again").record.id.clone();
    assert_ne!(again, id);
    assert_eq!(there.known(DEFAULT).map(|(id, _)| id), Some(again));
    assert!(here.find_id(&id).expect("the old one").is_deleted);
}

#[tokio::test]
async fn a_namespace_outlives_a_restart_with_its_changes() {
    let control = Arc::new(Memory::default());
    let namespaces = open(&control, &Limits::default());
    namespaces.add(record("shop")).await.expect("new");
    let changed = namespaces.update("shop", 1_000, |record| record.description = "orders".into()).await;
    assert_eq!(changed.expect("known").record.description, "orders");
    let again = open(&control, &Limits::default()).find("shop", 1_000).expect("kept");
    assert_eq!(again.record.description, "orders");
    assert!(namespaces.find_id(&again.record.id).is_ok());
    assert_eq!(namespaces.name(&again.record.id).as_deref(), Some("shop"));
    assert_eq!(namespaces.known("shop"), Some((again.record.id.clone(), 3_600_000)));
    assert_eq!((namespaces.name("shop"), namespaces.known(&again.record.id)), (None, None));
}

#[tokio::test]
async fn search_attributes_are_told_to_other_nodes_and_refused_where_they_are_not_known() {
    let control = Arc::new(Memory::default());
    let (here, there) = (open(&control, &Limits::default()), open(&control, &Limits::default()));
    let add = |record: &mut NamespaceRecord| record.search_attributes.extend([("Customer".to_owned(), 2)]);
    here.update(DEFAULT, 1_000, add).await.expect("known");
    let given = Bytes::from_static(
        b"\x0a\x29\x0a\x08Customer\x12\x1d\x0a\x16\x0a\x08encoding\x12\x0ajson/plain\x12\x03\"a\"",
    );
    assert!(there.typed(DEFAULT, &given).is_err(), "nobody has told it yet");
    tokio::task::spawn_blocking(move || {
        for (key, value) in control.scan().expect("memory does not fail") {
            there.learn(&key, &value);
        }
        assert_eq!(there.typed(DEFAULT, &given), here.typed(DEFAULT, &given));
        assert!(there.typed(DEFAULT, &given).is_ok());
    })
    .await
    .expect("no panic");
}

#[tokio::test]
async fn what_another_node_has_changed_a_moment_ago_is_kept() {
    let control = Arc::new(Memory::default());
    let (here, there) = (open(&control, &Limits::default()), open(&control, &Limits::default()));
    assert_eq!(here.known(DEFAULT), there.known(DEFAULT), "both have made it, and it is one");
    let add = |name: &'static str| {
        move |record: &mut NamespaceRecord| record.search_attributes.extend([(name.to_owned(), 2)])
    };
    here.update(DEFAULT, 1_000, add("Customer")).await.expect("known");
    there.update(DEFAULT, 1_000, add("Region")).await.expect("known");
    let record = &open(&control, &Limits::default()).find(DEFAULT, 1_000).expect("kept").record;
    assert_eq!(record.search_attributes.keys().collect::<Vec<_>>(), ["Customer", "Region"]);
    here.add(crate::namespaces::namespace_tests::record("shop")).await.expect("new");
    let status =
        there.add(crate::namespaces::namespace_tests::record("shop")).await.expect_err("taken elsewhere");
    assert_eq!(status.code(), Code::AlreadyExists);
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let namespaces = open(&Arc::new(Memory::default()), &Limits::default());
    namespaces.add(record("shop")).await.expect("new");
    let status = namespaces.add(record("shop")).await.expect_err("taken");
    assert_eq!(status.code(), Code::AlreadyExists);
}

#[tokio::test]
async fn what_is_deleted_gives_its_name_away_and_stays_deleted() {
    let control = Arc::new(Memory::default());
    let namespaces = open(&control, &Limits { namespaces_max: 2, ..Limits::default() });
    let old = record("shop");
    namespaces.add(old.clone()).await.expect("new");
    let name = namespaces.delete(&old.id).await.expect("deleted");
    assert_eq!(name, format!("shop-deleted-{}", &old.id[..5]));
    assert_eq!(namespaces.delete(&old.id).await.expect("deleted before"), name);
    for namespaces in [&namespaces, &open(&control, &Limits::default())] {
        let code = |name: &str| namespaces.find(name, 1_000).err().map(|status| status.code());
        assert_eq!((code("shop"), code(&name)), (Some(Code::NotFound), Some(Code::FailedPrecondition)));
        assert!(namespaces.find_any(&name, 1_000).expect("told").is_deleted);
        assert_eq!(namespaces.name(&old.id).as_deref(), Some(name.as_str()));
        assert_eq!((namespaces.known("shop"), namespaces.known(&name)), (None, None));
        assert_eq!(*namespaces.deleted(), *std::slice::from_ref(&old.id));
        assert_eq!(namespaces.after("", 10, |_| true).0.len(), 1, "it is not listed");
    }
    let again = record("shop");
    namespaces.add(again.clone()).await.expect("there is room, and the name is free");
    for namespaces in [&namespaces, &open(&control, &Limits::default())] {
        assert_eq!(namespaces.find("shop", 1_000).expect("the new one").record.id, again.id);
        assert_eq!(namespaces.find_id(&old.id).expect("the old one").record.name, name);
    }
}

#[test]
fn a_node_that_hears_late_of_a_deletion_does_not_undo_it() {
    let control = Arc::new(Memory::default());
    let (here, there) = (open(&control, &Limits::default()), open(&control, &Limits::default()));
    let old = record("shop");
    let tell = |key: &[u8], value: &[u8]| {
        control.put(key, value).expect("memory does not fail");
        here.learn(key, value);
        there.learn(key, value);
    };
    tell(&key(&old), &old.encode_to_vec());
    let deletion = NamespaceDeletion { name: "shop-deleted-1".into() };
    tell(&[DELETION_PREFIX, old.id.as_bytes()].concat(), &deletion.encode_to_vec());
    // It was changed by a node that did not know; and the name is in use again.
    let again = record("shop");
    tell(&key(&again), &again.encode_to_vec());
    tell(&key(&old), &NamespaceRecord { description: "late".into(), ..old.clone() }.encode_to_vec());
    for namespaces in [&here, &there, &open(&control, &Limits::default())] {
        assert_eq!(namespaces.find("shop", 1_000).expect("the new one").record.id, again.id);
        let gone = namespaces.find_id(&old.id).expect("the old one");
        assert!(gone.is_deleted);
        assert_eq!((gone.record.name.as_str(), &*gone.record.description), ("shop-deleted-1", "late"));
        assert_eq!(namespaces.deleted().len(), 1);
    }
}

#[tokio::test]
async fn names_that_cannot_be_are_refused_before_they_are_looked_up() {
    let namespaces = open(&Arc::new(Memory::default()), &Limits::default());
    let refused = |name: &str| namespaces.find(name, 1_000).err().map(|s| (s.code(), s.message().to_owned()));
    assert_eq!(refused(""), Some((Code::InvalidArgument, "Namespace not set on request.".into())));
    assert_eq!(
        refused(&"n".repeat(1_001)),
        Some((Code::InvalidArgument, "Namespace length exceeds limit.".into()))
    );
    assert_eq!(refused(&"n".repeat(1_000)).map(|(code, _)| code), Some(Code::NotFound));
}

#[tokio::test]
async fn pages_follow_the_order_of_names() {
    let namespaces = open(&Arc::new(Memory::default()), &Limits::default());
    for name in ["b", "a", "c"] {
        namespaces.add(record(name)).await.expect("new");
    }
    let names = |page: &[Arc<Namespace>]| page.iter().map(|n| n.record.name.clone()).collect::<Vec<_>>();
    let (page, more) = namespaces.after("", 2, |_| true);
    assert_eq!((names(&page), more), (vec!["a".into(), "b".into()], true));
    let (page, more) = namespaces.after("b", 2, |_| true);
    assert_eq!((names(&page), more), (vec!["c".into(), "default".into()], false));
}

#[tokio::test]
async fn there_are_never_more_namespaces_than_the_limit() {
    let limits = Limits { namespaces_max: 1, ..Limits::default() };
    let namespaces = open(&Arc::new(Memory::default()), &limits);
    let status = namespaces.add(record("shop")).await.expect_err("full");
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[test]
fn a_new_namespace_is_seen_for_what_it_is_called_and_an_old_one_stays() {
    for seen in ["shop", "shop 2", "Bücher", "日本語"] {
        assert!(check_new_name(seen).is_ok(), "{seen}");
    }
    let control = Arc::new(Memory::default());
    for hidden in ["a\nb", "a\0", "\u{7f}", "\u{85}", "a\u{200b}", "\u{202e}a", "a\u{2066}", "a\u{2029}b"] {
        let refused = check_new_name(hidden).expect_err(hidden);
        assert_eq!(refused.code(), Code::InvalidArgument);
        let old = record(hidden);
        control.put(&key(&old), &old.encode_to_vec()).expect("memory does not fail");
        let found = open(&control, &Limits::default()).find(hidden, 1_000).expect("it is there");
        assert_eq!(found.record, old);
    }
}
