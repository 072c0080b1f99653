//! Limits on rendering. A workflow may have more nodes than one answer can hold: a get is refused with a hint how to
//! ask for less. Lists and watches leave the nodes out much earlier: they are rendered for many, and at every change.

use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Fault, Kind, Registry, Storage, renderings::SharedText, run::of_row};
use crate::{
    Error,
    controller::unless_outage,
    event_loop::{LARGE_RUN, Shown},
    read,
};

/// Maximum number of nodes in one answer.
pub(super) const MAX_NODES: u64 = 150_000;
/// Maximum size of one answer, as estimated: ten times that is taken while rendering.
pub(super) const MAX_ANSWER_BYTES: u64 = MAX_NODES * BYTES_A_NODE;
/// Maximum number of nodes of a run in lists and watches: some two megabytes of text for each who watches.
pub(super) const MAX_LISTED_NODES: u64 = 5_000;

/// Approximate size of a node in the final record of a run.
const BYTES_A_NODE: u64 = 400;

/// Which nodes of a large run to render.
#[derive(Clone, Copy)]
pub(super) enum NodeDetail<'a> {
    /// All nodes, whatever it costs.
    Whole,
    /// All nodes; a run that is too large is refused with a hint how to ask for less.
    Refuse,
    /// All nodes unless there are too many for a list; then none, and a condition says so. A list must not fail because
    /// of one run.
    Omit,
    /// Nodes are not needed.
    Trim,
    /// Of a large run, only the nodes that match by id and type.
    Only(&'a dyn Fn(&str, &str) -> bool),
}

enum Size {
    Small(Value),
    Large(LargeRun),
}

#[derive(Clone, Copy, Debug)]
struct LargeRun {
    nodes: u64,
    /// Estimated size of its text.
    bytes: u64,
}

impl LargeRun {
    fn fits_an_answer(self) -> bool {
        self.nodes <= MAX_NODES && self.bytes <= MAX_ANSWER_BYTES
    }

    fn fits_a_list(self) -> bool {
        self.nodes <= MAX_LISTED_NODES && self.bytes <= MAX_LISTED_NODES * BYTES_A_NODE
    }

    fn refusal(self, row: &RunRow) -> Fault {
        Fault::TooLarge { kind: of_row(row), name: row.name.clone(), nodes: self.nodes, bytes: self.bytes }
    }
}

