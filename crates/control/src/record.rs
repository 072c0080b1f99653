//! How facts lie in the journal: one line of JSON each.

use std::io::Write;

use octoflow_model::{Fact, RunId};

/// Facts of one run as bytes for the journal, with their numbers.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub first: u64,
    pub count: u32,
    pub lines: Vec<u8>,
}

impl Record {
    pub fn starting_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    pub fn push(&mut self, fact: &Fact) {
        serde_json::to_writer(&mut self.lines, fact).expect("a fact has only keys that are text");
        self.lines.write_all(b"\n").expect("writing to memory does not fail");
        self.count += 1;
    }
}

/// The facts of some lines, in order.
pub(crate) fn read(run: RunId, lines: &[u8]) -> Result<Vec<Fact>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).map_err(|error| format!("a fact of run {run} is unreadable: {error}")))
        .collect()
}
