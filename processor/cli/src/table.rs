//! Tables on a terminal, with columns as wide as their cells.

use std::borrow::Cow;

use everlog_config::logs::visible;

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// The lines of a table, its heading first.
pub fn lines<const COLUMNS: usize>(
    columns: [(&str, Side); COLUMNS],
    rows: &[[String; COLUMNS]],
) -> Vec<String> {
    let rows: Vec<_> = rows.iter().map(|row| row.each_ref().map(|cell| visible::line(cell))).collect();
    let mut widths = columns.map(|(name, _)| name.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heading = columns.map(|(name, _)| Cow::Borrowed(name));
    let line = |row: &[Cow<'_, str>; COLUMNS]| {
        let cells = row.iter().zip(columns).zip(widths).map(|((cell, (_, side)), width)| match side {
            Side::Left => format!("{cell:<width$}"),
            Side::Right => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    std::iter::once(&heading).chain(&rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_as_wide_as_its_widest_cell() {
        let rows = [["node-a".to_owned(), "7".to_owned()], ["b".to_owned(), "1024".to_owned()]];
        let shown = lines([("NODE", Side::Left), ("LAG", Side::Right)], &rows);
        assert_eq!(shown, ["NODE     LAG", "node-a     7", "b       1024"]);
        let hostile = [["a\nb".to_owned(), "\u{1b}[2J".to_owned()]];
        let shown = lines([("NODE", Side::Left), ("LAG", Side::Right)], &hostile);
        assert_eq!(shown, ["NODE        LAG", "a\\nb  \\u{1b}[2J"]);
    }
}
