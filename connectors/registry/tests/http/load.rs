//! What asks for much work: bounded, out of the way of others, and ended with whoever asked for it.

use std::sync::Condvar;

use super::*;

/// A union of so many records, whose names are `name` of their numbers.
fn union(count: usize, name: impl Fn(usize) -> String) -> Value {
    let record = |number| format!(r#"{{"type":"record","name":"{}","fields":[]}}"#, name(number));
    json!({"schema": format!("[{}]", (0..count).map(record).collect::<Vec<_>>().join(","))})
}

fn registry(limits: Limits) -> Registry {
    Registry::open(Arc::new(Rows::default()), limits).expect("no rows")
}

fn count(counter: &std::sync::atomic::AtomicU64) -> u64 {
    counter.load(std::sync::atomic::Ordering::Relaxed)
}

#[tokio::test]
async fn two_versions_of_a_large_union_are_compared_by_the_names_of_its_branches() {
    let api = Api::new(&serve(open(&Arc::default())).await);
    let (one, other) = (union(10_000, |n| format!("R{n}")), union(10_000, |n| format!("R{}", n + 1)));
    assert_eq!(api.call("POST", "/subjects/s/versions", Some(one)).await.0, 200);
    let check = "/compatibility/subjects/s/versions/latest?verbose=true";
    let (status, told) = api.call("POST", check, Some(other)).await;
    assert_eq!((status, &told["is_compatible"]), (200, &json!(false)), "R0 is not read any more");
    assert!(told["messages"][0].as_str().is_some_and(|told| told.contains("(branch 0)")), "{told}");
    let backwards = union(10_000, |n| format!("R{}", 9_999 - n));
    assert_eq!(api.call("POST", check, Some(backwards)).await, (200, json!({"is_compatible": true})));
}

#[tokio::test]
async fn a_check_that_takes_too_many_steps_is_refused_and_the_bound_is_named() {
    let registry = registry(Limits { check_steps_max: 100_000, ..Limits::default() });
    let stats = Arc::clone(registry.stats());
    let api = Api::new(&serve(registry).await);
    // All of one name: each may be read by each.
    let union = |field: &str| {
        let fields = format!(r#"[{{"name":"{field}","type":"int"}}]"#);
        let record =
            |n: usize| format!(r#"{{"type":"record","name":"R","namespace":"n{n}","fields":{fields}}}"#);
        json!({"schema": format!("[{}]", (0..200).map(record).collect::<Vec<_>>().join(","))})
    };
    assert_eq!(api.call("POST", "/subjects/s/versions", Some(union("a"))).await.0, 200);
    for path in ["/subjects/s/versions", "/compatibility/subjects/s/versions/latest"] {
        let (status, told) = api.call("POST", path, Some(union("b"))).await;
        assert_eq!((status, &told["error_code"]), (422, &json!(42201)), "{path}: {told}");
        let message = told["message"].as_str().expect("a text");
        assert!(
            message.contains("100000 steps") && message.contains("registry.check_steps_max"),
            "{message}"
        );
    }
    assert_eq!(count(&stats.checks_too_large), 2);
    assert_eq!(api.call("GET", "/subjects/s/versions", None).await, (200, json!([1])));
}

/// Each of them is much longer with its namespace than it is written.
#[tokio::test]
async fn names_count_as_long_as_they_are_with_their_namespaces() {
    let registry = registry(Limits { check_steps_max: 1_000_000, ..Limits::default() });
    let api = Api::new(&serve(registry).await);
    let fields: Vec<_> = (0..4_000).map(|n| format!(r#"{{"name":"f{n}","type":["null","R"]}}"#)).collect();
    let space = "n".repeat(100_000);
    let text =
        format!(r#"{{"type":"record","name":"R","namespace":"{space}","fields":[{}]}}"#, fields.join(","));
    let (status, told) = api.call("POST", "/subjects/s/versions", Some(json!({"schema": text}))).await;
    assert_eq!((status, &told["error_code"]), (422, &json!(42201)));
    assert!(told["message"].as_str().is_some_and(|told| told.contains("1000000 steps")), "{told}");
}

/// A check that would take minutes: all branches of all unions are held against each other, in each of the fields.
fn endless() -> Limits {
    Limits { check_steps_max: 1_000_000_000, checks_max: 1, checks_waiting_max: 1, ..Limits::default() }
}

fn costly(field: &str) -> Value {
    let record = |n: usize| {
        let fields = format!(r#"[{{"name":"{field}","type":"int"}}]"#);
        format!(r#"{{"type":"record","name":"R","namespace":"n{n}","fields":{fields}}}"#)
    };
    json!({"schema": format!("[{}]", (0..4_000).map(record).collect::<Vec<_>>().join(","))})
}

#[tokio::test]
async fn others_are_answered_beside_a_long_check_and_it_ends_with_whoever_asked() {
    let registry = registry(endless());
    let stats = Arc::clone(registry.stats());
    let url = serve(registry).await;
    let api = Api::new(&url);
    assert_eq!(api.call("POST", "/subjects/s/versions", Some(costly("a"))).await.0, 200);
    let ask = || {
        let url = url.clone();
        let check = "/compatibility/subjects/s/versions/latest";
        tokio::spawn(async move { Api::new(&url).call("POST", check, Some(costly("b"))).await })
    };
    let (first, second) = (ask(), ask());
    let both = async || (count(&stats.checks_running), count(&stats.checks_waiting)) == (1, 1);
    patience::until("one that runs and one that waits", both).await.expect("they do");
    for number in 0..20 {
        let path = format!("/subjects/t{number}/versions");
        assert_eq!(api.call("POST", &path, Some(schema("o", A))).await.0, 200);
        assert_eq!(api.call("GET", &path, None).await, (200, json!([1])));
    }
    let (status, told) = ask().await.expect("no panic");
    assert_eq!((status, &told["error_code"]), (503, &json!(50302)), "nobody else may wait: {told}");
    assert!(!first.is_finished() && !second.is_finished());
    first.abort();
    second.abort();
    let none = async || {
        let left = (count(&stats.checks_running), count(&stats.checks_waiting));
        left == (0, 0) && count(&stats.checks_unwanted) == 2
    };
    patience::until("the end of both checks", none).await.expect("they end");
}

/// A storage that waits until it is let go on.
#[derive(Default)]
struct Slow {
    rows: Rows,
    /// No row is put meanwhile.
    is_shut: Mutex<bool>,
    opened: Condvar,
    waits: std::sync::atomic::AtomicU64,
}

impl Storage for Slow {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let is_shut = self.is_shut.lock().expect("nobody panics");
        drop(self.opened.wait_while(is_shut, |is_shut| *is_shut).expect("nobody panics"));
        self.rows.put(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<(), String> {
        self.rows.remove(key)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), String> {
        self.rows.scan(visit)
    }
}

impl Slow {
    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().expect("nobody panics") = is_shut;
        self.opened.notify_all();
    }
}

#[tokio::test]
async fn what_is_there_is_read_while_a_change_waits_for_the_storage() {
    let slow = Arc::new(Slow::default());
    let registry = Registry::open(slow.clone(), Limits::default()).expect("no rows");
    registry.register("s", "\"int\"").expect("room");
    let before = count(&slow.waits);
    let url = serve(registry).await;
    slow.shut(true);
    let changed = tokio::spawn({
        let url = url.clone();
        async move { Api::new(&url).call("POST", "/subjects/t/versions", Some(schema("o", A))).await }
    });
    patience::until("a change that waits", async || count(&slow.waits) > before).await.expect("it waits");
    let api = Api::new(&url);
    assert_eq!(api.call("GET", "/subjects", None).await, (200, json!(["s"])));
    slow.shut(false);
    assert_eq!(changed.await.expect("no panic").0, 200);
    assert_eq!(api.call("GET", "/subjects", None).await, (200, json!(["s", "t"])));
}

/// As many threads as a node has for this.
#[test]
fn changes_that_wait_for_the_storage_leave_threads_to_others() {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(2).max_blocking_threads(32).enable_all().build().expect("threads");
    runtime.block_on(async {
        let slow = Arc::new(Slow::default());
        let url = serve(Registry::open(slow.clone(), Limits::default()).expect("no rows")).await;
        slow.shut(true);
        let change = |number: usize| {
            let url = url.clone();
            let path = format!("/subjects/s{number}/versions");
            tokio::spawn(async move { Api::new(&url).call("POST", &path, Some(schema("o", A))).await })
        };
        let changes: Vec<_> = (0..40).map(change).collect();
        patience::until("a change that waits", async || count(&slow.waits) > 0).await.expect("it waits");
        let api = Api::new(&url);
        for _ in 0..20 {
            let read = patience::answer("a read", api.call("GET", "/subjects", None)).await;
            assert_eq!(read.expect("it is answered"), (200, json!([])));
        }
        slow.shut(false);
        for change in changes {
            assert_eq!(change.await.expect("no panic").0, 200);
        }
    });
}

#[tokio::test]
async fn the_bytes_of_all_schemas_and_of_a_list_are_bounded() {
    let limits = Limits { bytes_max: 40_000, list_bytes_max: 12_000, ..Limits::default() };
    let registry = registry(limits);
    let stats = Arc::clone(registry.stats());
    let api = Api::new(&serve(registry).await);
    let large = |name: &str| {
        let doc = "d".repeat(8_000);
        json!({"schema": format!(r#"{{"type":"record","name":"{name}","doc":"{doc}","fields":[]}}"#)})
    };
    let versions = |subject: &str| format!("/subjects/{subject}/versions");
    assert_eq!(api.call("POST", &versions("a"), Some(large("A"))).await.0, 200);
    assert_eq!(api.call("POST", &versions("b"), Some(large("B"))).await.0, 200);
    let (status, told) = api.call("POST", &versions("c"), Some(large("C"))).await;
    assert_eq!((status, &told["error_code"]), (429, &json!(42901)), "{told}");
    assert!(told["message"].as_str().is_some_and(|told| told.contains("40000 bytes")), "{told}");
    assert_eq!(api.call("POST", &versions("c"), Some(large("A"))).await.0, 200, "it is there already");
    assert!((32_000..=40_000).contains(&count(&stats.schema_bytes)));

    let (status, told) = api.call("GET", "/schemas", None).await;
    assert_eq!((status, &told["error_code"]), (422, &json!(422)), "{told}");
    assert!(told["message"].as_str().is_some_and(|told| told.contains("registry.list_bytes_max")), "{told}");
    let (status, told) = api.call("GET", "/schemas?limit=1&offset=1", None).await;
    assert_eq!((status, &told[0]["subject"]), (200, &json!("b")), "one always fits");
    for path in [
        "/subjects/a?permanent=false",
        "/subjects/a?permanent=true",
        "/subjects/c",
        "/subjects/c?permanent=true",
    ] {
        assert_eq!(api.call("DELETE", path, None).await.0, 200, "{path}");
    }
    assert!(count(&stats.schema_bytes) < 20_000, "what is gone takes no bytes");
    assert_eq!(api.call("POST", &versions("c"), Some(large("C"))).await.0, 200);
}

#[tokio::test]
async fn a_list_of_schemas_is_read_on_behind_its_first_thousand() {
    let registry = open(&Arc::default());
    for number in 0..1_002 {
        registry.register(&format!("s{number:04}"), "\"int\"").expect("room");
    }
    let api = Api::new(&serve(registry).await);
    let (_, first) = api.call("GET", "/schemas", None).await;
    assert_eq!(first.as_array().map(Vec::len), Some(1_000));
    let (_, rest) = api.call("GET", "/schemas?offset=1000", None).await;
    assert_eq!((rest.as_array().map(Vec::len), &rest[1]["subject"]), (Some(2), &json!("s1001")));
}