impl Registry {
    /// Renders a run, or refuses if it is too large.
    pub fn shown_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Refuse)
    }

    /// Returns the object as text, encoded by `encode`; `form` names the encoding. Few large runs are rendered at once:
    /// a caller waits for its turn, and shares the text with others who are being sent the same.
    pub fn shown_text(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        form: &str,
        encode: impl FnOnce(Value) -> Vec<u8>,
    ) -> Result<SharedText, Fault> {
        match kind.storage {
            Storage::Run(_) => {
                let row = self.row(kind, namespace, name)?;
                let row = row.ok_or_else(|| Fault::NotFound { kind, name: name.to_owned() })?;
                self.run_text(&row, form, encode)
            }
            Storage::Stored | Storage::View => Ok(SharedText::new(encode(self.get(kind, namespace, name)?))),
        }
    }

    /// Does the same for a run that was found already.
    pub fn run_text(
        &self,
        row: &RunRow,
        form: &str,
        encode: impl FnOnce(Value) -> Vec<u8>,
    ) -> Result<SharedText, Fault> {
        let revision = self.run_revision(row)?;
        match self.sized(row) {
            Ok(Size::Small(mut object)) => {
                object["metadata"]["resourceVersion"] = json!(revision.to_string());
                Ok(SharedText::new(encode(object)))
            }
            Ok(Size::Large(large)) if !large.fits_an_answer() => Err(large.refusal(row)),
            Ok(Size::Large(_)) => {
                let renderings = &self.0.renderings;
                let busy = |_| Fault::Busy { kind: of_row(row), name: row.name.clone() };
                let _turn = renderings.enter().map_err(busy)?;
                // Somebody may have rendered it while this caller waited.
                let revision = self.run_revision(row)?;
                if let Some(text) = renderings.shared(row.run, form, revision) {
                    return Ok(text);
                }
                let text = SharedText::new(encode(self.run_as(row, NodeDetail::Whole)?));
                renderings.share(row.run, form, revision, &text);
                Ok(text)
            }
            // It was deleted or archived meanwhile, or cannot be read: that is told as for any other run.
            Err(_) => Ok(SharedText::new(encode(self.run_as(row, NodeDetail::Refuse)?))),
        }
    }

    /// Returns whether there is such an object. Renders no run for it.
    pub fn exists(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<bool, Fault> {
        match kind.storage {
            Storage::Run(_) => Ok(self.row(kind, namespace, name)?.is_some()),
            Storage::Stored | Storage::View => match self.get(kind, namespace, name) {
                Ok(_) => Ok(true),
                Err(Fault::NotFound { .. }) => Ok(false),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Returns how often a large run was rendered with all of its nodes.
    pub fn whole_renderings(&self) -> u64 {
        self.0.renderings.count()
    }

    /// Renders a run for lists and watches: without nodes if there are too many.
    pub fn listed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Omit)
    }

    /// Renders a run for callers that do not need nodes: only a small run has them.
    pub fn trimmed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Trim)
    }

    /// Renders a run with at least its pods and their containers.
    pub(super) fn run_with_pods(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Only(&|_, of| matches!(of, "Pod" | "Container")))
    }

    /// Renders a run with at least this node, if it exists.
    pub(super) fn run_with_node(&self, row: &RunRow, node: &str) -> Result<Value, Fault> {
        self.run_as(row, NodeDetail::Only(&|id, _| id == node))
    }

    pub(super) fn render(&self, row: &RunRow, detail: NodeDetail<'_>) -> Result<Value, Fault> {
        let large = match self.sized(row)? {
            Size::Small(object) => return Ok(object),
            Size::Large(large) => large,
        };
        match detail {
            NodeDetail::Refuse if !large.fits_an_answer() => Err(large.refusal(row)),
            NodeDetail::Omit if !large.fits_a_list() => {
                let mut object = self.handle().summary(row.run)?;
                omitted(&mut object, large.nodes);
                Ok(object)
            }
            NodeDetail::Trim => Ok(self.handle().summary(row.run)?),
            NodeDetail::Only(keep) => self.read(|reader| Ok(read::object_where(reader, row.run, keep)?)),
            NodeDetail::Whole | NodeDetail::Refuse | NodeDetail::Omit => {
                self.0.renderings.rendered();
                self.read(|reader| Ok(read::object(reader, row.run)?))
            }
        }
    }

    fn sized(&self, row: &RunRow) -> Result<Size, Fault> {
        // A finished run does not change, so the event loop need not be asked.
        if !row.archived {
            match unless_outage(self.handle().look(row.run))? {
                Some(Shown::Here(object)) => return Ok(Size::Small(object)),
                Some(Shown::Elsewhere(nodes)) => {
                    let nodes = nodes as u64;
                    // Large values stand in the facts once; of everything else there is more than is shown.
                    let shown = self.read(|reader| Ok(reader.facts_bytes(row.run)?))? / 2;
                    return Ok(Size::Large(LargeRun { nodes, bytes: shown.max(nodes * BYTES_A_NODE) }));
                }
                None => {}
            }
        }
        self.read(|reader| {
            let bytes = reader.archive_size(row.run).map_err(Error::from)?.unwrap_or(0);
            let nodes = bytes / BYTES_A_NODE;
            if nodes > LARGE_RUN as u64 {
                return Ok(Size::Large(LargeRun { nodes, bytes }));
            }
            Ok(Size::Small(read::object(reader, row.run)?))
        })
    }
}

fn omitted(object: &mut Value, nodes: u64) {
    let condition = json!({
        "type": "NodesOmitted", "status": "True",
        "message": format!("{nodes} nodes are more than lists and watches show; get the object itself for them"),
    });
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}
