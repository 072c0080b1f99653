//! Tests of the store's guarantees through its public API. Only the fault of a full disk needs a hook inside.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, mpsc},
};

use octoflow_model::{Revision, RunId, Time};
use tempfile::TempDir;

use crate::{
    Archive, Batch, Change, Error, Filter, LabelTest, Notification, Object, Page, Reader, RunRow, RunUpdate, Store,
    writer::Faults,
};

mod access;
mod deliveries;
mod disk;
mod faults;
mod large;
mod log;
mod objects;
mod opening;
mod owners;
mod revisions;
mod rewrite;
mod secrets;
mod ticks;

fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn row(run: u64, name: &str) -> RunRow {
    let created = Time::from_secs(1_000 + i64::try_from(run).unwrap());
    RunRow::new(RunId(run), "default", "Workflow", name, &format!("uid-{run}"), created)
}

fn new_run(run: u64, name: &str) -> Change {
    Change::NewRun(Box::new(row(run, name)))
}

fn append(run: u64, first: u64, lines: &[&str]) -> Change {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let count = u32::try_from(lines.len()).unwrap();
    Change::AppendFacts { run: RunId(run), first, count, lines: text.into_bytes() }
}

fn finish(run: u64, record: &str) -> Change {
    let row = RunUpdate {
        phase: Some("Succeeded".to_owned()),
        finished: Some(Time::from_secs(9_999)),
        ..RunUpdate::default()
    };
    Change::Finish { run: RunId(run), archive: Archive::pack(record.as_bytes()), row }
}

fn put(name: &str, body: &str) -> Change {
    Change::PutObject {
        kind: "Workflow".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        body: body.as_bytes().to_vec(),
    }
}

/// All rows of a run as (first, count, text).
fn facts(reader: &Reader, run: u64, from: u64) -> Vec<(u64, u64, String)> {
    let mut rows = Vec::new();
    reader
        .facts(RunId(run), from, |facts| {
            rows.push((facts.first, facts.count, String::from_utf8(facts.lines.to_vec()).unwrap()));
            Ok::<(), Error>(())
        })
        .unwrap();
    rows
}

#[test]
fn objects_are_put_replaced_listed_and_deleted() {
    let (_dir, store) = store();
    let first = store.commit_wait(Batch::from_iter([put("a", "1"), put("b", "2")])).unwrap();
    let second = store.commit_wait(put("a", "3").into()).unwrap();
    assert!(second > first);

    let reader = store.reader().unwrap();
    let a = reader.object("Workflow", "default", "a").unwrap().unwrap();
    let expected = Object {
        kind: "Workflow".to_owned(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "uid-a".to_owned(),
        revision: second,
        body: b"3".to_vec(),
    };
    assert_eq!(a, expected);
    let names = |namespace| -> Vec<String> {
        reader.objects("Workflow", namespace).unwrap().into_iter().map(|object| object.name).collect()
    };
    assert_eq!(names(None), ["a", "b"]);
    assert_eq!(names(Some("default")), ["a", "b"]);
    assert!(names(Some("other")).is_empty());
    assert!(reader.objects("Job", None).unwrap().is_empty());

    let delete = |name: &str| Change::DeleteObject {
        kind: "Workflow".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
    };
    store.commit_wait(Batch::from_iter([delete("a"), delete("never there")])).unwrap();
    assert_eq!(names(None), ["b"]);
}

#[test]
fn a_run_goes_from_facts_to_archive() {
    let (_dir, store) = store();
    let reader = store.reader().unwrap();
    assert_eq!(reader.next_run_id().unwrap(), RunId(1));

    store.commit_wait(Batch::from_iter([new_run(1, "hello"), append(1, 0, &["a", "b"])])).unwrap();
    store.commit_wait(append(1, 2, &["c"]).into()).unwrap();
    assert_eq!(reader.next_run_id().unwrap(), RunId(2));
    assert_eq!(facts(&reader, 1, 0), [(0, 2, "a\nb\n".to_owned()), (2, 1, "c\n".to_owned())]);
    assert_eq!(reader.unfinished().unwrap().len(), 1);
    assert_eq!(reader.archive(RunId(1)).unwrap(), None);

    let revision = store.commit_wait(Batch::from_iter([append(1, 3, &["d"]), finish(1, "the end")])).unwrap();
    assert_eq!(facts(&reader, 1, 0), []);
    assert_eq!(reader.archive(RunId(1)).unwrap().as_deref(), Some(&b"the end"[..]));
    assert!(reader.unfinished().unwrap().is_empty());
    let row = reader.run_by_name("default", None, "hello").unwrap().unwrap();
    assert!(row.archived);
    assert_eq!((row.phase.as_str(), row.finished), ("Succeeded", Some(Time::from_secs(9_999))));
    assert_eq!((row.revision, reader.revision().unwrap()), (revision, revision));
}

#[test]
fn facts_can_be_read_from_a_number_on() {
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "hello").into()).unwrap();
    store.commit_wait(append(1, 5, &["5", "6", "7"]).into()).unwrap();
    store.commit_wait(append(1, 8, &["8"]).into()).unwrap();
    let reader = store.reader().unwrap();
    let starts = |from| -> Vec<u64> { facts(&reader, 1, from).iter().map(|row| row.0).collect() };
    assert_eq!(starts(0), [5, 8]);
    assert_eq!(starts(7), [5, 8]);
    assert_eq!(starts(8), [8]);
    assert!(starts(9).is_empty());
}

