//! Writes the final record of a workflow.

use std::io::{self, Write};

use octoflow_model::NodeIx;

use super::{Run, garbage, status};
use crate::run::record::{write_log_sizes, write_runs};

pub(super) fn write(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    status::write_object(run, to)?;
    to.write_all(b",\"tasks\":{")?;
    let pods = run.state.nodes.iter().enumerate().filter(|(_, node)| node.kind.tasked() && !node.reused());
    for (count, (at, _)) in pods.enumerate() {
        let comma = if count == 0 { "" } else { "," };
        let id = serde_json::to_string(&run.state.id_of(NodeIx(at as u32)))?;
        write!(to, "{comma}{id}:{at}")?;
    }
    to.write_all(b"}")?;
    let mut any = false;
    let reused = run.state.nodes.iter().enumerate().filter(|(_, node)| node.reused());
    let reused = reused.filter_map(|(at, _)| Some((NodeIx(at as u32), run.attempt_of(NodeIx(at as u32))?)));
    for (count, (at, attempt)) in reused.enumerate() {
        to.write_all(if count == 0 { b",\"elsewhere\":{" } else { b"," })?;
        write!(to, "{}:\"{attempt}\"", serde_json::to_string(&run.state.id_of(at))?)?;
        any = true;
    }
    if any {
        to.write_all(b"}")?;
    }
    let sizes = run.state.logs.iter();
    write_log_sizes(sizes.filter_map(|(at, bytes)| Some((run.attempt_of(*at)?, *bytes))), to)?;
    write_runs(run.replaced_runs(), to)?;
    let garbage = garbage::of(run);
    if !garbage.is_empty() {
        to.write_all(b",\"garbage\":")?;
        serde_json::to_writer(&mut *to, &garbage)?;
    }
    to.write_all(b"}")
}
