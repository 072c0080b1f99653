//! Lists of kept objects: told piece by piece while the registry reads them page by page, so that no list is in memory as a
//! whole. One that fits into the first piece is answered at once.

use octoflow_control::registry::{Fault as RegistryFault, KeptList, Kind, ListOptions, Registry};
use octoflow_model::Revision;
use serde_json::Value;

use super::{accept::Form, form, pieces::Pieces, table::Include};
use crate::answer::stream::Piece;

/// A list on its way out.
pub(super) struct Kept {
    kind: &'static Kind,
    form: Form,
    include: Include,
    list: KeptList,
    metadata: Box<dyn Fn(Revision, Option<String>) -> Value + Send>,
    /// The items have begun.
    begun: bool,
    /// One of them was told.
    told: bool,
}

impl Kept {
    /// `metadata` is made of the revision and the place of the next page.
    pub(super) fn new(
        registry: &Registry,
        kind: &'static Kind,
        form: Form,
        include: Include,
        options: &ListOptions,
        metadata: impl Fn(Revision, Option<String>) -> Value + Send + 'static,
    ) -> Result<Self, RegistryFault> {
        let list = registry.kept(kind, options)?;
        Ok(Self { kind, form, include, list, metadata: Box::new(metadata), begun: false, told: false })
    }

    /// The name of the items, and what stands behind them: where the next page begins is known at the end only.
    fn frame(&self, next: Option<String>) -> (&'static str, String) {
        let metadata = (self.metadata)(self.list.revision(), next);
        let mut frame = form::list(self.form, self.include, self.kind, metadata, Vec::new());
        let items = if matches!(self.form, Form::Table(_)) { "rows" } else { "items" };
        if let Some(fields) = frame.as_object_mut() {
            fields.remove(items);
        }
        (items, frame.to_string())
    }
}

impl Pieces for Kept {
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = Piece::new();
        if !std::mem::replace(&mut self.begun, true) {
            piece.bytes.extend(format!("{{\"{}\":[", self.frame(None).0).into_bytes());
        }
        while let Some(object) = self.list.next_item()? {
            if std::mem::replace(&mut self.told, true) {
                piece.bytes.push(b',');
            }
            let item = form::item(self.form, self.include, self.kind, object);
            serde_json::to_writer(&mut piece.bytes, &item).expect("a value can always be written to memory");
            if piece.is_full() {
                return Ok((piece.bytes, true));
            }
        }
        let next = self.list.next_place()?;
        let (_, rest) = self.frame(next);
        piece.bytes.extend(b"],");
        piece.bytes.extend(rest.trim_start_matches('{').as_bytes());
        Ok((piece.bytes, false))
    }
}