#[test]
fn every_column_of_a_run_survives() {
    let (_dir, store) = store();
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let mut full = row(7, "full");
    full.phase = "Pending".to_owned();
    full.message = "waiting".to_owned();
    full.started = Some(Time(-5));
    full.labels = labels(&[("app", "x"), ("gone", "y")]);
    full.progress = "0/3".to_owned();
    full.priority = -4;
    full.parameters = r#"[{"name":"n","value":"1"}]"#.to_owned();
    full.parent = Some(RunId(3));
    full.revision = store.commit_wait(Change::NewRun(Box::new(full.clone())).into()).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.run(RunId(7)).unwrap().unwrap(), full);
    let (listed, _) = reader.list(&Filter::default(), Page { limit: 1, after: None }).unwrap();
    assert_eq!(listed, [RunRow { parameters: String::new(), ..full.clone() }], "a list has everything but parameters");

    let update = RunUpdate {
        phase: Some("Running".to_owned()),
        message: Some(String::new()),
        started: Some(Time(11)),
        finished: Some(Time(12)),
        labels: Some(labels(&[("app", "z"), ("new", "")])),
        progress: Some("1/3".to_owned()),
        priority: Some(9),
    };
    full.revision = store.commit_wait(Change::UpdateRun { run: RunId(7), row: update.clone() }.into()).unwrap();
    full.phase = "Running".to_owned();
    full.message = String::new();
    full.started = update.started;
    full.finished = update.finished;
    full.labels = update.labels.unwrap();
    full.progress = "1/3".to_owned();
    full.priority = 9;
    assert_eq!(reader.run(RunId(7)).unwrap().unwrap(), full);

    let with = |test| reader.count(&Filter { labels: vec![test], ..Filter::default() }).unwrap();
    assert_eq!(with(LabelTest::Exists { key: "gone".to_owned() }), 0);
    assert_eq!(with(LabelTest::Equals { key: "app".to_owned(), value: "x".to_owned() }), 0);
    assert_eq!(with(LabelTest::Equals { key: "app".to_owned(), value: "z".to_owned() }), 1);
    assert_eq!(with(LabelTest::Exists { key: "new".to_owned() }), 1);
}

#[test]
fn a_deleted_run_leaves_nothing_and_its_id_is_not_given_again() {
    let (dir, store) = store();
    let mut labelled = row(1, "one");
    labelled.labels.insert("app".to_owned(), "x".to_owned());
    store
        .commit_wait(Batch::from_iter([Change::NewRun(Box::new(labelled)), append(1, 0, &["a"]), new_run(2, "two")]))
        .unwrap();
    store.commit_wait(finish(2, "end").into()).unwrap();
    let delete = |run| Change::DeleteRun { run: RunId(run) };
    store.commit_wait(Batch::from_iter([delete(1), delete(2)])).unwrap();
    store.close().unwrap();

    let conn = rusqlite::Connection::open(dir.path().join("octoflow.db")).unwrap();
    for table in ["runs", "run_labels", "facts", "archive"] {
        let left: u32 = conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "rows left in {table}");
    }
    assert_eq!(Reader::open(dir.path()).unwrap().next_run_id().unwrap(), RunId(3));
}

