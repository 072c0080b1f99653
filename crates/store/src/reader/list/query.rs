//! The SQL of lists. Each query is led by one index that is named in it, so that no query can turn into a scan
//! unnoticed; the planner's statistics are not needed.

use std::collections::BTreeSet;

use rusqlite::types::Value;

use super::{Cursor, Filter, LabelTest, LeadingIndex, Partition};
use crate::rows::row::signed;

#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Select {
    /// The newest `limit` runs after a cursor.
    Keys { after: Option<Cursor>, limit: usize },
    /// All runs, in no order.
    All,
    /// The number of runs.
    Count,
    /// The number of rows in the leading index, counted up to a limit.
    Probe { limit: u64 },
}

/// The first kind after a given one, or the very first after `NULL`.
pub(super) const NEXT_KIND: &str = "SELECT min(kind) FROM runs INDEXED BY runs_namespace WHERE kind > coalesce(?1, '')";

/// The first namespace with runs of a kind after a given one, or the very first after `NULL`.
pub(super) const NEXT_NAMESPACE: &str =
    "SELECT min(namespace) FROM runs INDEXED BY runs_namespace WHERE kind = ?1 AND namespace > coalesce(?2, '')";

/// Builds the queries whose results together are the answer. No run is in two of them.
pub(super) fn queries(filter: &Filter, index: LeadingIndex, partitions: &[Partition], select: Select) -> Vec<Query> {
    builders(filter, index, partitions).into_iter().map(|lead| finish(filter, index, lead, select)).collect()
}

