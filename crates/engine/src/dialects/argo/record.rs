//! Writes the final record of a workflow.

use std::io::{self, Write};

use octoflow_model::{AttemptId, NodeIx};

use super::{Run, garbage, status};
use crate::run::record::{write_log_sizes, write_runs};

pub(super) fn write(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    status::write_object(run, to)?;
    to.write_all(b",\"tasks\":{")?;
    let last = |at: usize| run.state.attempt_number(NodeIx(at as u32));
    let pods = run.state.nodes.iter().enumerate();
    let pods = pods.filter(|(at, node)| node.kind.tasked() && !node.reused() && last(*at) == 0);
    for (count, (at, _)) in pods.enumerate() {
        let comma = if count == 0 { "" } else { "," };
        let id = serde_json::to_string(&run.state.id_of(NodeIx(at as u32)))?;
        write!(to, "{comma}{id}:{at}")?;
    }
    to.write_all(b"}")?;
    let mut any = false;
    // A node whose attempt is not its first one of this run.
    let others = run.state.nodes.iter().enumerate().filter(|(at, node)| node.reused() || last(*at) > 0);
    let others = others.filter_map(|(at, _)| Some((NodeIx(at as u32), run.attempt_of(NodeIx(at as u32))?)));
    for (count, (at, attempt)) in others.enumerate() {
        to.write_all(if count == 0 { b",\"elsewhere\":{" } else { b"," })?;
        write!(to, "{}:\"{attempt}\"", serde_json::to_string(&run.state.id_of(at))?)?;
        any = true;
    }
    if any {
        to.write_all(b"}")?;
    }
    let sizes = run.state.logs.iter();
    let of = |at: NodeIx, attempt: u32| Some(AttemptId { attempt, ..run.attempt_of(at)? });
    write_log_sizes(sizes.filter_map(|(at, attempt, bytes)| Some((of(*at, *attempt)?, *bytes))), to)?;
    write_runs(run.replaced_runs(), to)?;
    let garbage = garbage::of(run);
    if !garbage.is_empty() {
        to.write_all(b",\"garbage\":")?;
        serde_json::to_writer(&mut *to, &garbage)?;
    }
    to.write_all(b"}")
}
