//! Every text that refuses a query.

use std::collections::BTreeMap;

use everlog_visibility::query::{Query, RunAttributes};
use expect_test::{expect, expect_file};

/// Each refused query with its text. A count is asked where the query begins with a `#`.
fn refusals(queries: &[&str]) -> String {
    let types = [("K", 2), ("L", 7), ("T", 1), ("I", 3), ("D", 4), ("B", 5), ("M", 6)];
    let custom: BTreeMap<_, _> = types.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
    let names = RunAttributes { custom: &custom };
    let mut shown = String::new();
    for query in queries {
        let refused = match query.strip_prefix('#') {
            Some(count) => Query::for_count(count, &names),
            None => Query::for_list(query, &names),
        };
        let text = refused.expect_err(query).to_string();
        shown.push_str(&format!("{query}\n  {}\n", text.replace("invalid query: ", "_: ")));
    }
    shown
}

#[test]
fn what_does_not_follow_the_grammar() {
    expect![[r#"
        K =
          _: malformed SQL query: syntax error at position 31
        K == 'a'
          _: malformed SQL query: syntax error at position 32
        K = 'a
          _: malformed SQL query: syntax error at position 34 near 'a'
        K = 'a' I = 1
          _: malformed SQL query: syntax error at position 37 near 'I'
        K IN ()
          _: malformed SQL query: syntax error at position 35
        K IN 'a'
          _: malformed SQL query: syntax error at position 36 near 'a'
        (K = 'a'
          _: malformed SQL query: syntax error at position 36
        K = 'a')
          _: malformed SQL query: syntax error at position 36
        K = 'a' AND or
          _: malformed SQL query: syntax error at position 42 near 'or'
        SELECT
          _: malformed SQL query: syntax error at position 34 near 'select'
        order by
          _: malformed SQL query: syntax error at position 30
        Status = Status Status
          _: malformed SQL query: syntax error at position 50 near 'status'
        I = 1 /* open
          _: malformed SQL query: syntax error at position 41 near '/* open'
        I = 1_000
          _: malformed SQL query: syntax error at position 33 near '1'
        K NOT = 'a'
          _: malformed SQL query: syntax error at position 35
        I BETWEEN 1 OR 2
          _: malformed SQL query: syntax error at position 42 near 'or'
    "#]]
    .assert_eq(&refusals(&[
        "K =",
        "K == 'a'",
        "K = 'a",
        "K = 'a' I = 1",
        "K IN ()",
        "K IN 'a'",
        "(K = 'a'",
        "K = 'a')",
        "K = 'a' AND or",
        "SELECT",
        "order by",
        "Status = Status Status",
        "I = 1 /* open",
        "I = 1_000",
        "K NOT = 'a'",
        "I BETWEEN 1 OR 2",
    ]));
}

#[test]
fn what_does_not_fit_an_attribute() {
    expect_file!["errors/what_does_not_fit_an_attribute.txt"].assert_eq(&refusals(&[
        "Nope = 1",
        "`a``b` = 1",
        "K",
        "K LIKE 'a%'",
        "K NOT LIKE 'a%' ESCAPE '!'",
        "K REGEXP 'a.*'",
        "K <=> 'a'",
        "K STARTS_WITH 5",
        "K NOT STARTS_WITH true",
        "ExecutionStatus STARTS_WITH 'Running'",
        "L > 'a'",
        "L STARTS_WITH 'a'",
        "L BETWEEN 'a' AND 'b'",
        "L = 5",
        "L IN ('a', 5)",
        "T > 'a'",
        "T IN ('a', \"b'c\")",
        "T = 5",
        "T = '  '",
        "T BETWEEN 'a' AND 'b'",
        "B BETWEEN false AND true",
        "B IS TRUE",
        "I = NULL",
        "I = -1.5",
        "I = 0x1F",
        "I = :x",
        "I = ?",
        "I = 1e400",
        "M = '2026-01-01'",
        "M = 1.5",
        "ExecutionStatus = 'running'",
        "ExecutionStatus = 1.5",
        "ExecutionDuration = '1y'",
        "ExecutionDuration = '-1:00:00'",
        "ExecutionDuration = '0:60:00'",
        "ExecutionDuration = '0:00:60'",
    ]));
}

#[test]
fn what_is_not_served() {
    expect_file!["errors/what_is_not_served.txt"].assert_eq(&refusals(&[
        "upper(K) = 'A'",
        "upper(K)",
        "K = upper('a')",
        "K = group_concat(K)",
        "K = a",
        "K = `a b`",
        "5",
        "true",
        "NULL",
        "I + 1",
        "!I",
        "1 = 1",
        "true = true",
        "I + 1 = 2",
        "I = 1 + 1",
        "I = (1)",
        "(I) = 1",
        "(I, K) = 1",
        "(I = 1) IS NULL",
        "I = 1 IS NULL",
        "I IN (select 1)",
        "I IN ::list",
        "exists (select 1)",
        "case when I then 1 end",
        "I = 1 HAVING I = 2",
        "I = 1 UNION SELECT 1",
        "ORDER BY K",
        "ORDER BY StartTime, CloseTime",
        "#ORDER BY StartTime",
        "I = 1 LIMIT 1",
        "I = 1 FOR UPDATE",
        "I = 1 LOCK IN SHARE MODE",
        "GROUP BY ExecutionStatus",
        "#GROUP BY ExecutionStatus, WorkflowType",
        "#GROUP BY I",
        "#GROUP BY Nope",
        "#GROUP BY 1",
        "#GROUP BY ScheduleId",
    ]));
}

#[test]
fn what_is_too_much() {
    let deep = format!("{}I = 1", "(".repeat(10_000));
    let calls = format!("I = {}", "f(".repeat(10_000));
    let long = vec!["I = 1"; 5_001].join(" OR ");
    let texts = refusals(&[&deep, &calls, &long]);
    let texts: Vec<_> = texts.lines().skip(1).step_by(2).map(str::trim).collect();
    expect![[r#"
          _: malformed SQL query: max nesting level reached at position 228
          _: malformed SQL query: max nesting level reached at position 432
          _: a filter has more than 5000 tests"#]]
    .assert_eq(&texts.join("\n"));
}
