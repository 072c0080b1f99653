//! Lists against a naive answer, and the promise that every one of them is led by an index.

use std::collections::BTreeMap;

use tempfile::TempDir;

use super::*;
use crate::{Batch, Change, Reader, RunRow, Store};

const RUNS: u64 = 20_000;

fn text(word: &str) -> String {
    word.to_owned()
}

fn row(run: u64) -> RunRow {
    // Creation times repeat, so that the order within one moment is tried too.
    let created = Time(i64::try_from(run / 3).unwrap());
    let kind = if run.is_multiple_of(7) { "Job" } else { "Workflow" };
    let namespace = ["default", "team", "lab"][usize::try_from(run % 3).unwrap()];
    let name = if run.is_multiple_of(100) { format!("rare-{run}") } else { format!("run-{run}") };
    let mut row = RunRow::new(RunId(run), namespace, kind, &name, "uid", created);
    row.phase = text(match run % 1000 {
        0..=2 => "Running",
        3..=99 => "Failed",
        _ => "Succeeded",
    });
    row.parent = run.is_multiple_of(50).then_some(RunId(run % 4));
    row.labels = BTreeMap::from([(text("app"), format!("a{}", run % 10)), (text("every"), text("true"))]);
    if run.is_multiple_of(500) {
        row.labels.insert(text("seldom"), format!("s{}", run % 1000));
    }
    row
}

pub(super) fn filled() -> (TempDir, Reader, Vec<RunRow>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let rows: Vec<RunRow> = (1..=RUNS).map(row).collect();
    for chunk in rows.chunks(5_000) {
        let batch = Batch::from_iter(chunk.iter().map(|row| Change::NewRun(Box::new(row.clone()))));
        store.commit_wait(batch).unwrap();
    }
    store.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    (dir, reader, rows)
}

fn equals(key: &str, value: &str) -> LabelTest {
    LabelTest::Equals { key: text(key), value: text(value) }
}

fn starting(key: &str, prefix: &str) -> Option<(String, String)> {
    Some((text(key), text(prefix)))
}

/// Every kind of condition alone, and mixtures in which another one leads.
pub(super) fn filters() -> Vec<Filter> {
    let any = Filter::default;
    let team = || Some(text("team"));
    let phases = || vec![text("Running"), text("Failed"), text("Running")];
    vec![
        any(),
        Filter { namespace: team(), ..any() },
        Filter { kind: Some(text("Job")), ..any() },
        Filter { kind: Some(text("Unknown")), ..any() },
        Filter { phases: phases(), ..any() },
        Filter { namespace: team(), phases: phases(), ..any() },
        Filter { namespace: team(), kind: Some(text("Job")), phases: vec![text("Succeeded")], ..any() },
        Filter { name_prefix: Some(text("rare-1")), ..any() },
        Filter { name_prefix: Some(text("run-")), namespace: team(), ..any() },
        Filter { name_prefix: Some(String::new()), ..any() },
        Filter { name_prefix: Some(text("rare-")), phases: phases(), labels: vec![equals("seldom", "s0")], ..any() },
        Filter { labels: vec![equals("app", "a7")], ..any() },
        Filter { labels: vec![equals("app", "a0"), equals("seldom", "s0")], namespace: team(), ..any() },
        Filter { labels: vec![equals("every", "true")], phases: vec![text("Running")], ..any() },
        Filter { labels: vec![LabelTest::Exists { key: text("seldom") }], ..any() },
        Filter { labels: vec![LabelTest::Exists { key: text("every") }], namespace: team(), ..any() },
        Filter {
            labels: vec![LabelTest::In { key: text("app"), values: vec![text("a1"), text("a2"), text("a1")] }],
            ..any()
        },
        Filter { labels: vec![LabelTest::In { key: text("app"), values: Vec::new() }], ..any() },
        Filter { labels: vec![LabelTest::NotIn { key: text("seldom"), values: vec![text("s0")] }], ..any() },
        Filter { labels: vec![LabelTest::NotIn { key: text("seldom"), values: Vec::new() }], ..any() },
        Filter {
            labels: vec![LabelTest::Absent { key: text("seldom") }, equals("app", "a0")],
            kind: Some(text("Workflow")),
            ..any()
        },
        Filter { since: Some(Time(1000)), until: Some(Time(1100)), ..any() },
        Filter { since: Some(Time(1000)), until: Some(Time(5000)), labels: vec![equals("app", "a3")], ..any() },
        Filter { since: Some(Time(6600)), phases: vec![text("Failed")], ..any() },
        Filter { namespaces: vec![text("team"), text("lab"), text("team"), text("none")], ..any() },
        Filter { namespaces: vec![text("lab"), text("team")], labels: vec![equals("app", "a7")], ..any() },
        Filter { label_prefix: starting("app", "a"), labels: vec![equals("seldom", "s0")], ..any() },
        Filter { label_prefix: starting("seldom", "s5"), ..any() },
        Filter { label_prefix: starting("seldom", ""), namespace: team(), ..any() },
        Filter { parent: Some(RunId(2)), ..any() },
        Filter { parent: Some(RunId(2)), phases: vec![text("Succeeded")], name_prefix: Some(text("r")), ..any() },
        Filter { parent: Some(RunId(3)), ..any() },
    ]
}

