//! The row `pages`: pages of a list of very many submitted jobs by their numbers, through the store alone. The jobs are
//! rows that nobody ran.

use std::time::Instant;

use octoflow_control::registry::JobFilter;
use octoflow_model::{
    RunId, Time,
    plugin::{JOB_KIND, LifeState, term},
};
use octoflow_store::{Batch, Change, NumberedPage, Reader, RunRow, Store};

use super::{
    measure::{Outcome, Tools},
    row::{Goal, Line, median, seconds},
    rows::Size,
};

/// Rows of one commit.
const CHUNK: u64 = 10_000;
const USERS: u64 = 100;
const PAGE: u64 = 50;
/// The promise about the last page of a million.
const LAST_PAGE: f64 = 200.0;

pub(super) fn pages(size: Size, tools: &Tools) -> Outcome<Vec<Line>> {
    let count = u64::from(size.of(1_000_000, 20_000));
    let dir = tools.fresh()?;
    let store = Store::open(dir.path())?;
    for from in (0..count).step_by(usize::try_from(CHUNK)?) {
        let rows = (from..count.min(from + CHUNK)).map(|number| Change::NewRun(Box::new(row(number))));
        store.commit_wait(Batch::from_iter(rows))?;
    }
    let reader = store.reader()?;
    let users = |users: &[&str]| JobFilter { users: users.iter().map(|&user| user.to_owned()).collect(), ..all() };
    let filters = [
        ("all jobs", all()),
        ("of one user in a hundred", users(&["u7"])),
        ("of three users", users(&["u1", "u2", "u3"])),
        ("in one state of many", JobFilter { states: vec![LifeState::Failed], ..all() }),
        ("in most states", JobFilter { states: vec![LifeState::Succeeded, LifeState::Failed], ..all() }),
        ("of a user, in a state", JobFilter { states: vec![LifeState::Failed], ..users(&["u7"]) }),
        ("with the beginning of a name", JobFilter { name: Some("train-1".to_owned()), ..all() }),
        ("of one cluster", JobFilter { cluster: Some("east".to_owned()), ..all() }),
        ("of the second half", JobFilter { after: Some(created(count / 2)), ..all() }),
    ];
    let mut lines = Vec::new();
    for (what, filter) in filters {
        let (last, middle) = times(&reader, &filter, size)?;
        let line = |page: &str, value| Line {
            row: format!("pages, {page} of {count} jobs"),
            what,
            ours: String::new(),
            yardstick: String::new(),
            value,
            unit: "ms",
            // No index has beginnings of names in the order of lists: all rows are looked at.
            goal: (page == "last" && filter.name.is_none()).then_some(Goal::AtMost(LAST_PAGE)),
        };
        lines.extend([line("last", last), line("middle", middle)]);
    }
    Ok(lines)
}

fn all() -> JobFilter {
    JobFilter::default()
}

/// Milliseconds until the last page and the one in the middle are read, newest first.
fn times(reader: &Reader, filter: &JobFilter, size: Size) -> Outcome<(f64, f64)> {
    let index = filter.index();
    let page = |number| reader.page(&index, NumberedPage { number, size: PAGE, newest_first: true });
    let (_, total) = page(1)?;
    let last = total.div_ceil(PAGE).max(1);
    let timed = |number: u64| -> Outcome<f64> {
        let mut taken = Vec::new();
        for _ in 0..size.turns(5, 1) {
            let began = Instant::now();
            let (rows, _) = page(number)?;
            taken.push(1e3 * seconds(began.elapsed()));
            if rows.is_empty() {
                return Err(format!("page {number} of {last} is empty: {filter:?}").into());
            }
        }
        Ok(median(taken))
    };
    Ok((timed(last)?, timed(last.div_ceil(2))?))
}

fn created(number: u64) -> Time {
    Time::from_secs(1_790_000_000 + i64::try_from(number).unwrap_or(i64::MAX))
}

fn row(number: u64) -> RunRow {
    let name = format!("{number:036x}");
    let mut row = RunRow::new(RunId(number + 1), "default", JOB_KIND, &name, &format!("u{number}"), created(number));
    row.phase = match number / 100 % 20 {
        0 => LifeState::Failed,
        1 => LifeState::Stopped,
        _ => LifeState::Succeeded,
    }
    .word()
    .to_owned();
    row.finished = Some(created(number + 60));
    let terms = [
        (term::USER, format!("u{}", number % USERS)),
        (term::JOB_NAME, format!("train-{}", number % 1000)),
        (term::JOB_KIND, "TFJob".to_owned()),
        (term::CLUSTER, if number.is_multiple_of(3) { "east" } else { "west" }.to_owned()),
    ];
    row.labels = terms.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    row
}
