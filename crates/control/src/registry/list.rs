//! Lists: pages of objects of one kind with continuation tokens. Runs are listed newest first from the run index,
//! stored objects by namespace and name.

use octoflow_engine::{dialect::StatusFields, kinds::scheduling::QUEUE};
use octoflow_model::Revision;
use octoflow_store::{Cursor, Filter, MAX_PAGE, Page, RunRow};
use serde_json::{Value, json};

use super::{Fault, Kind, Registry, Selection, Storage, run::of_row};

#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// `None` for all namespaces.
    pub namespace: Option<String>,
    pub selection: Selection,
    /// `None` for no limit.
    pub limit: Option<usize>,
    /// Continuation token: the `next` of an earlier page.
    pub after: Option<String>,
}

#[derive(Debug)]
pub struct Listing<T = Value> {
    pub items: Vec<T>,
    /// The list includes every change up to this revision.
    pub revision: Revision,
    /// Continuation token, if there is more.
    pub next: Option<String>,
}

impl Registry {
    pub fn list(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing, Fault> {
        match kind.storage {
            Storage::Run(_) => {
                let whole = needs_whole_object(kind, &options.selection);
                let rows = self.list_rows(kind, options)?;
                let mut items = Vec::with_capacity(rows.items.len());
                for row in rows.items {
                    match self.listed_run(&row) {
                        Ok(object) if whole && !options.selection.matches(&object) => {}
                        Ok(object) => items.push(object),
                        // It was deleted meanwhile.
                        Err(Fault::NotFound { .. }) => {}
                        Err(fault) => return Err(fault),
                    }
                }
                Ok(Listing { items, revision: rows.revision, next: rows.next })
            }
            Storage::Stored if kind.name == "Namespace" => self.list_namespaces(kind, options),
            Storage::Stored if *kind == QUEUE => self.list_queues(options),
            Storage::Stored => self.list_stored(kind, options),
            Storage::View => self.list_view(kind, options),
        }
    }

    /// Lists the rows of runs that may match. Where the row lacks a selected field, the caller must check the whole
    /// object.
    pub fn list_rows(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing<RunRow>, Fault> {
        if !needs_whole_object(kind, &options.selection) {
            return self.list_runs(kind, options, &Filter::default());
        }
        let labels = options.selection.labels.clone();
        let selection = Selection { labels, ..Selection::default() };
        self.list_runs(kind, &ListOptions { selection, ..options.clone() }, &Filter::default())
    }

    /// Lists rows of runs without reading whole objects. `filter` applies in addition to the options.
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
            // The index knows names; other field tests are checked row by row.
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

/// Cuts one page from items that are sorted by their keys.
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

/// Returns the fields that selectors can test without reading the whole run.
pub(super) fn as_fields(row: &RunRow) -> Value {
    let mut status = json!({});
    if let Some(StatusFields { phase, message, .. }) = of_row(row).dialect().map(|dialect| dialect.status) {
        StatusFields::put(&mut status, phase, json!(row.phase));
        StatusFields::put(&mut status, message, json!(row.message));
    }
    json!({"metadata": {"name": row.name, "namespace": row.namespace, "uid": row.uid}, "status": status})
}

/// Returns whether the selection tests fields that only the whole object has, for kinds that support this.
fn needs_whole_object(kind: &Kind, selection: &Selection) -> bool {
    let Some(dialect) = kind.dialect().filter(|dialect| dialect.selects_by_object) else { return false };
    let is_known = |field: &str| match field.split_once('.') {
        Some(("metadata", field)) => matches!(field, "name" | "namespace" | "uid"),
        Some(("status", field)) => [dialect.status.phase, dialect.status.message].contains(&field),
        _ => false,
    };
    selection.fields.0.iter().any(|test| !is_known(&test.field))
}
