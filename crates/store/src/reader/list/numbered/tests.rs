//! Pages by number against a naive answer, and which end they are read from.

use super::*;
use crate::reader::list::{
    kinds, partitions,
    tests::{explain, filled, filters, matches},
};

#[test]
fn every_page_of_every_filter_is_what_a_sorted_list_has_there() {
    let (_dir, reader, rows) = filled();
    for filter in filters() {
        let kept = rows.iter().filter(|row| matches(&filter, row));
        let mut oldest_first: Vec<Cursor> = kept.map(|row| Cursor { created: row.created, run: row.run }).collect();
        oldest_first.sort_unstable();
        let newest_first: Vec<Cursor> = oldest_first.iter().rev().copied().collect();
        let total = oldest_first.len() as u64;
        let size = (total / 5).max(7);
        for (is_newest_first, expected) in [(false, &oldest_first), (true, &newest_first)] {
            for number in 1..=total / size + 2 {
                let asked = NumberedPage { number, size, newest_first: is_newest_first };
                let (page, counted) = reader.page(&filter, asked).unwrap();
                let page: Vec<Cursor> = page.iter().map(|row| Cursor { created: row.created, run: row.run }).collect();
                let from = usize::try_from((number - 1) * size).unwrap();
                let wanted: Vec<Cursor> =
                    expected.iter().skip(from).take(usize::try_from(size).unwrap()).copied().collect();
                assert_eq!((page, counted), (wanted, total), "{filter:?}, {asked:?}");
            }
        }
    }
}

#[test]
fn a_page_is_read_from_the_end_that_is_nearer() {
    let at = |number, newest_first| NumberedPage { number, size: 10, newest_first }.within(1_000_000);
    let stretch = |newest_first, skip| Some(Stretch { newest_first, skip, take: 10 });
    assert_eq!(at(1, true), stretch(true, 0));
    assert_eq!(at(100_000, true), stretch(false, 0), "the last page, newest first, is the first one, oldest first");
    assert_eq!(at(100_000, false), stretch(true, 0));
    assert_eq!(at(75_000, true), stretch(false, 250_000));
    assert_eq!(at(100_001, true), None);
    assert_eq!(at(u64::MAX, true), None);
    let short = NumberedPage { number: 3, size: 10, newest_first: true }.within(25);
    assert_eq!(short, Some(Stretch { newest_first: false, skip: 0, take: 5 }));
}

#[test]
fn pages_by_number_are_led_by_an_index_and_sort_nothing() {
    let (dir, _reader, _rows) = filled();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let kinds = kinds(&conn).unwrap();
    let mut seen = 0;
    for filter in filters() {
        let mut indexes = vec![LeadingIndex::Rows];
        indexes.extend((0..filter.labels.len()).filter(|at| filter.labels[*at].can_lead()).map(LeadingIndex::Label));
        for index in indexes {
            for newest_first in [false, true] {
                let partitions = partitions(&conn, kinds.clone(), &filter).unwrap();
                let plan = Plan { index, partitions };
                for query in ordered(&plan, &filter, Stretch { newest_first, skip: 5, take: 10 }) {
                    seen += 1;
                    let steps = explain(&conn, &query.sql);
                    let odd = |step: &&String| {
                        let constant = step.contains("CONSTANT ROW") || step.contains("(subquery");
                        step.contains("TEMP B-TREE")
                            || step.contains("AUTOMATIC")
                            || step.starts_with("SCAN") && !constant
                    };
                    assert_eq!(steps.iter().find(odd), None, "{}\n{steps:#?}", query.sql);
                }
            }
        }
    }
    assert!(seen > 50, "{seen} queries were looked at");
}
