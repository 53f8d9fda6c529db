//! One page of a list from the pages of all partitions.

use crate::index::list::{ListPage, ListedRun};
use crate::index::order_key::OrderKey;

/// What came of the partitions' pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// In order.
    pub runs: Vec<ListedRun>,
    /// Where the list goes on; none where nothing follows.
    pub next: Option<OrderKey>,
    /// Partitions by their place among the pages: the page is short because theirs end here. Whoever wants a longer one
    /// asks them for what follows `next`, and the others not again.
    pub short: Vec<usize>,
}

/// Merges the partitions' pages of one list, which all begin behind the same key. Up to `rows_max` runs come, in the list's order, as
/// far as every page has all that stands before them; further ones of `pages` stay there, for a page that is asked for again.
pub fn merge(pages: &mut [ListPage], rows_max: usize) -> Merged {
    // No page is known to have what stands behind its end.
    let end = pages.iter().filter_map(|page| page.reached).min();
    let is_known = |key: &OrderKey| end.is_none_or(|end| *key <= end);
    let known: usize = pages.iter().map(|page| page.runs.partition_point(|run| is_known(&run.key))).sum();
    let mut runs = Vec::with_capacity(known.min(rows_max));
    for page in pages.iter_mut() {
        page.runs.reverse();
    }
    while runs.len() < rows_max {
        let firsts = pages.iter_mut().filter(|page| page.runs.last().is_some_and(|run| is_known(&run.key)));
        let first = firsts.min_by_key(|page| page.runs.last().map(|run| run.key));
        let Some(run) = first.and_then(|page| page.runs.pop()) else { break };
        runs.push(run);
    }
    for page in pages.iter_mut() {
        page.runs.reverse();
    }
    let is_full = runs.len() == rows_max;
    let is_over = end.is_none() && pages.iter().all(|page| page.runs.is_empty());
    let next = match runs.last() {
        _ if is_over => None,
        Some(last) if is_full => Some(last.key),
        // Everything up to the end was looked at.
        Some(_) | None => end,
    };
    let is_short = |page: &ListPage| !is_full && page.reached.is_some() && page.reached == end;
    let short = (0..pages.len()).filter(|place| is_short(&pages[*place])).collect();
    Merged { runs, next, short }
}
