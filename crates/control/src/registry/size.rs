//! How much of a run is shown at once. A workflow may have more nodes than an answer can hold: whoever asks for one hears
//! how to ask for less, and lists and watches show it without its nodes.

use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{Fault, Registry, run::of_row};
use crate::{
    Error,
    controller::unless_outage,
    event_loop::{LARGE_RUN, Shown},
    read,
};

/// The most nodes that one answer shows. They take some sixty megabytes of text, and ten times that while they are drawn.
pub(super) const MOST_NODES: u64 = 150_000;

/// What a node takes in the final record of a run, about.
const BYTES_A_NODE: u64 = 400;

/// What is done about a run that is too large to be shown at once.
#[derive(Clone, Copy)]
pub(super) enum Wish<'a> {
    /// All of it is needed, whatever it takes.
    Whole,
    /// Whoever asked hears that it is too large, and how to ask for less.
    Refuse,
    /// It is shown without its nodes, and says so: a list must not break off because of one run.
    Omit,
    /// Nobody wants to see the nodes.
    Trim,
    /// Of a large one only some nodes are needed, by their ids and types.
    Only(&'a dyn Fn(&str, &str) -> bool),
}

enum Size {
    Small(Value),
    /// So many nodes.
    Large(u64),
}

impl Registry {
    /// The run as people see it, unless it is too large to be shown at once.
    pub fn shown_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, Wish::Refuse)
    }

    /// The same for lists and watches: of a run that is too large the nodes are left out.
    pub fn listed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, Wish::Omit)
    }

    /// The same for whoever does not look at the nodes: only a small run has them then.
    pub fn trimmed_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, Wish::Trim)
    }

    /// The run with its pods at least, and with the containers they consist of.
    pub(super) fn podded_run(&self, row: &RunRow) -> Result<Value, Fault> {
        self.run_as(row, Wish::Only(&|_, of| matches!(of, "Pod" | "Container")))
    }

    /// The run with this node at least, if it has it.
    pub(super) fn run_with_node(&self, row: &RunRow, node: &str) -> Result<Value, Fault> {
        self.run_as(row, Wish::Only(&|id, _| id == node))
    }

    pub(super) fn draw(&self, row: &RunRow, wish: Wish<'_>) -> Result<Value, Fault> {
        let nodes = match self.sized(row)? {
            Size::Small(object) => return Ok(object),
            Size::Large(nodes) => nodes,
        };
        match wish {
            Wish::Refuse if nodes > MOST_NODES => {
                Err(Fault::TooLarge { kind: of_row(row), name: row.name.clone(), nodes })
            }
            Wish::Omit if nodes > MOST_NODES => {
                let mut object = self.handle().summary(row.run)?;
                omitted(&mut object, nodes);
                Ok(object)
            }
            Wish::Trim => Ok(self.handle().summary(row.run)?),
            Wish::Only(keep) => self.read(|reader| Ok(read::object_where(reader, row.run, keep)?)),
            Wish::Whole | Wish::Refuse | Wish::Omit => self.read(|reader| Ok(read::object(reader, row.run)?)),
        }
    }

    fn sized(&self, row: &RunRow) -> Result<Size, Fault> {
        // What is over does not change, so nobody who works need be asked.
        if !row.archived {
            match unless_outage(self.handle().look(row.run))? {
                Some(Shown::Here(object)) => return Ok(Size::Small(object)),
                Some(Shown::Elsewhere(nodes)) => return Ok(Size::Large(nodes as u64)),
                None => {}
            }
        }
        self.read(|reader| {
            let nodes = reader.archive_size(row.run).map_err(Error::from)?.unwrap_or(0) / BYTES_A_NODE;
            if nodes > LARGE_RUN as u64 {
                return Ok(Size::Large(nodes));
            }
            Ok(Size::Small(read::object(reader, row.run)?))
        })
    }
}

fn omitted(object: &mut Value, nodes: u64) {
    let condition = json!({
        "type": "NodesOmitted", "status": "True",
        "message": format!("{nodes} nodes are more than the {MOST_NODES} that are shown at once"),
    });
    match object["status"]["conditions"].as_array_mut() {
        Some(conditions) => conditions.push(condition),
        None => object["status"]["conditions"] = json!([condition]),
    }
}
