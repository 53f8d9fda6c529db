//! Every text that refuses a query.

use std::collections::BTreeMap;

use everlog_visibility::query::{Query, RunAttributes};
use expect_test::expect;

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
    expect![[r#"
        Nope = 1
          _: invalid expression: column name 'Nope' is not a valid search attribute
        `a``b` = 1
          _: invalid expression: column name 'ab' is not a valid search attribute
        K
          _: invalid expression: incomplete expression
        K LIKE 'a%'
          _: invalid expression: invalid operator 'like' in `K like 'a%'`
        K NOT LIKE 'a%' ESCAPE '!'
          _: invalid expression: invalid operator 'not like' in `K not like 'a%' escape '!'`
        K REGEXP 'a.*'
          _: invalid expression: invalid operator 'regexp' in `K regexp 'a.*'`
        K <=> 'a'
          _: invalid expression: invalid operator '<=>' in `K <=> 'a'`
        K STARTS_WITH 5
          _: invalid expression: right-hand side of 'starts_with' must be a literal string (got: 5)
        K NOT STARTS_WITH true
          _: invalid expression: right-hand side of 'not starts_with' must be a literal string (got: true)
        ExecutionStatus STARTS_WITH 'Running'
          _: invalid expression: right-hand side of 'starts_with' must be a literal string (got: 1)
        L > 'a'
          _: invalid expression: operator '>' not supported for KeywordList type search attribute in `L > 'a'`
        L STARTS_WITH 'a'
          _: invalid expression: operator 'starts_with' not supported for KeywordList type search attribute in `L starts_with 'a'`
        L BETWEEN 'a' AND 'b'
          _: invalid expression: cannot do range condition on search attribute 'L' of type KeywordList
        L = 5
          _: invalid expression: unexpected value type (expected string, got 5)
        L IN ('a', 5)
          _: invalid expression: unexpected value type in tuple (expected string, got 5)
        T > 'a'
          _: invalid expression: operator '>' not supported for Text type search attribute in `T > 'a'`
        T IN ('a', "b'c")
          _: invalid expression: operator 'in' not supported for Text type search attribute in `T in ('a', 'b''c')`
        T = 5
          _: invalid expression: unexpected value type (expected string, got 5)
        T = '  '
          _: invalid expression: unexpected value for Text type search attribute (no tokens found in '  ')
        T BETWEEN 'a' AND 'b'
          _: invalid expression: cannot do range condition on search attribute 'T' of type Text
        B BETWEEN false AND true
          _: invalid expression: cannot do range condition on search attribute 'B' of type Bool
        B IS TRUE
          _: invalid expression: 'IS' operator can only be used with 'NULL' or 'NOT NULL'
        I = NULL
          _: invalid expression: unexpected value type *sqlparser.NullVal
        I = -1.5
          _: invalid expression: unexpected value type *sqlparser.UnaryExpr
        I = 0x1F
          invalid expression: unable to parse 0x1F
        I = :x
          invalid expression: unable to parse :x
        I = ?
          invalid expression: unable to parse :v1
        I = 1e400
          invalid expression: unable to parse 1e400
        M = '2026-01-01'
          _: invalid expression: unable to parse datetime '2026-01-01'
        M = 1.5
          _: invalid expression: unexpected value type float64 for search attribute M
        ExecutionStatus = 'running'
          _: invalid expression: invalid ExecutionStatus value 'running'
        ExecutionStatus = 1.5
          _: invalid expression: unexpected value type float64 for search attribute ExecutionStatus
        ExecutionDuration = '1y'
          _: invalid value for search attribute ExecutionDuration: 1y (invalid duration)
        ExecutionDuration = '-1:00:00'
          _: invalid value for search attribute ExecutionDuration: -1:00:00 (invalid duration: hours must be a positive number)
        ExecutionDuration = '0:60:00'
          _: invalid value for search attribute ExecutionDuration: 0:60:00 (invalid duration: minutes must be from 0 to 59)
        ExecutionDuration = '0:00:60'
          _: invalid value for search attribute ExecutionDuration: 0:00:60 (invalid duration: seconds must be from 0 to 59)
    "#]].assert_eq(&refusals(&[
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
    expect![[r#"
        upper(K) = 'A'
          _: invalid expression: must be a column name but was *sqlparser.FuncExpr
        upper(K)
          _: operation is not supported: function expression
        K = upper('a')
          _: operation is not supported: nested func
        K = group_concat(K)
          _: operation is not supported: 'group_concat'
        K = a
          _: operation is not supported: column name on the right side of comparison expression (did you forget to quote 'a'?)
        K = `a b`
          _: operation is not supported: column name on the right side of comparison expression (did you forget to quote '`a b`'?)
        5
          _: operation is not supported: expression of type *sqlparser.SQLVal
        true
          _: operation is not supported: expression of type sqlparser.BoolVal
        NULL
          _: operation is not supported: expression of type *sqlparser.NullVal
        I + 1
          _: operation is not supported: expression of type *sqlparser.BinaryExpr
        !I
          _: operation is not supported: expression of type *sqlparser.UnaryExpr
        1 = 1
          _: invalid expression: must be a column name but was *sqlparser.SQLVal
        true = true
          _: invalid expression: must be a column name but was sqlparser.BoolVal
        I + 1 = 2
          _: invalid expression: must be a column name but was *sqlparser.BinaryExpr
        I = 1 + 1
          _: invalid expression: unexpected value type *sqlparser.BinaryExpr
        I = (1)
          _: invalid expression: unexpected value type *sqlparser.ParenExpr
        (I) = 1
          _: invalid expression: must be a column name but was *sqlparser.ParenExpr
        (I, K) = 1
          _: invalid expression: must be a column name but was sqlparser.ValTuple
        (I = 1) IS NULL
          _: invalid expression: must be a column name but was *sqlparser.ParenExpr
        I = 1 IS NULL
          _: invalid expression: must be a column name but was *sqlparser.ComparisonExpr
        I IN (select 1)
          _: invalid expression: unexpected value type *sqlparser.Subquery
        I IN ::list
          _: invalid expression: unexpected value type sqlparser.ListArg
        exists (select 1)
          _: operation is not supported: expression of type *sqlparser.ExistsExpr
        case when I then 1 end
          _: operation is not supported: expression of type *sqlparser.CaseExpr
        I = 1 HAVING I = 2
          _: operation is not supported: 'having' clause
        I = 1 UNION SELECT 1
          _: operation is not supported: 'union' clause
        ORDER BY K
          _: operation is not supported: 'order by' clause
        ORDER BY StartTime, CloseTime
          _: operation is not supported: 'order by' clause
        #ORDER BY StartTime
          _: operation is not supported: 'order by' clause
        I = 1 LIMIT 1
          _: operation is not supported: 'limit' clause
        I = 1 FOR UPDATE
          _: operation is not supported: 'for update' clause
        I = 1 LOCK IN SHARE MODE
          _: operation is not supported: 'lock in share mode' clause
        GROUP BY ExecutionStatus
          _: operation is not supported: 'group by' clause
        #GROUP BY ExecutionStatus, WorkflowType
          _: operation is not supported: 'group by' clause supports only a single field
        #GROUP BY I
          _: operation is not supported: 'group by' clause is only supported for ExecutionStatus search attribute
        #GROUP BY Nope
          _: invalid expression: column name 'Nope' is not a valid search attribute
        #GROUP BY 1
          _: invalid expression: must be a column name but was *sqlparser.SQLVal
        #GROUP BY ScheduleId
          _: operation is not supported: 'group by' clause is only supported for ExecutionStatus search attribute
    "#]].assert_eq(&refusals(&[
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
