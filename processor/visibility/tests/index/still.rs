//! Lists and counts of an index that nothing happens to.

use std::collections::BTreeMap;

use everlog_visibility::attribute::AttributeType;
use everlog_visibility::index::{
    CountRequest, CountScan, CounterChanges, GroupValue, ListPosition, ListRequest, ListScan, ListToken,
    OrderKey, RunCounts, TokenScope, change, merge,
};
use everlog_visibility::query::{Filter, SortOrder};
use everlog_visibility::record::Record;
use uuid::Uuid;

use crate::model::{NAMESPACES, Partition, Scans, grouped, listed};
use crate::queries;
use crate::random::Random;

/// Reads a list to its end, page by page, with short slices.
fn pages(
    partitions: &[Partition],
    (namespace_id, filter, order): (Uuid, &Filter, Option<SortOrder>),
    random: &mut Random,
) -> Vec<String> {
    let scope = TokenScope::new(namespace_id, "q", order, [1; 16], partitions.len());
    let mut positions: Vec<_> = partitions.iter().map(|partition| partition.position).collect();
    let (mut after, mut runs): (Option<OrderKey>, Vec<String>) = (None, Vec::new());
    loop {
        let rows_max = 1 + random.below(9);
        let ask = |place: usize, after, random: &mut Random| {
            let mut list = ListScan::new(ListRequest {
                namespace_id,
                filter: filter.clone(),
                order,
                position: positions[place],
                after,
                rows_max: 1 + random.below(6),
                bytes_max: if random.once_in(3) { 200 + random.below(600) } else { usize::MAX },
                visits_max: if random.once_in(3) { 1 + random.below(20) } else { usize::MAX },
            });
            loop {
                let page =
                    list.read(&partitions[place].rows, 1 + random.below(30)).expect("the rows are read");
                if let Some(page) = page {
                    return page;
                }
            }
        };
        let mut pages: Vec<_> = (0..partitions.len()).map(|place| ask(place, after, random)).collect();
        let mut merged = merge(&mut pages, rows_max);
        // Whose pages end too early are asked again, or the page is short.
        while merged.runs.len() < rows_max && !merged.short.is_empty() && random.once_in(2) {
            for place in merged.short.clone() {
                pages[place] = ask(place, merged.next, random);
            }
            let missing = rows_max - merged.runs.len();
            let more = merge(&mut pages, missing);
            merged.runs.extend(more.runs);
            (merged.next, merged.short) = (more.next, more.short);
        }
        assert!(merged.runs.len() <= rows_max);
        runs.extend(merged.runs.into_iter().map(|run| run.record.run_id));
        let Some(next) = merged.next else { return runs };
        assert!(after.is_none_or(|after| next > after), "the list stands still");
        let token = ListToken { after: next, positions }.encode(&scope);
        let token = ListToken::read(&token, &scope).expect("a token");
        (after, positions) = (Some(token.after), token.positions);
    }
}

pub fn counted(partition: &Partition, request: CountRequest, random: &mut Random) -> RunCounts {
    let mut count = CountScan::new(request);
    loop {
        if let Some(counts) = count.read(&partition.rows, 1 + random.below(30)).expect("the rows are read") {
            return counts;
        }
    }
}

/// Groups as the model has them.
pub fn texts(counts: &RunCounts) -> BTreeMap<String, i64> {
    let mut texts = BTreeMap::new();
    for (group, count) in &counts.groups {
        let text = match group {
            GroupValue::Missing => String::new(),
            GroupValue::Int(number) => number.to_string(),
            GroupValue::Keyword(text) => text.clone(),
        };
        *texts.entry(text).or_default() += count;
    }
    texts
}

#[test]
fn every_list_has_the_runs_of_the_model_in_its_order_and_every_count_their_number() {
    for seed in 1..=25 {
        let mut random = Random::new(seed);
        let mut partitions: Vec<_> = (0..3).map(Partition::new).collect();
        for partition in &mut partitions {
            let acts = if random.once_in(4) { 900 } else { 120 };
            partition.live(&mut random, acts, &mut Scans::default());
        }
        for _ in 0..40 {
            let namespace_id = *random.of(&NAMESPACES);
            let (filter, order) = (queries::filter(&mut random), queries::order(&mut random));
            let expected = listed(&partitions, namespace_id, &filter, order);
            let found = pages(&partitions, (namespace_id, &filter, order), &mut random);
            assert_eq!(found, expected, "{filter:?} {order:?}");
            let group_by = random.once_in(2).then(|| queries::group_by(&mut random));
            let mut counts = RunCounts::default();
            for partition in &partitions {
                let request = CountRequest {
                    namespace_id,
                    filter: filter.clone(),
                    group_by: group_by.clone(),
                    groups_max: 100,
                };
                counts.add(counted(partition, request, &mut random));
            }
            assert_eq!(counts.count, expected.len() as i64, "{filter:?}");
            if let Some(group_by) = &group_by {
                assert_eq!(
                    texts(&counts),
                    grouped(&partitions, namespace_id, &filter, group_by),
                    "{filter:?}"
                );
            }
        }
    }
}

#[test]
fn a_run_is_found_by_its_id() {
    let mut random = Random::new(7);
    let mut partitions = vec![Partition::new(0)];
    partitions[0].live(&mut random, 300, &mut Scans::default());
    let runs: Vec<_> = partitions[0].runs.iter().map(|(run_id, run)| (*run_id, run.0)).collect();
    for (run_id, namespace_id) in runs {
        let filter = queries::of_run(run_id);
        let found = pages(&partitions, (namespace_id, &filter, None), &mut random);
        assert_eq!(found, [run_id.to_string()]);
        let other = NAMESPACES.into_iter().find(|other| *other != namespace_id).expect("there are two");
        assert_eq!(pages(&partitions, (other, &filter, None), &mut random), [""; 0]);
    }
}

#[test]
fn a_count_has_no_more_groups_than_it_may() {
    let mut random = Random::new(3);
    let mut partition = Partition::new(0);
    partition.live(&mut random, 300, &mut Scans::default());
    let request = CountRequest {
        namespace_id: NAMESPACES[0],
        filter: Filter::default(),
        group_by: Some(queries::named("K", AttributeType::Keyword)),
        groups_max: 2,
    };
    let error = CountScan::new(request).read(&partition.rows, 10_000).unwrap_err();
    assert_eq!(error.to_string(), "more than 2 groups");
}

#[test]
fn runs_of_one_moment_come_in_the_order_of_their_ids_and_none_is_left_out() {
    let mut partition = Partition::new(0);
    let mut counters = CounterChanges::default();
    for number in 0..300 {
        let run_id = Uuid::from_u128(1_000 + number).to_string();
        let record = Record { run_id, status: 1, start_ms: 5, ..Record::default() };
        change(NAMESPACES[0], None, Some(&record), &mut partition.rows, &mut counters);
    }
    counters.flush(&mut partition.rows).expect("counters are sound");
    partition.position = ListPosition::END;
    let mut random = Random::new(1);
    let found = pages(&[partition], (NAMESPACES[0], &Filter::default(), None), &mut random);
    assert_eq!(found, (0..300).map(|number| Uuid::from_u128(1_000 + number).to_string()).collect::<Vec<_>>());
}
