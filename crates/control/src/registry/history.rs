//! Finished and open runs in one list, newest first, with the filters of an archive. It reads only the run index;
//! callers that want whole objects ask for those rows.

use octoflow_model::{Revision, Time};
use octoflow_store::{Cursor, Filter, MAX_PAGE, Page, RunRow};

use super::{Fault, Kind, Registry, Selection, list::as_fields};

/// Page size when filters that the index does not support leave only some of the rows.
const PAGE: usize = 500;

#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    pub selection: Selection,
    pub name: Option<NameTest>,
    /// Created at this time or later.
    pub created_after: Option<Time>,
    pub started_after: Option<Time>,
    pub finished_before: Option<Time>,
    /// Only finished runs.
    pub over: bool,
    pub skip: usize,
    /// `None` for no limit.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameTest {
    Is(String),
    IsNot(String),
    Begins(String),
    Contains(String),
}

#[derive(Debug)]
pub struct History {
    pub rows: Vec<RunRow>,
    pub revision: Revision,
    /// True if there are more rows after these.
    pub more: bool,
}

impl Registry {
    pub fn history(&self, kind: &'static Kind, filter_by: &HistoryFilter) -> Result<History, Fault> {
        let filter = Filter {
            kind: Some(kind.key.to_owned()),
            namespace: filter_by.namespace.clone(),
            name_prefix: match &filter_by.name {
                Some(NameTest::Is(name) | NameTest::Begins(name)) => Some(name.clone()),
                Some(NameTest::IsNot(_) | NameTest::Contains(_)) | None => None,
            },
            labels: filter_by.selection.labels.0.clone(),
            since: filter_by.created_after,
            ..Filter::default()
        };
        let limit = filter_by.limit.unwrap_or(usize::MAX);
        let stride = limit.saturating_add(filter_by.skip).saturating_add(1).clamp(PAGE, MAX_PAGE);
        self.read(|reader| {
            let revision = reader.revision()?;
            let mut history = History { rows: Vec::new(), revision, more: false };
            let mut to_skip = filter_by.skip;
            let mut after: Option<Cursor> = None;
            loop {
                let (rows, next) = reader.list(&filter, Page { limit: stride, after })?;
                for row in rows.into_iter().filter(|row| filter_by.check_not_terminating(row)) {
                    if to_skip > 0 {
                        to_skip -= 1;
                    } else if history.rows.len() < limit {
                        history.rows.push(row);
                    } else {
                        history.more = true;
                        return Ok(history);
                    }
                }
                after = next;
                if after.is_none() {
                    return Ok(history);
                }
            }
        })
    }

    /// Returns the label keys of runs, of one namespace or of all.
    pub fn label_keys(&self, namespace: Option<&str>) -> Result<Vec<String>, Fault> {
        self.read(|reader| Ok(reader.label_keys(namespace)?))
    }

    /// Returns the values of a label on runs.
    pub fn label_values(&self, key: &str, namespace: Option<&str>) -> Result<Vec<String>, Fault> {
        self.read(|reader| Ok(reader.label_values(key, namespace)?))
    }
}

impl HistoryFilter {
    /// Checks the conditions that the index does not support.
    fn check_not_terminating(&self, row: &RunRow) -> bool {
        let named = match &self.name {
            None => true,
            Some(NameTest::Is(name)) => row.name == *name,
            Some(NameTest::IsNot(name)) => row.name != *name,
            Some(NameTest::Begins(name)) => row.name.starts_with(name),
            Some(NameTest::Contains(name)) => row.name.contains(name),
        };
        named
            && (!self.over || row.archived)
            && self.started_after.is_none_or(|time| row.started.is_some_and(|at| at > time))
            && self.finished_before.is_none_or(|time| row.finished.is_some_and(|at| at < time))
            && (self.selection.fields.0.is_empty() || self.selection.fields.matches(&as_fields(row)))
    }
}
