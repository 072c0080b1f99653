//! Lists of whole runs, which may be large: encoded piece by piece, so that no list is in memory as a whole. One that
//! fits into the first piece is answered at once.

use std::{collections::VecDeque, io};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures_util::{StreamExt, stream};
use octoflow_control::registry::{Fault as RegistryFault, Kind, ListOptions, Registry, RunRow, Selection};
use serde_json::Value;

use super::{
    accept::Form,
    form,
    table::{self, Include},
};
use crate::{
    answer::{self, Answer},
    stream::{LOOKUPS, Piece},
};

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

    /// Encodes the next piece and returns whether there are more. Blocks on the disk and the engine.
    pub(super) fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
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
            let item = match self.form {
                Form::Whole => object,
                Form::Metadata(version) => form::partial(&object, version),
                Form::Table(version) => table::row(self.kind, object, self.include, version),
            };
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

    /// Makes the answer that begins with this piece.
    pub(super) fn answer(self, first: Vec<u8>, more: bool) -> Answer {
        let mut answer = answer::bytes_as(StatusCode::OK, "application/json", Vec::new());
        if more {
            let rest = stream::try_unfold(Some(self), Self::next);
            *answer.body_mut() = Body::from_stream(stream::once(async { Ok(Bytes::from(first)) }).chain(rest));
        } else {
            *answer.body_mut() = Body::from(first);
        }
        answer
    }

    async fn next(list: Option<Self>) -> io::Result<Option<(Bytes, Option<Self>)>> {
        let Some(mut list) = list else { return Ok(None) };
        let turn = LOOKUPS.acquire().await.map_err(io::Error::other)?;
        let made = tokio::task::spawn_blocking(move || {
            let piece = list.piece();
            drop(turn);
            (piece, list)
        });
        let (piece, list) = made.await.map_err(io::Error::other)?;
        let (bytes, more) = piece.map_err(|fault| io::Error::other(fault.to_string()))?;
        Ok(Some((bytes.into(), more.then_some(list))))
    }
}
