//! Deletion in its two steps, as Confluent's registry has it, and modes.

use super::*;

const VERSIONS: &str = "/subjects/s/versions";

/// A subject `s` with three versions, of the ids 1 to 3, and a subject `t` with the first of them.
async fn filled(rows: &Arc<Rows>) -> Api {
    let api = Api::new(&serve(open(rows)).await);
    for (path, schema) in
        [(VERSIONS, "int"), (VERSIONS, "long"), (VERSIONS, "double"), ("/subjects/t/versions", "int")]
    {
        assert_eq!(register(&api, path, schema).await.0, 200);
    }
    api
}

async fn register(api: &Api, path: &str, schema: &str) -> (u16, Value) {
    api.call("POST", path, Some(json!({"schema": format!("\"{schema}\"")}))).await
}

async fn get(api: &Api, path: &str) -> Value {
    let (_, answer) = api.call("GET", path, None).await;
    answer.get("error_code").cloned().unwrap_or(answer)
}

async fn delete(api: &Api, path: &str) -> Value {
    let (_, answer) = api.call("DELETE", path, None).await;
    answer.get("error_code").cloned().unwrap_or(answer)
}

#[tokio::test]
async fn a_version_is_deleted_and_then_for_good() {
    let rows = Arc::default();
    let api = filled(&rows).await;
    let (second, for_good) = ("/subjects/s/versions/2", "/subjects/s/versions/2?permanent=true");
    assert_eq!(delete(&api, for_good).await, 40407, "not before it is deleted");
    assert_eq!(delete(&api, second).await, 2);
    assert_eq!(delete(&api, second).await, 40406, "it is deleted");
    // After a restart as before it.
    for api in [api, Api::new(&serve(open(&rows)).await)] {
        assert_eq!(get(&api, VERSIONS).await, json!([1, 3]));
        assert_eq!(get(&api, "/subjects/s/versions?deleted=true").await, json!([1, 2, 3]));
        assert_eq!(get(&api, "/subjects/s/versions?deletedOnly=true").await, json!([2]));
        assert_eq!(get(&api, second).await, 40402);
        assert_eq!(get(&api, "/subjects/s/versions/2?deleted=true").await["deleted"], true);
        assert_eq!(
            get(&api, "/schemas/ids/2").await["schema"],
            "\"long\"",
            "records that have it stay readable"
        );
        assert_eq!(get(&api, "/schemas/ids/2/versions").await, json!([]));
        assert_eq!(get(&api, "/schemas/ids/2/subjects?deleted=true").await, json!(["s"]));
        let found = |query: &str| {
            let (api, path) = (&api, format!("/subjects/s{query}"));
            async move { register(api, &path, "long").await.1 }
        };
        assert_eq!(found("").await["error_code"], 40403);
        assert_eq!(found("?deleted=true").await["version"], 2);
    }
    let api = Api::new(&serve(open(&rows)).await);
    assert_eq!(delete(&api, for_good).await, 2);
    assert_eq!(delete(&api, for_good).await, 40402);
    for api in [api, Api::new(&serve(open(&rows)).await)] {
        assert_eq!(get(&api, "/schemas/ids/2").await, 40403);
        assert_eq!(get(&api, "/subjects/s/versions?deleted=true").await, json!([1, 3]));
    }
}

