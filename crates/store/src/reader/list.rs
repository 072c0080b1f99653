//! Lists of runs: filters, pages, and which index answers them.
//! A list reads only the index of runs and labels, never facts, objects or the archive.

use std::{fmt, str::FromStr};

use octoflow_model::{RunId, Time};
use rusqlite::{Connection, params_from_iter};

use crate::{
    Error,
    error::Doing,
    reader::list::query::{Query, Select},
    rows::row::unsigned,
};

mod labels;
mod numbered;
mod query;

pub(crate) use labels::{label_keys, label_values};
pub use numbered::NumberedPage;
pub(crate) use numbered::numbered;

/// Limit of rows per page. For more, callers continue with the cursor.
pub const MAX_PAGE: usize = 10_000;

/// Limit of names with a prefix that are fetched and sorted. If there are more, the list is scanned in its own order.
const MAX_SORTED: u64 = 2000;

/// Limits up to which candidate indexes are counted to compare them; the second applies only if the first did not tell
/// them apart. Counting this far takes a few milliseconds; indexes that match even more rows differ too little to
/// matter.
const PROBES: [u64; 2] = [MAX_SORTED, 50_000];

/// Conditions on runs, which must all hold. An empty filter matches every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub namespace: Option<String>,
    /// Accepted namespaces, beside the one above; empty means any.
    pub namespaces: Vec<String>,
    pub kind: Option<String>,
    /// Accepted phases; empty means any.
    pub phases: Vec<String>,
    pub name_prefix: Option<String>,
    pub labels: Vec<LabelTest>,
    /// A label, and a text with which its value begins. Never leads a list: such values are not in its order.
    pub label_prefix: Option<(String, String)>,
    /// Created at this time or later.
    pub since: Option<Time>,
    /// Created before this time.
    pub until: Option<Time>,
    pub parent: Option<RunId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelTest {
    Equals {
        key: String,
        value: String,
    },
    In {
        key: String,
        values: Vec<String>,
    },
    /// Holds also for runs without the label.
    NotIn {
        key: String,
        values: Vec<String>,
    },
    Exists {
        key: String,
    },
    Absent {
        key: String,
    },
}

/// One page of a list. A limit outside `1..=MAX_PAGE` is clamped.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub limit: usize,
    pub after: Option<Cursor>,
}

/// Position of a run in every list. It stays valid while runs are added and deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    pub created: Time,
    pub run: RunId,
}

/// Error for a text that is not a continuation token of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a place in a list; use the continuation of an earlier answer as it was given")]
pub struct BadCursor(String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created.0, self.run.0)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let bad = || BadCursor(text.to_owned());
        let (created, run) = text.split_once('.').ok_or_else(bad)?;
        let created = created.parse().map_err(|_| bad())?;
        let run: u64 = run.parse().map_err(|_| bad())?;
        if i64::try_from(run).is_err() {
            return Err(bad());
        }
        Ok(Self { created: Time(created), run: RunId(run) })
    }
}

/// The index that a list is read from; the other conditions are checked on its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeadingIndex {
    /// Kind, namespace and phase, in the order of the list.
    Rows,
    /// The label test with this number, in the order of the list.
    Label(usize),
    /// The children of a run, in the order of the list.
    Parent,
    /// Names with the prefix, in no useful order. Only for small results.
    Name,
}

/// Returns the cursors of the runs on a page, newest first, and the cursor for the next page.
pub(crate) fn keys(conn: &Connection, filter: &Filter, page: Page) -> Result<(Vec<Cursor>, Option<Cursor>), Error> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let select = Select::Keys { after: page.after, limit: limit + 1 };
    let mut keys = Vec::new();
    for query in plan(conn, filter)?.queries(filter, select) {
        keys.extend(run_keys(conn, &query).doing("list runs")?);
    }
    // Each query returns its newest rows and no run matches two of them, so the newest of all are among these.
    keys.sort_unstable_by(|a, b| b.cmp(a));
    let more = keys.len() > limit;
    keys.truncate(limit);
    let next = keys.last().copied().filter(|_| more);
    Ok((keys, next))
}

pub(crate) fn count(conn: &Connection, filter: &Filter) -> Result<u64, Error> {
    let plan = plan(conn, filter)?;
    sum(conn, &plan.queries(filter, Select::Count))
}

/// Runs of one kind in one namespace. Within such a partition the index has the rows in the order of the list.
struct Partition {
    kind: String,
    namespace: String,
}

/// The chosen index, and the partitions to read if it is the index of rows.
struct Plan {
    index: LeadingIndex,
    partitions: Vec<Partition>,
}

