//! Lists of kept objects: told piece by piece while the registry reads them page by page, so that no list is in memory as a
//! whole. One that fits into the first piece is answered at once.

use octoflow_control::registry::{Fault as RegistryFault, KeptList, Kind, ListOptions, Registry};
use octoflow_model::Revision;
use serde_json::Value;

use super::{accept::Form, form, table::Include};
use crate::answer::{pieces::Pieces, stream::Piece};

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
}

impl Pieces for Kept {
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = if self.begun { Piece::new() } else { Piece::first() };
        if !std::mem::replace(&mut self.begun, true) {
            piece.bytes.extend(form::before_items(self.form));
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
        let metadata = (self.metadata)(self.list.revision(), self.list.next_place()?);
        piece.bytes.extend(form::after_items(self.form, self.include, self.kind, metadata));
        Ok((piece.bytes, false))
    }
}
