//! Lists of runs: encoded piece by piece while their rows are read page by page, so that no list is in memory as a whole.
//! One that fits into the first piece is answered at once.

use std::collections::VecDeque;

use octoflow_control::registry::{Fault as RegistryFault, Kind, ListOptions, Registry, RunRow, Selection};
use octoflow_model::Revision;
use serde_json::Value;

use super::{
    accept::Form,
    form,
    table::{self, Include, SummaryCells},
};
use crate::answer::{pieces::Pieces, stream::Piece};

/// Rows that are read at a time.
const PAGE: usize = 500;

/// List that is being sent.
pub(super) struct Runs {
    registry: Registry,
    kind: &'static Kind,
    form: Form,
    include: Include,
    options: ListOptions,
    /// How a table's row is made of the row in the index, where the whole object is not needed.
    cells: Option<(SummaryCells, &'static str)>,
    rows: VecDeque<RunRow>,
    /// Place of the rows after these.
    next: Option<String>,
    /// How many rows may still be read.
    left: usize,
    revision: Revision,
    metadata: Box<dyn Fn(Revision, Option<String>) -> Value + Send>,
    /// The items have begun.
    begun: bool,
    /// One of them was told.
    told: bool,
}

impl Runs {
    /// `metadata` gets the revision and the continuation of the next page.
    pub(super) fn new(
        registry: &Registry,
        kind: &'static Kind,
        form: Form,
        include: Include,
        options: ListOptions,
        metadata: impl Fn(Revision, Option<String>) -> Value + Send + 'static,
    ) -> Result<Self, RegistryFault> {
        let cells = match (form, kind.dialect()) {
            (Form::Table(version), Some(dialect)) if include != Include::Object && !dialect.selects_by_object => {
                dialect.summary_cells.map(|cells| (cells, version))
            }
            _ => None,
        };
        let mut runs = Self {
            registry: registry.clone(),
            kind,
            form,
            include,
            cells,
            rows: VecDeque::new(),
            next: None,
            left: options.limit.unwrap_or(usize::MAX),
            revision: Revision(0),
            options,
            metadata: Box::new(metadata),
            begun: false,
            told: false,
        };
        runs.revision = runs.read(runs.options.after.clone())?;
        Ok(runs)
    }

    /// Reads the rows after a place, and returns the revision before that.
    fn read(&mut self, after: Option<String>) -> Result<Revision, RegistryFault> {
        let page = ListOptions { limit: Some(self.left.min(PAGE)), after, ..self.options.clone() };
        let rows = self.registry.list_rows(self.kind, &page)?;
        self.left = self.left.saturating_sub(rows.items.len());
        self.rows = rows.items.into();
        self.next = rows.next;
        Ok(rows.revision)
    }

    fn next_row(&mut self) -> Result<Option<RunRow>, RegistryFault> {
        while self.rows.is_empty() && self.left > 0 {
            let Some(after) = self.next.take() else { return Ok(None) };
            self.read(Some(after))?;
        }
        Ok(self.rows.pop_front())
    }

    fn item(&self, row: &RunRow) -> Result<Option<Value>, RegistryFault> {
        if let Some((cells, version)) = self.cells {
            return Ok(Some(table::run(cells, row, self.include, version)));
        }
        let selection: &Selection = &self.options.selection;
        match self.registry.listed_run(row) {
            Ok(object) if selection.is_empty() || selection.matches(&object) => {
                Ok(Some(form::item(self.form, self.include, self.kind, object)))
            }
            Ok(_) => Ok(None),
            // It was deleted meanwhile.
            Err(RegistryFault::NotFound { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

impl Pieces for Runs {
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = if self.begun { Piece::new() } else { Piece::first() };
        if !std::mem::replace(&mut self.begun, true) {
            piece.bytes.extend(form::before_items(self.form));
        }
        while let Some(row) = self.next_row()? {
            let Some(item) = self.item(&row)? else { continue };
            if std::mem::replace(&mut self.told, true) {
                piece.bytes.push(b',');
            }
            serde_json::to_writer(&mut piece.bytes, &item).expect("a value can always be written to memory");
            if piece.is_full() {
                return Ok((piece.bytes, true));
            }
        }
        let metadata = (self.metadata)(self.revision, self.next.take());
        piece.bytes.extend(form::after_items(self.form, self.include, self.kind, metadata));
        Ok((piece.bytes, false))
    }
}
