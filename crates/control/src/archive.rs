//! The final record of a run: the object as people see it, and which node was which task.
//! It is written node by node, so that a large run is never held twice in memory.

use std::io::{self, Write};

use octoflow_engine::argo::{Run, garbage, status};
use octoflow_model::NodeIx;

/// `{"object": …, "tasks": {node id: index}, "elsewhere": {node id: attempt of another run}, "runs": [whose place it
/// took], "garbage": [artifacts to be deleted]}`.
pub fn write_record(run: &Run, to: &mut dyn Write) -> io::Result<()> {
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
    if !run.took_place_of().is_empty() {
        to.write_all(b",\"runs\":")?;
        serde_json::to_writer(&mut *to, run.took_place_of())?;
    }
    let garbage = garbage::of(run);
    if !garbage.is_empty() {
        to.write_all(b",\"garbage\":")?;
        serde_json::to_writer(&mut *to, &garbage)?;
    }
    to.write_all(b"}")
}
