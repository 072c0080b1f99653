//! The mechanism of formats, tried with steps of its own, and the real steps from a file of every released format.

use super::*;
use crate::{Reader, Store, database::schema};

const ONE: Migration =
    Migration { format: 1, apply: |conn| conn.execute_batch("CREATE TABLE a (x); INSERT INTO a VALUES (20)") };
const TWO: Migration =
    Migration { format: 2, apply: |conn| conn.execute_batch("ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1") };
const BROKEN: Migration =
    Migration { format: 3, apply: |conn| conn.execute_batch("CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)") };

fn path() -> &'static Path {
    Path::new("test.db")
}

fn format(conn: &Connection) -> u32 {
    conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn each_step_runs_once_and_keeps_what_is_there() {
    let mut conn = Connection::open_in_memory().unwrap();
    migrate(&mut conn, path(), &[ONE]).unwrap();
    assert_eq!(format(&conn), 1);
    migrate(&mut conn, path(), &[ONE, TWO]).unwrap();
    migrate(&mut conn, path(), &[ONE, TWO]).unwrap();
    assert_eq!(format(&conn), 2);
    let values: (i64, i64) = conn.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(values, (20, 21));
}

#[test]
fn a_step_that_fails_leaves_the_format_before_it() {
    let mut conn = Connection::open_in_memory().unwrap();
    let error = migrate(&mut conn, path(), &[ONE, TWO, BROKEN]).unwrap_err();
    assert!(error.chain().contains("nowhere"), "{}", error.chain());
    assert_eq!(format(&conn), 2);
    assert!(conn.prepare("SELECT * FROM half").is_err());
    require(&conn, path(), &[ONE, TWO]).unwrap();
}

#[test]
fn a_reader_wants_exactly_the_format_it_knows() {
    let mut conn = Connection::open_in_memory().unwrap();
    assert!(matches!(require(&conn, path(), &[ONE]), Err(Error::Missing { .. })));
    migrate(&mut conn, path(), &[ONE]).unwrap();
    require(&conn, path(), &[ONE]).unwrap();
    assert!(matches!(require(&conn, path(), &[ONE, TWO]), Err(Error::Older { found: 1, supported: 2, .. })));
    migrate(&mut conn, path(), &[ONE, TWO]).unwrap();
    assert!(matches!(require(&conn, path(), &[ONE]), Err(Error::Newer { found: 2, supported: 1, .. })));
    assert!(matches!(migrate(&mut conn, path(), &[ONE]), Err(Error::Newer { found: 2, supported: 1, .. })));
}

#[test]
fn the_formats_count_up_from_one_without_holes() {
    let formats: Vec<u32> = schema::MIGRATIONS.iter().map(|step| step.format).collect();
    let expected: Vec<u32> = (1..=u32::try_from(formats.len()).unwrap()).collect();
    assert_eq!(formats, expected);
}

/// Everything that makes up a database of no runs: each table and index as SQL, and the rows it begins with.
fn content(conn: &Connection) -> Vec<String> {
    let sql = "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL
               UNION ALL SELECT key || '=' || value FROM meta ORDER BY 1";
    let mut rows = conn.prepare(sql).unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_new_database_is_what_all_steps_lead_to() {
    let mut stepped = Connection::open_in_memory().unwrap();
    migrate(&mut stepped, path(), schema::MIGRATIONS).unwrap();
    let mut whole = Connection::open_in_memory().unwrap();
    create(&mut whole, path(), &schema::WHOLE, schema::MIGRATIONS).unwrap();
    assert_eq!(format(&whole), format(&stepped));
    assert_eq!(content(&whole), content(&stepped), "change schema/current.sql along with a new step");
    // Nothing is left to do, and a file that is not new is left alone.
    migrate(&mut whole, path(), schema::MIGRATIONS).unwrap();
    create(&mut stepped, path(), &schema::WHOLE, schema::MIGRATIONS).unwrap();
}

#[test]
fn a_file_of_format_1_opens_with_everything_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join(schema::FILE)).unwrap();
    conn.execute_batch(include_str!("../../../tests/fixtures/format-1.sql")).unwrap();
    assert_eq!(format(&conn), 1);
    drop(conn);

    Store::open(dir.path()).unwrap().close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let done = reader.run_by_name("default", Some("Workflow"), "done").unwrap().unwrap();
    assert_eq!((done.phase.as_str(), done.archived, done.labels["app"].as_str()), ("Succeeded", true, "x"));
    assert_eq!(reader.archive(done.run).unwrap().unwrap(), b"{}");
    let open = reader.unfinished().unwrap();
    assert_eq!(open.len(), 1);
    let mut lines = Vec::new();
    reader
        .facts(open[0].run, 0, |facts| {
            lines.extend_from_slice(facts.lines);
            Ok::<(), Error>(())
        })
        .unwrap();
    assert_eq!(lines, b"{\"a\":1}\n{\"b\":2}\n");
    assert_eq!(reader.objects("Workflow", None).unwrap().len(), 1);
    assert_eq!((reader.next_run_id().unwrap().0, reader.revision().unwrap().0), (3, 4));
}
