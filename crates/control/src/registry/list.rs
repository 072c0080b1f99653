//! Lists: pages of objects of one kind with a place to go on from. Runs are listed newest first from their narrow
//! index, kept objects by namespace and name.

use octoflow_engine::dialect::StatusFields;
use octoflow_model::Revision;
use octoflow_store::{Cursor, Filter, MAX_PAGE, Page, RunRow};
use serde_json::{Value, json};

use super::{Fault, Keeping, Kind, Registry, Selection, run::of_row};

#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// None: all namespaces.
    pub namespace: Option<String>,
    pub selection: Selection,
    /// None: everything.
    pub limit: Option<usize>,
    /// The `next` of an earlier page.
    pub after: Option<String>,
}

#[derive(Debug)]
pub struct Listing<T = Value> {
    pub items: Vec<T>,
    /// Everything up to here is in it.
    pub revision: Revision,
    /// Where the next page begins, if there is more.
    pub next: Option<String>,
}

impl Registry {
    pub fn list(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing, Fault> {
        match kind.keeping {
            Keeping::Run(_) => {
                let closely = asks_for_more(kind, &options.selection);
                let rows = self.list_rows(kind, options)?;
                let mut items = Vec::with_capacity(rows.items.len());
                for row in rows.items {
                    match self.listed_run(&row) {
                        Ok(object) if closely && !options.selection.matches(&object) => {}
                        Ok(object) => items.push(object),
                        // It was deleted meanwhile.
                        Err(Fault::NotFound { .. }) => {}
                        Err(fault) => return Err(fault),
                    }
                }
                Ok(Listing { items, revision: rows.revision, next: rows.next })
            }
            Keeping::Stored if kind.name == "Namespace" => self.list_namespaces(kind, options),
            Keeping::Stored => self.list_stored(kind, options),
            Keeping::View => self.list_view(kind, options),
        }
    }

    /// The rows of runs that may match. Only the whole run tells whether one does, where its row does not know enough.
    pub fn list_rows(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing<RunRow>, Fault> {
        if !asks_for_more(kind, &options.selection) {
            return self.list_runs(kind, options, &Filter::default());
        }
        let labels = options.selection.labels.clone();
        let selection = Selection { labels, ..Selection::default() };
        self.list_runs(kind, &ListOptions { selection, ..options.clone() }, &Filter::default())
    }

    /// The rows of runs, for lists that need no more than them. What `filter` says holds beside the options.
    pub fn list_runs(
        &self,
        kind: &'static Kind,
        options: &ListOptions,
        filter: &Filter,
    ) -> Result<Listing<RunRow>, Fault> {
        let filter = Filter {
            kind: Some(kind.key.to_owned()),
            namespace: options.namespace.clone().or_else(|| filter.namespace.clone()),
            labels: filter.labels.iter().chain(&options.selection.labels.0).cloned().collect(),
            // The index knows names; everything else of the fields is looked at row by row.
            name_prefix: filter.name_prefix.clone().or_else(|| options.selection.fields.name().map(str::to_owned)),
            ..filter.clone()
        };
        let mut after: Option<Cursor> = match options.after.as_deref() {
            Some(text) => {
                Some(text.parse().map_err(|error: octoflow_store::BadCursor| Fault::BadRequest(error.to_string()))?)
            }
            None => None,
        };
        let limit = options.limit.unwrap_or(usize::MAX);
        let fields = &options.selection.fields;
        self.read(|reader| {
            let revision = reader.revision()?;
            let mut items = Vec::new();
            loop {
                let wanted = limit - items.len();
                let (rows, next) = reader.list(&filter, Page { limit: wanted.min(MAX_PAGE), after })?;
                let before = items.len();
                items.extend(rows.into_iter().filter(|row| fields.0.is_empty() || fields.matches(&as_fields(row))));
                after = next;
                let filtered_out = items.len() == before;
                if next.is_none() || (items.len() >= limit && !filtered_out) {
                    return Ok(Listing { items, revision, next: next.map(|cursor| cursor.to_string()) });
                }
            }
        })
    }
}

/// One page of items that have a key each and are in its order.
pub(super) fn page(items: Vec<(String, Value)>, revision: Revision, options: &ListOptions) -> Listing {
    let mut rest = items.into_iter().skip_while(|(key, _)| options.after.as_ref().is_some_and(|after| key <= after));
    let mut last = None;
    let mut items = Vec::new();
    for (key, item) in rest.by_ref().take(options.limit.unwrap_or(usize::MAX)) {
        items.push(item);
        last = Some(key);
    }
    let next = rest.next().and(last);
    Listing { items, revision, next }
}

/// What field selectors can ask of a run without reading it whole.
pub(super) fn as_fields(row: &RunRow) -> Value {
    let status = match of_row(row).dialect().map(|dialect| dialect.status) {
        Some(StatusFields { phase, message, .. }) => json!({phase: row.phase, message: row.message}),
        None => json!({}),
    };
    json!({"metadata": {"name": row.name, "namespace": row.namespace, "uid": row.uid}, "status": status})
}

/// The selection wants fields that only the whole has, of a kind whose wholes are looked at for that.
fn asks_for_more(kind: &Kind, selection: &Selection) -> bool {
    let Some(dialect) = kind.dialect().filter(|dialect| dialect.selects_by_object) else { return false };
    let is_known = |field: &str| match field.split_once('.') {
        Some(("metadata", field)) => matches!(field, "name" | "namespace" | "uid"),
        Some(("status", field)) => [dialect.status.phase, dialect.status.message].contains(&field),
        _ => false,
    };
    selection.fields.0.iter().any(|test| !is_known(&test.field))
}
