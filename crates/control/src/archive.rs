//! The final record of a run: the object as people see it, and which node was which task.
//! It is written node by node, so that a large run is never held twice in memory.

use std::io::{self, Write};

use octoflow_engine::argo::{Run, garbage, status};
use octoflow_model::NodeIx;

/// `{"object": …, "tasks": {node id: index}, "garbage": [artifacts to be deleted]}`.
pub fn write_record(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    status::write_object(run, to)?;
    to.write_all(b",\"tasks\":{")?;
    let pods = run.state.nodes.iter().enumerate().filter(|(_, node)| node.kind.tasked());
    for (count, (at, _)) in pods.enumerate() {
        let comma = if count == 0 { "" } else { "," };
        let id = serde_json::to_string(&run.state.id_of(NodeIx(at as u32)))?;
        write!(to, "{comma}{id}:{at}")?;
    }
    to.write_all(b"}")?;
    let garbage = garbage::of(run);
    if !garbage.is_empty() {
        to.write_all(b",\"garbage\":")?;
        serde_json::to_writer(&mut *to, &garbage)?;
    }
    to.write_all(b"}")
}
