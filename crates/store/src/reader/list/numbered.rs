//! Pages by number, in both orders. A page is read from the end of the list that is nearer to it, so the last page of a
//! long list costs no more than the first.

use rusqlite::{Connection, types::Value};

use super::{
    Cursor, Filter, LeadingIndex, Plan, plan,
    query::{Query, Select},
    run_keys, sum,
};
use crate::{Error, error::Doing};

/// Queries that are merged in the database; more are merged here, for which all their keys are read.
const MAX_MERGED: usize = 64;

/// One page of a list by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedPage {
    /// Counted from 1.
    pub number: u64,
    pub size: u64,
    pub newest_first: bool,
}

/// Where a page lies, as seen from the end that is nearer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    newest_first: bool,
    skip: u64,
    take: u64,
}

impl NumberedPage {
    /// `None` if the page lies behind the end.
    fn within(self, total: u64) -> Option<Stretch> {
        let first = self.number.saturating_sub(1).checked_mul(self.size)?;
        let take = self.size.min(total.checked_sub(first)?);
        let behind = total - first - take;
        let stretch = match first <= behind {
            true => Stretch { newest_first: self.newest_first, skip: first, take },
            false => Stretch { newest_first: !self.newest_first, skip: behind, take },
        };
        (take > 0).then_some(stretch)
    }
}

/// Returns the cursors of the runs on a page, and the number of all runs that match.
pub(crate) fn numbered(conn: &Connection, filter: &Filter, page: NumberedPage) -> Result<(Vec<Cursor>, u64), Error> {
    let plan = plan(conn, filter)?;
    let total = sum(conn, &plan.queries(filter, Select::Count))?;
    let Some(stretch) = page.within(total) else { return Ok((Vec::new(), total)) };
    let mut keys = Vec::new();
    for query in ordered(&plan, filter, stretch) {
        keys.extend(run_keys(conn, &query).doing("list runs by page")?);
    }
    keys.sort_unstable_by(|one, other| if stretch.newest_first { other.cmp(one) } else { one.cmp(other) });
    if !is_merged(&plan, filter) {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        keys = keys.into_iter().skip(count(stretch.skip)).take(count(stretch.take)).collect();
    }
    if stretch.newest_first != page.newest_first {
        keys.reverse();
    }
    Ok((keys, total))
}

/// Whether the database merges and cuts the list, or the caller does.
fn is_merged(plan: &Plan, filter: &Filter) -> bool {
    plan.index != LeadingIndex::Name && plan.queries(filter, Select::Count).len() <= MAX_MERGED
}

/// Returns the queries for the keys of a stretch: one if the database merges them.
fn ordered(plan: &Plan, filter: &Filter, stretch: Stretch) -> Vec<Query> {
    let queries = plan.queries(filter, Select::All);
    if !is_merged(plan, filter) || queries.is_empty() {
        return queries;
    }
    let direction = if stretch.newest_first { "DESC" } else { "ASC" };
    let parts: Vec<&str> = queries.iter().map(|query| query.sql.as_str()).collect();
    let sql = format!("{} ORDER BY 1 {direction}, 2 {direction} LIMIT ? OFFSET ?", parts.join(" UNION ALL "));
    let mut values: Vec<Value> = queries.into_iter().flat_map(|query| query.values).collect();
    values.extend([stretch.take, stretch.skip].map(|number| Value::from(i64::try_from(number).unwrap_or(i64::MAX))));
    vec![Query { sql, values }]
}

#[cfg(test)]
mod tests;
