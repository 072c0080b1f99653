//! Lists of whole runs, which may be large: encoded piece by piece, so that no list is in memory as a whole. One that
//! fits into the first piece is answered at once.

use std::collections::VecDeque;

use octoflow_control::registry::{Fault as RegistryFault, Kind, ListOptions, Registry, RunRow, Selection};
use serde_json::Value;

use super::{accept::Form, form, pieces::Pieces, table::Include};
use crate::answer::stream::Piece;

/// List that is being sent.
pub(super) struct Runs {
    registry: Registry,
    kind: &'static Kind,
    form: Form,
    include: Include,
    selection: Selection,
    rows: VecDeque<RunRow>,
    /// Text before the items; empty once it was sent.
    head: String,
    /// Text behind the items.
    tail: String,
    told: bool,
}

impl Runs {
    /// `metadata` gets the revision and the continuation of the next page.
    pub(super) fn new(
        registry: &Registry,
        kind: &'static Kind,
        form: Form,
        include: Include,
        options: &ListOptions,
        metadata: impl FnOnce(octoflow_model::Revision, Option<String>) -> Value,
    ) -> Result<Self, RegistryFault> {
        let rows = registry.list_rows(kind, options)?;
        let catalog = form::list(form, include, kind, metadata(rows.revision, rows.next), Vec::new()).to_string();
        let items = if matches!(form, Form::Table(_)) { "\"rows\":[" } else { "\"items\":[" };
        let at = catalog.find(items).expect("every list has its items") + items.len();
        let (head, tail) = catalog.split_at(at);
        Ok(Self {
            registry: registry.clone(),
            kind,
            form,
            include,
            selection: options.selection.clone(),
            rows: rows.items.into(),
            head: head.to_owned(),
            tail: tail.to_owned(),
            told: false,
        })
    }
}

impl Pieces for Runs {
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = Piece::new();
        piece.bytes.append(&mut std::mem::take(&mut self.head).into_bytes());
        while let Some(row) = self.rows.pop_front() {
            let object = match self.registry.listed_run(&row) {
                Ok(object) if self.selection.is_empty() || self.selection.matches(&object) => object,
                Ok(_) => continue,
                // It was deleted meanwhile.
                Err(RegistryFault::NotFound { .. }) => continue,
                Err(fault) => return Err(fault),
            };
            let item = form::item(self.form, self.include, self.kind, object);
            if std::mem::replace(&mut self.told, true) {
                piece.bytes.push(b',');
            }
            serde_json::to_writer(&mut piece.bytes, &item).expect("a value can always be written to memory");
            if piece.is_full() && !self.rows.is_empty() {
                return Ok((piece.bytes, true));
            }
        }
        piece.bytes.append(&mut std::mem::take(&mut self.tail).into_bytes());
        Ok((piece.bytes, false))
    }
}