pub(super) fn matches(filter: &Filter, row: &RunRow) -> bool {
    let label = |test: &LabelTest| match test {
        LabelTest::Equals { key, value } => row.labels.get(key) == Some(value),
        LabelTest::In { key, values } => row.labels.get(key).is_some_and(|value| values.contains(value)),
        LabelTest::NotIn { key, values } => !row.labels.get(key).is_some_and(|value| values.contains(value)),
        LabelTest::Exists { key } => row.labels.contains_key(key),
        LabelTest::Absent { key } => !row.labels.contains_key(key),
    };
    filter.namespace.as_ref().is_none_or(|namespace| *namespace == row.namespace)
        && (filter.namespaces.is_empty() || filter.namespaces.contains(&row.namespace))
        && filter.kind.as_ref().is_none_or(|kind| *kind == row.kind)
        && (filter.phases.is_empty() || filter.phases.contains(&row.phase))
        && filter.name_prefix.as_ref().is_none_or(|prefix| row.name.starts_with(prefix))
        && filter.since.is_none_or(|since| row.created >= since)
        && filter.until.is_none_or(|until| row.created < until)
        && filter.parent.is_none_or(|parent| row.parent == Some(parent))
        && filter.labels.iter().all(label)
        && filter
            .label_prefix
            .as_ref()
            .is_none_or(|(key, prefix)| row.labels.get(key).is_some_and(|value| value.starts_with(prefix.as_str())))
}

#[test]
fn every_filter_pages_through_exactly_its_runs_newest_first() {
    let (_dir, reader, rows) = filled();
    for filter in filters() {
        let mut expected: Vec<Cursor> = rows
            .iter()
            .filter(|row| matches(&filter, row))
            .map(|row| Cursor { created: row.created, run: row.run })
            .collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(reader.count(&filter).unwrap(), expected.len() as u64, "{filter:?}");

        let limit = (expected.len() / 4).max(7);
        let mut listed = Vec::new();
        let mut after = None;
        loop {
            let (page, next) = reader.list(&filter, Page { limit, after }).unwrap();
            assert!(page.len() == limit || next.is_none(), "a short page that is not the last: {filter:?}");
            listed.extend(page.iter().map(|row| Cursor { created: row.created, run: row.run }));
            after = match next {
                Some(next) => Some(next.to_string().parse().unwrap()),
                None => break,
            };
        }
        assert_eq!(listed, expected, "{filter:?}");
    }
}