#[test]
fn a_run_can_take_the_place_of_another_in_one_commit() {
    let (_dir, store) = store();
    let child = RunRow { parent: Some(RunId(1)), ..row(2, "child") };
    let first = Batch::from_iter([
        Change::NewRun(Box::new(RunRow { labels: [("a".into(), "1".into())].into(), ..row(1, "w") })),
        append(1, 0, &["x"]),
        finish(1, "old"),
        Change::NewRun(Box::new(child)),
    ]);
    store.commit_wait(first).unwrap();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = heard.clone();
    store.observe(Arc::new(move |told| match told {
        Notification::Commits(events) => ear.lock().unwrap().extend(events),
        Notification::Reopened(_) => panic!("nothing failed"),
    }));
    let replace = |old: u64, new: u64| {
        Batch::from_iter([
            Change::ReplaceRun {
                old: RunId(old),
                row: Box::new(RunRow { created: row(1, "w").created, ..row(new, "w") }),
            },
            append(new, 0, &["y"]),
        ])
    };
    store.commit_wait(replace(1, 3)).unwrap();
    let reader = store.reader().unwrap();
    assert!(reader.run(RunId(1)).unwrap().is_none() && reader.archive(RunId(1)).unwrap().is_none());
    assert!(facts(&reader, 1, 0).is_empty());
    assert_eq!(reader.run_by_name("default", None, "w").unwrap().unwrap().run, RunId(3));
    assert_eq!(reader.run(RunId(2)).unwrap().unwrap().parent, Some(RunId(3)));
    assert_eq!(facts(&reader, 3, 0).len(), 1);
    let labelled = Filter { labels: vec![LabelTest::Exists { key: "a".into() }], ..Filter::default() };
    assert!(reader.list(&labelled, Page { limit: 9, after: None }).unwrap().0.is_empty(), "its labels went with it");
    let events = heard.lock().unwrap();
    assert!(
        matches!(events.as_slice(), [crate::ChangeEvent { what: crate::ChangedItem::Run(RunId(3)), .. }]),
        "{events:?}"
    );
    drop(events);
    // A run that is gone already can still be replaced; a name that another run has is not given away.
    store.commit_wait(replace(1, 4)).unwrap_err();
    store.commit_wait(replace(3, 5)).unwrap();
    store.commit_wait(Change::DeleteRun { run: RunId(5) }.into()).unwrap();
    store.commit_wait(replace(5, 6)).unwrap();
}

#[test]
fn the_same_name_may_be_used_once_per_namespace_and_kind() {
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "hello").into()).unwrap();
    let error = store.commit_wait(new_run(2, "hello").into()).unwrap_err();
    assert!(error.is_refusal());
    assert_eq!(error.to_string(), "a Workflow named `hello` exists already in namespace `default` (run 1)");
    let error = store.commit_wait(new_run(1, "other").into()).unwrap_err();
    assert!(matches!(error, Error::RunExists { run: RunId(1) }), "{error}");

    let mut job = row(3, "hello");
    job.kind = "Job".to_owned();
    let mut elsewhere = row(4, "hello");
    elsewhere.namespace = "other".to_owned();
    store.commit_wait(Batch::from_iter([Change::NewRun(Box::new(job)), Change::NewRun(Box::new(elsewhere))])).unwrap();
    let reader = store.reader().unwrap();
    let named = |kind| reader.run_by_name("default", kind, "hello").unwrap().map(|row| row.run);
    assert_eq!(named(None), Some(RunId(3)));
    assert_eq!(named(Some("Workflow")), Some(RunId(1)));
    assert_eq!(named(Some("TaskSet")), None);
    assert_eq!(reader.latest("default").unwrap().unwrap().run, RunId(3));
    assert_eq!(reader.latest("nowhere").unwrap(), None);
}

#[test]
fn what_cannot_be_applied_is_refused_whole_and_the_store_goes_on() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "one"), append(1, 0, &["a"]), new_run(2, "two")])).unwrap();
    store.commit_wait(finish(2, "end").into()).unwrap();
    let before = store.reader().unwrap().revision().unwrap();

    let refused = |change: Change| store.commit_wait(Batch::from_iter([put("trace", "x"), change])).unwrap_err();
    assert!(matches!(refused(append(1, 2, &["gap"])), Error::Gap { expected: 1, found: 2, .. }));
    assert!(matches!(refused(append(1, 0, &["again"])), Error::Gap { expected: 1, found: 0, .. }));
    assert!(matches!(refused(append(2, 1, &["late"])), Error::RunFinished { run: RunId(2) }));
    assert!(matches!(refused(finish(2, "twice")), Error::RunFinished { run: RunId(2) }));
    assert!(matches!(refused(append(9, 0, &["who"])), Error::UnknownRun { run: RunId(9) }));
    assert!(matches!(refused(finish(9, "who")), Error::UnknownRun { run: RunId(9) }));
    assert!(matches!(refused(Change::DeleteRun { run: RunId(9) }), Error::UnknownRun { run: RunId(9) }));
    let update = RunUpdate { progress: Some("1/1".to_owned()), ..RunUpdate::default() };
    assert!(matches!(refused(Change::UpdateRun { run: RunId(9), row: update }), Error::UnknownRun { run: RunId(9) }));

    let reader = store.reader().unwrap();
    assert_eq!(reader.object("Workflow", "default", "trace").unwrap(), None);
    assert_eq!(reader.revision().unwrap(), before);
    let after = store.commit_wait(append(1, 1, &["b"]).into()).unwrap();
    assert_eq!(after, Revision(before.0 + 1));
}