impl Plan {
    fn queries(&self, filter: &Filter, select: Select) -> Vec<Query> {
        query::queries(filter, self.index, &self.partitions, select)
    }
}

fn plan(conn: &Connection, filter: &Filter) -> Result<Plan, Error> {
    let kinds = match &filter.kind {
        Some(kind) => vec![kind.clone()],
        None => kinds(conn).doing("list kinds")?,
    };
    if filter.parent.is_some() {
        return Ok(Plan { index: LeadingIndex::Parent, partitions: Vec::new() });
    }
    let partitions = partitions(conn, kinds, filter).doing("list namespaces")?;
    Ok(Plan { index: choose(conn, filter, &partitions)?, partitions })
}

fn partitions(conn: &Connection, kinds: Vec<String>, filter: &Filter) -> rusqlite::Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    for kind in kinds {
        let mut namespaces = match &filter.namespace {
            Some(namespace) => vec![namespace.clone()],
            None => namespaces(conn, &kind)?,
        };
        namespaces.retain(|namespace| filter.namespaces.is_empty() || filter.namespaces.contains(namespace));
        partitions.extend(namespaces.into_iter().map(|namespace| Partition { kind: kind.clone(), namespace }));
    }
    Ok(partitions)
}

/// Chooses the index with the fewest candidates.
fn choose(conn: &Connection, filter: &Filter, partitions: &[Partition]) -> Result<LeadingIndex, Error> {
    let mut ways = vec![LeadingIndex::Rows];
    ways.extend((0..filter.labels.len()).filter(|at| filter.labels[*at].can_lead()).map(LeadingIndex::Label));
    ways.extend(filter.name_prefix.as_ref().map(|_| LeadingIndex::Name));
    if ways.len() == 1 {
        return Ok(LeadingIndex::Rows);
    }
    for limit in PROBES {
        let mut narrowest = (limit, LeadingIndex::Rows);
        for way in &ways {
            let found = sum(conn, &query::queries(filter, *way, partitions, Select::Probe { limit }))?;
            if found < narrowest.0 {
                narrowest = (found, *way);
            }
        }
        if narrowest.0 < limit {
            return Ok(narrowest.1);
        }
        ways.retain(|way| *way != LeadingIndex::Name);
        if ways.len() == 1 {
            break;
        }
    }
    // An unselective label still beats all rows.
    let all_rows = filter.namespace.is_none() && filter.namespaces.is_empty() && filter.phases.is_empty();
    Ok(if all_rows { ways[ways.len() - 1] } else { LeadingIndex::Rows })
}

impl LabelTest {
    /// Returns whether an index can answer this test first. Tests for absence cannot: no index lists the runs without a
    /// label.
    fn can_lead(&self) -> bool {
        match self {
            Self::Equals { .. } | Self::In { .. } | Self::Exists { .. } => true,
            Self::NotIn { .. } | Self::Absent { .. } => false,
        }
    }
}

/// Lists kinds by skipping through the index instead of reading all rows.
pub(crate) fn kinds(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut next = conn.prepare_cached(query::NEXT_KIND)?;
    let mut kinds: Vec<String> = Vec::new();
    while let Some(kind) = next.query_row([kinds.last()], |row| row.get::<_, Option<String>>(0))? {
        kinds.push(kind);
    }
    Ok(kinds)
}

/// Lists the namespaces that have runs of this kind.
fn namespaces(conn: &Connection, kind: &str) -> rusqlite::Result<Vec<String>> {
    let mut next = conn.prepare_cached(query::NEXT_NAMESPACE)?;
    let mut found: Vec<String> = Vec::new();
    while let Some(namespace) = next.query_row((kind, found.last()), |row| row.get::<_, Option<String>>(0))? {
        found.push(namespace);
    }
    Ok(found)
}

fn run_keys(conn: &Connection, query: &Query) -> rusqlite::Result<Vec<Cursor>> {
    conn.prepare_cached(&query.sql)?
        .query_map(params_from_iter(&query.values), |row| {
            Ok(Cursor { created: Time(row.get(0)?), run: RunId(unsigned(row.get(1)?)) })
        })?
        .collect()
}

fn sum(conn: &Connection, queries: &[Query]) -> Result<u64, Error> {
    let mut total = 0;
    for query in queries {
        let found = conn
            .prepare_cached(&query.sql)
            .and_then(|mut count| count.query_row(params_from_iter(&query.values), |row| row.get(0)))
            .doing("count runs")?;
        total += unsigned(found);
    }
    Ok(total)
}

#[cfg(test)]
mod tests;
