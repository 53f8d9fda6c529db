//! Queries that nobody writes: a tree is read from its own print, and nothing that comes in stops the process.

use std::collections::BTreeMap;

use everlog_visibility::attribute::Attribute;
use everlog_visibility::query::syntax::{
    IsWhat, Operand, Operator, OrderTerm, Predicate, SyntaxNode, SyntaxTree, Unsupported, UnsupportedKind,
};
use everlog_visibility::query::{Filter, Query, RunAttributes, parse};
use everlog_visibility::record::Values;
use everlog_visibility::value::Value;
use proptest::prelude::*;

const RECORDED: &str = include_str!("visibility-recorded/lists.txt");

/// A run that has nothing.
struct Nothing;

impl Values for Nothing {
    fn value(&self, _attribute: &Attribute) -> Option<Value<'_>> {
        None
    }
}

fn custom() -> BTreeMap<String, i32> {
    let types = [("MyKeyword", 2), ("MyList", 7), ("MyText", 1), ("MyInt", 3), ("MyBool", 5), ("MyTime", 6)];
    types.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

fn operand() -> impl Strategy<Value = Operand> {
    let other =
        |source: &str, kind: UnsupportedKind| Operand::Other(Unsupported { source: source.into(), kind });
    prop_oneof![
        "[A-Za-z_@][A-Za-z0-9_@]{0,8}".prop_map(Operand::Name),
        prop_oneof![Just("order"), Just("Status"), Just("NOT"), Just("null"), Just("x"), Just("a.b")]
            .prop_map(|name| Operand::Name(name.into())),
        ".{1,8}".prop_map(Operand::Name),
        ".{0,12}".prop_map(Operand::String),
        r#"['"\\\n\x00\x08%a]{0,6}"#.prop_map(Operand::String),
        any::<i64>().prop_map(|number| Operand::Number(number.to_string())),
        "[0-9]{0,3}[.][0-9]{1,3}(e[+-]?[0-9])?".prop_map(Operand::Number),
        any::<bool>().prop_map(Operand::Bool),
        Just(other("null", UnsupportedKind::Node("*sqlparser.NullVal"))),
        Just(other("f(a, (b))", UnsupportedKind::Function)),
        Just(other("0x1F", UnsupportedKind::Number("0x1F".into()))),
        Just(other("a + -1.5", UnsupportedKind::Node("*sqlparser.BinaryExpr"))),
    ]
}

fn predicate() -> impl Strategy<Value = Predicate> {
    use Operator::{
        Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Like, NotEqual, NotLike, NotRegexp, NotStartsWith,
        NullSafeEqual, Regexp, StartsWith,
    };
    let operators = [
        Equal,
        NotEqual,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual,
        NullSafeEqual,
        StartsWith,
        NotStartsWith,
        Like,
        NotLike,
        Regexp,
        NotRegexp,
    ];
    let is_what = prop_oneof![Just(IsWhat::Null), Just(IsWhat::True), Just(IsWhat::False)];
    prop_oneof![
        (proptest::sample::select(operators.to_vec()), operand())
            .prop_map(|(operator, right)| Predicate::Compare(operator, right)),
        (any::<bool>(), proptest::collection::vec(operand(), 1..4)).prop_map(|(is_negated, values)| {
            let operator = if is_negated { Operator::NotIn } else { Operator::In };
            Predicate::Compare(operator, Operand::Tuple(values))
        }),
        (any::<bool>(), operand(), operand()).prop_map(|(is_negated, right, escape)| {
            let operator = if is_negated { NotLike } else { Like };
            Predicate::Escaped(operator, right, escape)
        }),
        (any::<bool>(), operand(), operand()).prop_map(|(not, from, to)| Predicate::Between(not, from, to)),
        (any::<bool>(), is_what).prop_map(|(is_negated, what)| Predicate::Is(is_negated, what)),
    ]
}

/// Leaves, each with what is done once it stands on the stack.
fn nodes() -> impl Strategy<Value = Vec<SyntaxNode>> {
    let leaf = prop_oneof![
        4 => (operand(), predicate()).prop_map(|(left, predicate)| SyntaxNode::Test(left, predicate)),
        1 => operand().prop_map(SyntaxNode::Bare),
    ];
    let steps = proptest::collection::vec((leaf, proptest::collection::vec(0..4, 0..4)), 0..40);
    steps.prop_map(|steps| {
        let (mut nodes, mut operands) = (Vec::new(), 0);
        for (leaf, operations) in steps {
            nodes.push(leaf);
            operands += 1;
            for operation in operations {
                match operation {
                    0 => nodes.push(SyntaxNode::Not),
                    1 if operands > 1 => nodes.push(SyntaxNode::And),
                    2 if operands > 1 => nodes.push(SyntaxNode::Or),
                    _none => continue,
                }
                operands -= usize::from(operation != 0);
            }
        }
        nodes.extend(std::iter::repeat_n(SyntaxNode::And, usize::saturating_sub(operands, 1)));
        nodes
    })
}

fn tree() -> impl Strategy<Value = SyntaxTree> {
    let term = (operand(), any::<bool>()).prop_map(|(by, is_descending)| OrderTerm { by, is_descending });
    let group_by = proptest::collection::vec(operand(), 0..3);
    let order_by = proptest::collection::vec(term, 0..3);
    (nodes(), group_by, order_by).prop_map(|(nodes, group_by, order_by)| SyntaxTree {
        nodes,
        group_by,
        order_by,
    })
}

/// Recorded queries, torn and put together again.
fn mutated() -> impl Strategy<Value = String> {
    let lines: Vec<_> = RECORDED.lines().collect();
    let cuts =
        proptest::collection::vec((proptest::sample::select(lines), 0.0..1.0, 0.0..1.0, ".{0,3}"), 1..6);
    cuts.prop_map(|cuts| {
        let mut query = String::new();
        for (line, from, length, noise) in cuts {
            let chars: Vec<_> = line.chars().collect();
            let at = |share: f64| (chars.len() as f64 * share) as usize;
            let from = at(from);
            query.extend(chars.iter().skip(from).take(at(length)));
            query.push_str(&noise);
        }
        query
    })
}

/// What is done with a query that comes in. What can be read is printed, resolved, sent, and tested.
fn run(query: &str) {
    let custom = custom();
    let names = RunAttributes { custom: &custom };
    if let Ok(tree) = parse(query) {
        assert_eq!(parse(&tree.to_string()).as_ref(), Ok(&tree), "{query}");
    }
    for resolved in [Query::for_list(query, &names), Query::for_count(query, &names)].into_iter().flatten() {
        let filter = resolved.filter;
        assert_eq!(Filter::decode(&filter.encode()).as_ref(), Ok(&filter), "{query}");
        filter.matches(&Nothing);
        filter.conjuncts().count();
        filter.statuses();
        filter.namespace_division();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_read_from_its_print(tree in tree()) {
        let printed = tree.to_string();
        prop_assert_eq!(parse(&printed), Ok(tree), "{}", printed);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        run(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_signs_do_no_harm(query in r#"([()'"`\\=<>!.,;:?a-cxb0-2 \n/*#-]|not |and |in|is |null){0,60}"#) {
        run(&query);
    }

    #[test]
    fn torn_queries_do_no_harm(query in mutated()) {
        run(&query);
    }

    #[test]
    fn bytes_that_are_no_filter_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(filter) = Filter::decode(&bytes) {
            filter.matches(&Nothing);
        }
    }

    #[test]
    fn damaged_filters_do_no_harm(query in mutated(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let custom = custom();
        if let Ok(query) = Query::for_list(&query, &RunAttributes { custom: &custom }) {
            let mut bytes = query.filter.encode().to_vec();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            if let Ok(filter) = Filter::decode(&bytes) {
                filter.matches(&Nothing);
                filter.conjuncts().count();
                filter.statuses();
            }
        }
    }
}

#[test]
fn recorded_queries_are_read_from_their_print() {
    RECORDED.lines().for_each(run);
}

#[test]
fn deep_and_long_queries_overflow_no_stack() {
    let times = |text: &str, bytes: usize| text.repeat(bytes / text.len());
    let size = 64 * 1024;
    run(&format!("{}MyInt = 1", times("NOT ", size)));
    run(&format!("{}MyInt = 1", times("(", size)));
    run(&format!("{}MyInt = 1{}", "(".repeat(199), ")".repeat(199)));
    run(&format!("MyInt = {}1", times("- ", size)));
    run(&format!("MyInt = {}1", times("~", size)));
    run(&format!("MyInt = 1{}", times(" IS NULL", size)));
    run(&format!("MyInt = 1{}", times(" + 1", size)));
    run(&format!("MyInt = 1{}", times(" AND MyInt = 1", size)));
    run(&format!("MyInt = 1{}", times(" OR NOT MyInt = 1", size)));
    run(&format!("MyInt IN (1{})", times(", 2", size)));
    run(&format!("MyKeyword = '{}'", times("ä", size)));
    run(&format!("MyText = '{}'", times("a ", size)));
    run(&format!("MyText = '{}'", times("a-", size)));
    run(&format!("`{}` = 1", times("``", size)));
    run(&times("/**/", size));
    run(&times("-- \n", size));
}