#[test]
fn every_list_is_led_by_an_index_and_sorts_nothing() {
    let (dir, _reader, _rows) = filled();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let kinds = kinds(&conn).unwrap();
    assert_eq!(kinds, ["Job", "Workflow"]);
    let after = Some(Cursor { created: Time(4000), run: RunId(12_000) });
    let selects = [
        Select::Keys { after: None, limit: 51 },
        Select::Keys { after, limit: 51 },
        Select::Count,
        Select::Probe { limit: MAX_SORTED },
    ];
    let mut plans: Vec<_> =
        [query::NEXT_KIND, query::NEXT_NAMESPACE].map(|sql| (text(sql), explain(&conn, sql))).into();
    for filter in filters() {
        let partitions = partitions(&conn, kinds.clone(), &filter).unwrap();
        let count = if filter.namespace.is_some() {
            2
        } else if filter.namespaces.is_empty() {
            6
        } else {
            4
        };
        assert_eq!(partitions.len(), count);
        let mut drivers = vec![plan(&conn, &filter).unwrap().index, LeadingIndex::Rows];
        drivers.extend((0..filter.labels.len()).filter(|at| filter.labels[*at].can_lead()).map(LeadingIndex::Label));
        drivers.extend(filter.name_prefix.as_ref().map(|_| LeadingIndex::Name));
        for index in drivers {
            for select in selects {
                for query in query::queries(&filter, index, &partitions, select) {
                    plans.push((query.sql.clone(), explain(&conn, &query.sql)));
                }
            }
        }
    }
    assert!(plans.len() > 300);
    for (sql, steps) in plans {
        for step in &steps {
            let scans =
                step.starts_with("SCAN") && !["SCAN CONSTANT ROW", "SCAN (subquery-1)"].contains(&step.as_str());
            assert!(!scans && !step.contains("TEMP B-TREE"), "{sql}\n{steps:#?}");
            assert!(!step.contains("AUTOMATIC"), "{sql}\n{steps:#?}");
            for table in ["facts", "objects", "archive"] {
                assert!(!step.contains(table), "{sql}\n{steps:#?}");
            }
        }
    }
}

#[test]
fn the_runs_a_restart_takes_up_are_found_by_their_own_index() {
    let (dir, reader, rows) = filled();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let steps = explain(&conn, "SELECT * FROM runs WHERE open = 1 ORDER BY run");
    assert_eq!(steps, ["SEARCH runs USING INDEX runs_open (open=?)"]);
    assert_eq!(reader.unfinished().unwrap().len(), rows.len());
}

#[test]
fn the_narrowest_condition_leads() {
    let (dir, _reader, _rows) = filled();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let leads = |filter: Filter| plan(&conn, &filter).unwrap().index;
    let any = Filter::default;
    let labels = vec![equals("every", "true"), equals("seldom", "s0")];
    assert_eq!(leads(Filter { labels: labels.clone(), ..any() }), LeadingIndex::Label(1));
    assert_eq!(leads(Filter { labels: labels[..1].to_vec(), ..any() }), LeadingIndex::Rows);
    // Neither is few, and still one is narrower than the other.
    let namespace = Some(text("team"));
    assert_eq!(leads(Filter { labels: vec![equals("app", "a7")], namespace, ..any() }), LeadingIndex::Label(0));
    assert_eq!(leads(Filter { name_prefix: Some(text("rare-1000")), labels, ..any() }), LeadingIndex::Name);
    assert_eq!(leads(Filter { name_prefix: Some(text("run-")), ..any() }), LeadingIndex::Rows);
}

#[test]
fn a_cursor_survives_its_text_form_and_nonsense_is_refused() {
    let cursor = Cursor { created: Time(-12), run: RunId(34) };
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    for nonsense in ["", "1", "1.", ".1", "a.b", "1.2.3", "1.-2", "1.9223372036854775808"] {
        assert!(nonsense.parse::<Cursor>().is_err(), "{nonsense}");
    }
}

#[test]
fn a_page_is_never_empty_by_its_limit_nor_larger_than_allowed() {
    let (_dir, reader, _rows) = filled();
    let page = |limit| reader.list(&Filter::default(), Page { limit, after: None }).unwrap().0.len();
    assert_eq!(page(0), 1);
    assert_eq!(page(usize::MAX), MAX_PAGE);
}

pub(super) fn explain(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // The plan does not depend on the values, so none are bound.
    statement.raw_query().mapped(|row| row.get(3)).collect::<rusqlite::Result<_>>().unwrap()
}