#[test]
fn a_refused_batch_in_a_group_does_not_touch_its_neighbours() {
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let outcomes = as_one_group(
        &store,
        vec![
            Batch::from(append(1, 0, &["a"])),
            Batch::from_iter([put("trace", "x"), new_run(5, "one")]),
            Batch::from_iter([append(1, 1, &["b"]), new_run(3, "three"), append(3, 0, &["c"])]),
            Batch::from(append(5, 0, &["orphan"])),
        ],
    );
    assert!(matches!(outcomes[1], Err(Error::NameTaken { holder: RunId(1), .. })), "{outcomes:?}");
    assert!(matches!(outcomes[3], Err(Error::UnknownRun { run: RunId(5) })), "{outcomes:?}");
    let (first, second) = (outcomes[0].clone().unwrap(), outcomes[2].clone().unwrap());
    assert_eq!(second, Revision(first.0 + 2), "it touches two runs, and what was refused took no revision");

    let reader = store.reader().unwrap();
    let text: String = facts(&reader, 1, 0).into_iter().map(|row| row.2).collect();
    assert_eq!(text, "a\nb\n");
    assert_eq!(facts(&reader, 3, 0).len(), 1);
    assert_eq!(reader.object("Workflow", "default", "trace").unwrap(), None);
    assert_eq!(reader.next_run_id().unwrap(), RunId(4));
}

#[test]
fn what_is_queued_during_a_sync_becomes_one_row_of_facts_per_run() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "one"), new_run(2, "two")])).unwrap();
    let batches = (0..50).map(|n| Batch::from_iter([append(1, n, &["x"]), append(2, n, &["y"])])).collect();
    let outcomes = as_one_group(&store, batches);
    let revisions: Vec<u64> = outcomes.into_iter().map(|outcome| outcome.unwrap().0).collect();
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");

    let reader = store.reader().unwrap();
    assert_eq!(facts(&reader, 1, 0), [(0, 50, "x\n".repeat(50))]);
    assert_eq!(facts(&reader, 2, 0), [(0, 50, "y\n".repeat(50))]);
    store.commit_wait(append(1, 50, &["z"]).into()).unwrap();
    assert_eq!(facts(&reader, 1, 50), [(50, 1, "z\n".to_owned())]);
}

#[test]
fn a_row_of_facts_does_not_grow_without_bound() {
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let long = "x".repeat(400_000);
    let batches = (0..5).map(|n| Batch::from(append(1, n, &[&long]))).collect();
    assert!(as_one_group(&store, batches).iter().all(Result::is_ok));
    let rows = facts(&store.reader().unwrap(), 1, 0);
    let shape: Vec<(u64, u64)> = rows.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(shape, [(0, 2), (2, 2), (4, 1)]);
}

#[test]
fn an_empty_batch_waits_for_everything_before_it() {
    let (_dir, store) = store();
    let (tell, told) = mpsc::channel();
    store.commit(new_run(1, "one").into(), move |outcome| tell.send(outcome.unwrap()).unwrap());
    let revision = store.commit_wait(Batch::new()).unwrap();
    assert_eq!(told.try_recv(), Ok(revision));
}

#[test]
fn a_snapshot_shows_one_state_while_commits_go_on() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "one"), append(1, 0, &["a"])])).unwrap();
    let reader = store.reader().unwrap();
    reader
        .snapshot(|reader| {
            assert_eq!(reader.archive(RunId(1))?, None);
            store.commit_wait(finish(1, "end").into())?;
            assert_eq!(facts(reader, 1, 0).len(), 1);
            assert_eq!(reader.list(&Filter::default(), Page { limit: 5, after: None })?.0[0].phase, "");
            Ok::<(), Error>(())
        })
        .unwrap();
    assert_eq!(facts(&reader, 1, 0), []);
    assert!(reader.archive(RunId(1)).unwrap().is_some());
}

/// Commits the batches so that all of them are queued while the writer is busy with another one.
fn as_one_group(store: &Store, batches: Vec<Batch>) -> Vec<Result<Revision, Error>> {
    let release = hold(store);
    let (tell, told) = mpsc::channel();
    let tell = Arc::new(tell);
    for batch in batches {
        let tell = Arc::clone(&tell);
        store.commit(batch, move |outcome| tell.send(outcome).unwrap());
    }
    drop(tell);
    release.send(()).unwrap();
    told.iter().collect()
}

/// Keeps the writer busy until a message is sent; what is committed meanwhile is one group.
fn hold(store: &Store) -> mpsc::Sender<()> {
    let (entered, inside) = mpsc::channel();
    let (release, released) = mpsc::channel();
    store.commit(Batch::new(), move |_| {
        entered.send(()).unwrap();
        released.recv().unwrap();
    });
    inside.recv().unwrap();
    release
}

fn open_with(dir: &Path, max_pages: u32) -> Store {
    Store::open_with(dir, Faults { max_pages: Some(max_pages) }, None).unwrap()
}