#[tokio::test]
async fn a_subject_is_deleted_and_then_for_good() {
    let rows = Arc::default();
    let api = filled(&rows).await;
    api.call("PUT", "/config/s", Some(json!({"compatibility": "FULL"}))).await;
    assert_eq!(delete(&api, "/subjects/s?permanent=true").await, 40405, "not before it is deleted");
    assert_eq!(delete(&api, "/subjects/s/versions/latest").await, 3);
    assert_eq!(delete(&api, "/subjects/s").await, json!([1, 2]));
    assert_eq!(delete(&api, "/subjects/s").await, 40404, "it is deleted");
    for api in [api, Api::new(&serve(open(&rows)).await)] {
        assert_eq!(get(&api, "/subjects").await, json!(["t"]));
        assert_eq!(get(&api, "/subjects?deleted=true").await, json!(["s", "t"]));
        assert_eq!(get(&api, "/subjects?deletedOnly=true").await, json!(["s"]));
        assert_eq!(get(&api, VERSIONS).await, 40401);
        assert_eq!(get(&api, "/config/s").await, 40408, "its level went along");
        assert_eq!(get(&api, "/schemas/ids/3").await["schema"], "\"double\"");
    }
    let api = Api::new(&serve(open(&rows)).await);
    assert_eq!(delete(&api, "/subjects/s?permanent=true").await, json!([1, 2, 3]));
    assert_eq!(delete(&api, "/subjects/s?permanent=true").await, 40401);
    for api in [api, Api::new(&serve(open(&rows)).await)] {
        assert_eq!(get(&api, "/subjects?deleted=true").await, json!(["t"]));
        assert_eq!(get(&api, "/schemas/ids/1").await["schema"], "\"int\"", "another subject has it");
        assert_eq!(get(&api, "/schemas/ids/3").await, 40403);
    }
    let api = Api::new(&serve(open(&rows)).await);
    assert_eq!(register(&api, VERSIONS, "string").await.1, json!({"id": 4}), "no id is given out twice");
    assert_eq!(get(&api, VERSIONS).await, json!([1]), "versions begin anew");
}

#[tokio::test]
async fn what_was_deleted_can_be_registered_again() {
    let api = filled(&Arc::default()).await;
    assert_eq!(delete(&api, "/subjects/s/versions/3").await, 3);
    assert_eq!(register(&api, VERSIONS, "double").await, (200, json!({"id": 3})));
    assert_eq!(get(&api, VERSIONS).await, json!([1, 2, 4]), "under a version of its own");
    assert_eq!(delete(&api, "/subjects/s").await, json!([1, 2, 4]));
    assert_eq!(register(&api, VERSIONS, "boolean").await.0, 200, "what is deleted is compared with nothing");
    assert_eq!(get(&api, VERSIONS).await, json!([5]));
}

#[tokio::test]
async fn a_deletion_that_is_not_stored_has_not_happened() {
    let rows = Arc::<Rows>::default();
    let api = filled(&rows).await;
    *rows.is_broken.lock().expect("nobody panics") = true;
    assert_eq!(delete(&api, "/subjects/s").await, 50001);
    assert_eq!(get(&api, VERSIONS).await, json!([1, 2, 3]));
    *rows.is_broken.lock().expect("nobody panics") = false;
    assert_eq!(delete(&api, "/subjects/s").await, json!([1, 2, 3]));
}

#[tokio::test]
async fn a_subject_that_is_read_only_takes_and_loses_nothing() {
    let rows = Arc::default();
    let api = filled(&rows).await;
    let mode = |name: &str| Some(json!({"mode": name}));
    assert_eq!(get(&api, "/mode").await, json!({"mode": "READWRITE"}));
    assert_eq!(
        api.call("PUT", "/mode/s?force=False", mode("readonly")).await,
        (200, json!({"mode": "READONLY"}))
    );
    let api = Api::new(&serve(open(&rows)).await);
    assert_eq!(get(&api, "/mode/s").await, json!({"mode": "READONLY"}));
    assert_eq!(get(&api, "/mode/t?defaultToGlobal=true").await, json!({"mode": "READWRITE"}));
    assert_eq!(register(&api, VERSIONS, "float").await.1["error_code"], 42205);
    assert_eq!(register(&api, VERSIONS, "int").await.0, 200, "it is there");
    assert_eq!(delete(&api, "/subjects/s").await, 42205);
    assert_eq!(delete(&api, "/subjects/s/versions/1").await, 42205);
    assert_eq!(register(&api, "/subjects/t/versions", "long").await.0, 200, "another subject");
    assert_eq!(delete(&api, "/mode/s").await, json!({"mode": "READONLY"}));
    assert_eq!(delete(&api, "/subjects/s/versions/1").await, 1);
    assert_eq!(api.call("PUT", "/mode", mode("READONLY")).await.0, 200);
    assert_eq!(register(&api, "/subjects/t/versions", "double").await.1["error_code"], 42205);
    assert_eq!(delete(&api, "/mode").await, json!({"mode": "READONLY"}));
    assert_eq!(register(&api, "/subjects/t/versions", "double").await.0, 200);
}
