//! The paths that stock clients call, with the codes by which they decide.

use super::*;

async fn api() -> Api {
    Api::new(&serve(open(&Arc::default())).await)
}

fn text(schema: &str) -> Option<Value> {
    Some(json!({"schema": schema}))
}

/// A request (method, path, body) and its answer: the status, and the error's code, or the answer itself.
type Row = (&'static str, &'static str, Option<Value>, u16, Value);

async fn each(api: &Api, rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (method, path, body, status, expected) in rows {
        let (code, answer) = api.call(method, path, body).await;
        let told = answer.get("error_code").unwrap_or(&answer);
        if (code, told) != (status, &expected) {
            wrong.push(format!("{method} {path}: {code} {answer}, not {status} {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn each_refusal_has_the_code_that_clients_know() {
    let api = api().await;
    let (of_s, nobody) = ("/subjects/s/versions", "/subjects/nobody/versions");
    assert_eq!(api.call("POST", of_s, text("\"string\"")).await.0, 200);
    let level = |name: &str| Some(json!({"compatibility": name}));
    let mode = |name: &str| Some(json!({"mode": name}));
    let rows = vec![
        ("GET", nobody, None, 404, json!(40401)),
        ("GET", "/subjects/nobody/versions/latest", None, 404, json!(40401)),
        ("GET", "/subjects/nobody/versions/1", None, 404, json!(40401)),
        ("GET", "/subjects/nobody/versions/1/schema", None, 404, json!(40401)),
        ("GET", "/subjects/nobody/versions/1/referencedby", None, 404, json!(40401)),
        ("GET", "/subjects/nobody/metadata", None, 404, json!(40401)),
        ("POST", "/subjects/nobody", text("\"long\""), 404, json!(40401)),
        ("DELETE", "/subjects/nobody", None, 404, json!(40401)),
        ("DELETE", "/subjects/nobody/versions/1", None, 404, json!(40401)),
        ("DELETE", "/config/s", None, 404, json!(40401)),
        ("DELETE", "/mode/s", None, 404, json!(40401)),
        ("GET", "/subjects/s/versions/9", None, 404, json!(40402)),
        ("GET", "/subjects/s/versions/9/schema", None, 404, json!(40402)),
        ("GET", "/subjects/s/versions/9/referencedby", None, 404, json!(40402)),
        ("DELETE", "/subjects/s/versions/9", None, 404, json!(40402)),
        ("POST", "/compatibility/subjects/s/versions/9", text("\"long\""), 404, json!(40402)),
        ("POST", "/compatibility/subjects/nobody/versions/9", text("\"long\""), 404, json!(40402)),
        ("POST", "/subjects/s", text("\"long\""), 404, json!(40403)),
        ("GET", "/subjects/s/metadata?key=owner&value=ann", None, 404, json!(40403)),
        ("GET", "/schemas/ids/99", None, 404, json!(40403)),
        ("GET", "/schemas/ids/99/schema", None, 404, json!(40403)),
        ("GET", "/schemas/ids/99/subjects", None, 404, json!(40403)),
        ("GET", "/schemas/ids/99/versions", None, 404, json!(40403)),
        ("GET", "/schemas/guids/00000000-0000-0000-0000-000000000000", None, 404, json!(40403)),
        ("GET", "/config/s", None, 404, json!(40408)),
        ("GET", "/mode/s", None, 404, json!(40409)),
        ("POST", of_s, text("\"long\""), 409, json!(409)),
        ("POST", of_s, text(r#"{"type":"rekord"}"#), 422, json!(42201)),
        ("POST", of_s, text("{"), 422, json!(42201)),
        ("POST", "/subjects/s", text("\"rekord\""), 422, json!(42201)),
        ("POST", "/compatibility/subjects/s/versions", text("\"rekord\""), 422, json!(42201)),
        ("POST", "/compatibility/subjects/nobody/versions/latest", text("\"rekord\""), 422, json!(42201)),
        ("GET", "/subjects/s/versions/0", None, 422, json!(42202)),
        ("GET", "/subjects/s/versions/first", None, 422, json!(42202)),
        ("GET", "/subjects/s/versions/2147483648", None, 422, json!(42202)),
        ("GET", "/subjects/s/versions/0/referencedby", None, 422, json!(42202)),
        ("DELETE", "/subjects/s/versions/0", None, 422, json!(42202)),
        ("POST", "/compatibility/subjects/s/versions/0", text("\"long\""), 422, json!(42202)),
        ("PUT", "/config/s", level("SIDEWAYS"), 422, json!(42203)),
        ("PUT", "/config", Some(json!({})), 422, json!(42203)),
        ("PUT", "/mode/s", mode("SIDEWAYS"), 422, json!(42204)),
        ("PUT", "/mode", mode("IMPORT"), 422, json!(42204)),
        ("POST", of_s, Some(json!({})), 422, json!(422)),
        ("POST", of_s, Some(json!({"schema": "\"string\"", "ruleSet": {}})), 422, json!(42201)),
        ("GET", "/nowhere", None, 404, json!(404)),
        ("PATCH", "/subjects", None, 405, json!(405)),
    ];
    each(&api, rows).await;
}

#[tokio::test]
async fn what_is_asked_for_with_parameters_is_answered_with_them() {
    let api = api().await;
    for (subject, schema) in
        [("a-value", "\"int\""), ("a-value", "\"long\""), ("b", "\"int\""), ("b", "\"double\"")]
    {
        assert_eq!(api.call("POST", &format!("/subjects/{subject}/versions"), text(schema)).await.0, 200);
    }
    let place = |subject: &str, version: u32| json!({"subject": subject, "version": version});
    let whole = |subject: &str, version: u32, id: u32, schema: &str| json!({"subject": subject, "version": version, "id": id, "schema": schema});
    let rows = vec![
        ("GET", "/", None, 200, json!({})),
        ("GET", "/contexts?offset=0&limit=-1", None, 200, json!(["."])),
        ("GET", "/schemas/types", None, 200, json!(["AVRO"])),
        (
            "GET",
            "/subjects?deleted=False&deleted_only=False&offset=0&limit=-1",
            None,
            200,
            json!(["a-value", "b"]),
        ),
        ("GET", "/subjects?subjectPrefix=a-", None, 200, json!(["a-value"])),
        ("GET", "/subjects?subjectPrefix=:*:b", None, 200, json!(["b"])),
        ("GET", "/subjects?offset=1&limit=5", None, 200, json!(["b"])),
        ("GET", "/subjects?limit=1", None, 200, json!(["a-value"])),
        ("GET", "/subjects/b/versions?offset=1", None, 200, json!([1, 2][1..])),
        ("GET", "/subjects/b/versions/-1", None, 200, whole("b", 2, 3, "\"double\"")),
        ("GET", "/subjects/b/versions/latest/schema", None, 200, json!("double")),
        ("GET", "/subjects/b/versions/1/referencedby", None, 200, json!([])),
        ("GET", "/subjects/b/metadata?deleted=false", None, 200, whole("b", 2, 3, "\"double\"")),
        ("GET", "/schemas/ids/1", None, 200, json!({"schema": "\"int\""})),
        ("GET", "/schemas/ids/1?fetchMaxId=true", None, 200, json!({"schema": "\"int\"", "maxId": 3})),
        ("GET", "/schemas/ids/1?subject=b", None, 200, json!({"schema": "\"int\""})),
        ("GET", "/schemas/ids/1/schema", None, 200, json!("int")),
        ("GET", "/schemas/ids/1/subjects", None, 200, json!(["a-value", "b"])),
        ("GET", "/schemas/ids/1/subjects?subject=b", None, 200, json!(["b"])),
        ("GET", "/schemas/ids/1/versions", None, 200, json!([place("a-value", 1), place("b", 1)])),
        (
            "GET",
            "/schemas?subjectPrefix=b&latestOnly=true",
            None,
            200,
            json!([whole("b", 2, 3, "\"double\"")]),
        ),
        (
            "GET",
            "/schemas?limit=3",
            None,
            200,
            json!([
                whole("a-value", 1, 1, "\"int\""),
                whole("a-value", 2, 2, "\"long\""),
                whole("b", 1, 1, "\"int\"")
            ]),
        ),
    ];
    each(&api, rows).await;
}

#[tokio::test]
async fn levels_are_set_taken_back_and_inherited() {
    let api = api().await;
    let rows = vec![
        ("GET", "/config", None, 200, json!({"compatibilityLevel": "BACKWARD"})),
        ("GET", "/config/b?defaultToGlobal=true", None, 200, json!({"compatibilityLevel": "BACKWARD"})),
        (
            "PUT",
            "/config/b",
            Some(json!({"compatibilityLevel": "full"})),
            200,
            json!({"compatibility": "FULL"}),
        ),
        ("GET", "/config/b?defaultToGlobal=True", None, 200, json!({"compatibilityLevel": "FULL"})),
        ("DELETE", "/config/b", None, 200, json!({"compatibilityLevel": "FULL"})),
        ("GET", "/config/b", None, 404, json!(40408)),
        ("PUT", "/config", Some(json!({"compatibility": "NONE"})), 200, json!({"compatibility": "NONE"})),
        ("DELETE", "/config", None, 200, json!({"compatibilityLevel": "NONE"})),
        ("GET", "/config", None, 200, json!({"compatibilityLevel": "BACKWARD"})),
    ];
    each(&api, rows).await;
}

#[tokio::test]
async fn a_subject_may_have_slashes_and_spaces() {
    let api = api().await;
    let escaped = "com%2Fshop%20v1%2Forders";
    let (status, first) = api.call("POST", &format!("/subjects/{escaped}/versions"), text("\"int\"")).await;
    assert_eq!(status, 200, "{first}");
    assert_eq!(api.call("GET", "/subjects", None).await.1, json!(["com/shop v1/orders"]));
    let level = Some(json!({"compatibility": "FULL"}));
    assert_eq!(api.call("PUT", &format!("/config/{escaped}"), level).await.0, 200);
    assert_eq!(api.call("GET", &format!("/subjects/{escaped}/versions/1"), None).await.1["version"], 1);
}

#[tokio::test]
async fn a_verdict_says_why_to_who_asks_for_reasons() {
    let api = api().await;
    let (versions, latest) =
        ("/compatibility/subjects/s/versions", "/compatibility/subjects/s/versions/latest");
    for path in [versions, latest] {
        let answer = api.call("POST", &format!("{path}?verbose=true"), text("\"int\"")).await;
        assert_eq!(answer, (200, json!({"is_compatible": true})), "with nothing");
    }
    for schema in ["\"string\"", "\"bytes\""] {
        assert_eq!(api.call("POST", "/subjects/s/versions", text(schema)).await.0, 200);
    }
    for path in [versions, latest, "/compatibility/subjects/s/versions/1"] {
        let answer = api.call("POST", path, text("\"int\"")).await;
        assert_eq!(answer, (200, json!({"is_compatible": false})));
        let (_, answer) =
            api.call("POST", &format!("{path}?normalize=True&verbose=True"), text("\"int\"")).await;
        let messages = answer["messages"].as_array().expect("reasons");
        assert!(messages[0].as_str().expect("text").contains("TYPE_MISMATCH"), "{answer}");
        assert!(messages.contains(&json!("{compatibility: 'BACKWARD'}")), "{answer}");
    }
    let refused = api.call("POST", "/subjects/s/versions", text("\"int\"")).await.1;
    let message = refused["message"].as_str().expect("text");
    assert!(message.contains("TYPE_MISMATCH") && message.contains("{oldSchemaVersion: 2}"), "{message}");
}

#[tokio::test]
async fn a_schema_is_found_in_any_writing() {
    let api = api().await;
    let plain =
        r#"{"type":"record","name":"Thing","namespace":"io.test","fields":[{"name":"id","type":"string"}]}"#;
    let others = [
        r#"{ "type": "record", "name": "Thing", "namespace": "io.test", "fields": [{"name": "id", "type": "string"}] }"#,
        r#"{"fields":[{"type":"string","name":"id"}],"namespace":"io.test","name":"Thing","type":"record"}"#,
        r#"{"type":"record","name":"io.test.Thing","fields":[{"name":"id","type":{"type":"string"}}]}"#,
    ];
    let (_, first) = api.call("POST", "/subjects/s/versions", text(plain)).await;
    for other in others {
        for query in ["", "?normalize=true"] {
            let (status, found) = api.call("POST", &format!("/subjects/s{query}"), text(other)).await;
            assert_eq!((status, &found["id"], &found["version"]), (200, &first["id"], &json!(1)), "{other}");
            let again = api.call("POST", &format!("/subjects/s/versions{query}"), text(other)).await;
            assert_eq!(again, (200, first.clone()), "{other}");
        }
        assert_eq!(api.call("POST", "/subjects/other/versions", text(other)).await, (200, first.clone()));
    }
    assert_eq!(api.call("GET", "/subjects/s/versions", None).await.1, json!([1]));
    let documented = plain.replace("\"name\":\"Thing\"", "\"name\":\"Thing\",\"doc\":\"what it is\"");
    assert_eq!(api.call("POST", "/subjects/s", text(&documented)).await.1["error_code"], 40403);
    let (_, second) = api.call("POST", "/subjects/s/versions", text(&documented)).await;
    assert_ne!(second["id"], first["id"], "documentation makes another schema");
}

/// Rows of a release that told schemas apart by their JSON.
#[tokio::test]
async fn two_ids_of_one_schema_stay_readable_and_the_first_is_given_out() {
    let rows = Arc::new(Rows::default());
    for (key, value) in [
        ("schemas/id/0000000001", r#"{"type":"enum","name":"io.E","symbols":["A"]}"#),
        ("schemas/id/0000000002", r#"{"type":"enum","name":"E","namespace":"io","symbols":["A"]}"#),
        ("schemas/id/0000000003", r#"{"type":"no type of Avro's"}"#),
        ("schemas/subject/s/0000000001", "2"),
        ("schemas/subject/t/0000000001", "1"),
        ("schemas/subject/u/0000000001", "3"),
    ] {
        rows.rows.lock().expect("nobody panics").insert(key.into(), value.into());
    }
    let api = Api::new(&serve(open(&rows)).await);
    let same = || text(r#"{"symbols":["A"],"name":"io.E","type":"enum"}"#);
    assert_eq!(api.call("POST", "/subjects/s/versions", same()).await, (200, json!({"id": 2})));
    assert_eq!(api.call("POST", "/subjects/s", same()).await.1["id"], 2);
    assert_eq!(api.call("POST", "/subjects/v/versions", same()).await, (200, json!({"id": 1})));
    assert_eq!(api.call("GET", "/schemas/ids/2", None).await.0, 200);
    assert_eq!(api.call("GET", "/schemas/ids/3", None).await.0, 200);
    assert_eq!(api.call("POST", "/subjects/u/versions", same()).await.0, 409, "it cannot be compared");
}
