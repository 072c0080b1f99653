//! Finished and open runs in one list, newest first, with the filters of an archive. It reads only the run index;
//! callers that want whole objects ask for those rows.

use std::collections::VecDeque;

use octoflow_model::{Revision, Time};
use octoflow_store::{Cursor, Filter, Page, RunRow};

use super::{Fault, Kind, Registry, Selection, list::as_fields};

/// Rows that are read at a time.
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

/// One list on its way. Whoever goes through it holds a page of rows and no more.
pub struct History {
    registry: Registry,
    /// What the index supports.
    index: Filter,
    filter: HistoryFilter,
    revision: Revision,
    page: VecDeque<RunRow>,
    at: Position,
    given: usize,
}

/// Where the next page of rows begins.
enum Position {
    After(Option<Cursor>),
    End,
}

impl Registry {
    pub fn history(&self, kind: &'static Kind, filter: HistoryFilter) -> Result<History, Fault> {
        let index = Filter {
            kind: Some(kind.key.to_owned()),
            namespace: filter.namespace.clone(),
            name_prefix: match &filter.name {
                Some(NameTest::Is(name) | NameTest::Begins(name)) => Some(name.clone()),
                Some(NameTest::IsNot(_) | NameTest::Contains(_)) | None => None,
            },
            labels: filter.selection.labels.0.clone(),
            since: filter.created_after,
            ..Filter::default()
        };
        let revision = self.read(|reader| Ok(reader.revision()?))?;
        let (registry, page, at) = (self.clone(), VecDeque::new(), Position::After(None));
        let mut history = History { registry, index, filter, revision, page, at, given: 0 };
        for _ in 0..history.filter.skip {
            if history.find()?.is_none() {
                break;
            }
        }
        Ok(history)
    }

    /// Returns the label keys of runs, of one namespace or of all.
    pub fn label_keys(&self, namespace: Option<&str>) -> Result<Vec<String>, Fault> {
        let mut keys = self.read(|reader| Ok(reader.label_keys(namespace)?))?;
        keys.retain(|key| !octoflow_model::plugin::term::is_term(key));
        Ok(keys)
    }

    /// Returns the values of a label on runs.
    pub fn label_values(&self, key: &str, namespace: Option<&str>) -> Result<Vec<String>, Fault> {
        self.read(|reader| Ok(reader.label_values(key, namespace)?))
    }
}

impl History {
    /// Everything up to here is in it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The next row, until there is none or as many were given as were asked for.
    pub fn next_row(&mut self) -> Result<Option<RunRow>, Fault> {
        if self.filter.limit.is_some_and(|limit| self.given >= limit) {
            return Ok(None);
        }
        let found = self.find()?;
        self.given += usize::from(found.is_some());
        Ok(found)
    }

    /// How many rows the next list has to skip, if something is left. To be asked when there is no next row.
    pub fn next_skip(&mut self) -> Result<Option<usize>, Fault> {
        Ok(self.find()?.map(|_| self.filter.skip + self.given))
    }

    fn find(&mut self) -> Result<Option<RunRow>, Fault> {
        loop {
            while let Some(row) = self.page.pop_front() {
                if self.filter.matches(&row) {
                    return Ok(Some(row));
                }
            }
            let Position::After(after) = self.at else { return Ok(None) };
            let (index, page) = (&self.index, Page { limit: PAGE, after });
            let (rows, next) = self.registry.read(|reader| Ok(reader.list(index, page)?))?;
            self.page = rows.into();
            self.at = if next.is_some() { Position::After(next) } else { Position::End };
        }
    }
}

impl HistoryFilter {
    /// Checks the conditions that the index does not support.
    fn matches(&self, row: &RunRow) -> bool {
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