/// A query under construction: the table it reads, and its conditions so far.
struct QueryBuilder {
    from: &'static str,
    /// Alias of the table whose `created` and `run` give the order.
    order: char,
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl QueryBuilder {
    fn new(from: &'static str, order: char) -> Self {
        Self { from, order, conditions: Vec::new(), values: Vec::new() }
    }

    fn and(mut self, condition: impl Into<String>, values: impl IntoIterator<Item = Value>) -> Self {
        self.conditions.push(condition.into());
        self.values.extend(values);
        self
    }

    fn and_if<T>(self, condition: &str, value: Option<T>) -> Self
    where
        Value: From<T>,
    {
        match value {
            Some(value) => self.and(condition, [value.into()]),
            None => self,
        }
    }
}

fn builders(filter: &Filter, index: LeadingIndex, partitions: &[Partition]) -> Vec<QueryBuilder> {
    match index {
        LeadingIndex::Rows => rows(filter, partitions),
        LeadingIndex::Label(at) => label(&filter.labels[at]),
        LeadingIndex::Parent => {
            let parent = filter.parent.expect("a list is led by the parent only when one is given");
            vec![QueryBuilder::new("runs r INDEXED BY runs_parent", 'r').and("r.parent = ?", [signed(parent.0).into()])]
        }
        LeadingIndex::Name => {
            let prefix = filter.name_prefix.as_deref().expect("a list is led by the name only when one is given");
            vec![name_range(QueryBuilder::new("runs r INDEXED BY runs_name", 'r'), prefix)]
        }
    }
}

fn rows(filter: &Filter, partitions: &[Partition]) -> Vec<QueryBuilder> {
    let phases: BTreeSet<&String> = filter.phases.iter().collect();
    let from = match phases.is_empty() {
        true => "runs r INDEXED BY runs_namespace",
        false => "runs r INDEXED BY runs_namespace_phase",
    };
    let in_partition = |partition: &Partition| {
        let values = [partition.kind.clone().into(), partition.namespace.clone().into()];
        QueryBuilder::new(from, 'r').and("r.kind = ? AND r.namespace = ?", values)
    };
    if phases.is_empty() {
        return partitions.iter().map(in_partition).collect();
    }
    let of_phase = |partition, phase: &&String| in_partition(partition).and("r.phase = ?", [(*phase).clone().into()]);
    partitions.iter().flat_map(|partition| phases.iter().map(move |phase| of_phase(partition, phase))).collect()
}

fn label(test: &LabelTest) -> Vec<QueryBuilder> {
    let with_value = |key: &String, value: &String| {
        QueryBuilder::new("run_labels l", 'l')
            .and("l.key = ? AND l.value = ?", [key.clone().into(), value.clone().into()])
    };
    match test {
        LabelTest::Equals { key, value } => vec![with_value(key, value)],
        LabelTest::In { key, values } => {
            let values: BTreeSet<&String> = values.iter().collect();
            values.into_iter().map(|value| with_value(key, value)).collect()
        }
        LabelTest::Exists { key } => {
            vec![
                QueryBuilder::new("run_labels l INDEXED BY run_labels_key", 'l').and("l.key = ?", [key.clone().into()]),
            ]
        }
        LabelTest::NotIn { .. } | LabelTest::Absent { .. } => {
            unreachable!("a label that is not there cannot lead a list")
        }
    }
}

/// Adds the conditions that the leading index does not answer, the order, and the selected columns.
fn finish(filter: &Filter, index: LeadingIndex, lead: QueryBuilder, select: Select) -> Query {
    let order = lead.order;
    let mut lead = lead
        .and_if(&format!("{order}.created >= ?"), filter.since.map(|time| time.0))
        .and_if(&format!("{order}.created < ?"), filter.until.map(|time| time.0));
    if !matches!(select, Select::Probe { .. }) {
        lead = others(filter, index, lead);
    }
    match select {
        Select::Keys { after, limit } => {
            if let Some(after) = after {
                let values = [Value::from(after.created.0), signed(after.run.0).into()];
                lead = lead.and(format!("({order}.created, {order}.run) < (?, ?)"), values);
            }
            let tail = match index {
                // Few by choice, and sorted by the caller: a sort in the database would have to read them all as well.
                LeadingIndex::Name => String::new(),
                LeadingIndex::Rows | LeadingIndex::Label(_) | LeadingIndex::Parent => {
                    format!(" ORDER BY {order}.created DESC, {order}.run DESC LIMIT {limit}")
                }
            };
            lead.select(&format!("{order}.created, {order}.run"), &tail)
        }
        Select::All => lead.select(&format!("{order}.created, {order}.run"), ""),
        Select::Count => lead.select("count(*)", ""),
        Select::Probe { limit } => {
            let Query { sql, values } = lead.select("1", &format!(" LIMIT {limit}"));
            Query { sql: format!("SELECT count(*) FROM ({sql})"), values }
        }
    }
}

impl QueryBuilder {
    fn select(self, what: &str, tail: &str) -> Query {
        // Labels alone can answer for labels. The cross join keeps them outside, where their order is the list's.
        let needs_rows = self.order == 'l' && self.conditions.iter().any(|condition| condition.starts_with("r."));
        let join = if needs_rows { " CROSS JOIN runs r ON r.run = l.run" } else { "" };
        let sql = format!("SELECT {what} FROM {}{join} WHERE {}{tail}", self.from, self.conditions.join(" AND "));
        Query { sql, values: self.values }
    }
}

fn others(filter: &Filter, index: LeadingIndex, mut lead: QueryBuilder) -> QueryBuilder {
    if index != LeadingIndex::Rows {
        lead = lead.and_if("r.kind = ?", filter.kind.clone()).and_if("r.namespace = ?", filter.namespace.clone());
        for (column, accepted) in [("phase", &filter.phases), ("namespace", &filter.namespaces)] {
            let accepted: BTreeSet<&String> = accepted.iter().collect();
            if !accepted.is_empty() {
                let marks = vec!["?"; accepted.len()].join(", ");
                let values = accepted.into_iter().map(|text| text.clone().into());
                lead = lead.and(format!("r.{column} IN ({marks})"), values);
            }
        }
    }
    if index != LeadingIndex::Name
        && let Some(prefix) = &filter.name_prefix
    {
        lead = name_range(lead, prefix);
    }
    if let Some((key, prefix)) = &filter.label_prefix {
        lead = label_begins(lead, key, prefix);
    }
    for (at, test) in filter.labels.iter().enumerate() {
        if index != LeadingIndex::Label(at) {
            lead = label_holds(lead, test);
        }
    }
    lead
}

/// Adds a label condition. It is a scalar subquery and not EXISTS: the planner may turn that into a join led by the
/// labels, which loses the order of the list.
fn label_holds(lead: QueryBuilder, test: &LabelTest) -> QueryBuilder {
    let order = lead.order;
    let ask = |values: &[&String], answer: &str| {
        let marks = vec!["?"; values.len()].join(", ");
        let value = if values.is_empty() { String::new() } else { format!(" AND x.value IN ({marks})") };
        format!(
            "(SELECT 1 FROM run_labels x WHERE x.created = {order}.created AND x.run = {order}.run AND x.key = ?{value} \
             LIMIT 1) IS {answer}"
        )
    };
    let (key, values, answer): (&String, Vec<&String>, &str) = match test {
        // No value is among none.
        LabelTest::In { values, .. } if values.is_empty() => return lead.and("0 = 1", []),
        LabelTest::NotIn { values, .. } if values.is_empty() => return lead,
        LabelTest::Equals { key, value } => (key, vec![value], "NOT NULL"),
        LabelTest::In { key, values } => (key, values.iter().collect(), "NOT NULL"),
        LabelTest::NotIn { key, values } => (key, values.iter().collect(), "NULL"),
        LabelTest::Exists { key } => (key, Vec::new(), "NOT NULL"),
        LabelTest::Absent { key } => (key, Vec::new(), "NULL"),
    };
    let bound = [key].into_iter().chain(values.iter().copied()).map(|text| text.clone().into());
    lead.and(ask(&values, answer), bound)
}

fn label_begins(lead: QueryBuilder, key: &str, prefix: &str) -> QueryBuilder {
    let order = lead.order;
    let end = after_prefix(prefix);
    let before_end = if end.is_some() { " AND x.value < ?" } else { "" };
    let ask = format!(
        "(SELECT 1 FROM run_labels x WHERE x.created = {order}.created AND x.run = {order}.run AND x.key = ? \
         AND x.value >= ?{before_end} LIMIT 1) IS NOT NULL"
    );
    lead.and(ask, [Some(key.to_owned()), Some(prefix.to_owned()), end].into_iter().flatten().map(Value::from))
}

/// Limits the names to those with the prefix, as a range of the index.
fn name_range(lead: QueryBuilder, prefix: &str) -> QueryBuilder {
    let lead = lead.and("r.name >= ?", [prefix.to_owned().into()]);
    lead.and_if("r.name < ?", after_prefix(prefix))
}

/// Returns the smallest text that is greater than every text with this prefix, if there is one.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Stepping over the gap of the surrogates, which are no characters.
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_after_a_prefix_bounds_all_that_start_with_it() {
        assert_eq!(after_prefix("abc").as_deref(), Some("abd"));
        assert_eq!(after_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10ffff}"), None);
        assert_eq!(after_prefix(""), None);
    }
}
