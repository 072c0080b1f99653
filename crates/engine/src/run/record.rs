//! The final record of a run: its object, and which node was which task. Written part by part, so that a large run is
//! never held in memory twice.

use std::io::{self, Write};

use octoflow_model::{AttemptId, RunId};

/// Writes `,"logs":{attempt: bytes}`, if any attempt wrote something.
pub(crate) fn write_log_sizes(sizes: impl Iterator<Item = (AttemptId, u64)>, to: &mut dyn Write) -> io::Result<()> {
    let mut open = false;
    for (attempt, bytes) in sizes {
        to.write_all(if open { b"," } else { b",\"logs\":{" })?;
        write!(to, "\"{attempt}\":{bytes}")?;
        open = true;
    }
    if open { to.write_all(b"}") } else { Ok(()) }
}

/// Writes `,"runs":[runs it replaced]`, if there are any.
pub(crate) fn write_runs(runs: &[RunId], to: &mut dyn Write) -> io::Result<()> {
    if !runs.is_empty() {
        to.write_all(b",\"runs\":")?;
        serde_json::to_writer(&mut *to, runs)?;
    }
    Ok(())
}
