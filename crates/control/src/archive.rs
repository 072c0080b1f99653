//! The final record of a run: the object as people see it, and which node was which task.
//! It is written node by node, so that a large run is never held twice in memory.

use std::io::{self, Write};

use octoflow_engine::{
    Run,
    argo::{self, garbage, status},
    taskset,
};
use octoflow_model::{AttemptId, NodeIx};

/// `{"object": …, "tasks": {node id: index}, "elsewhere": {node id or pod: its attempt}, "logs": {attempt: how
/// long its log was}, "runs": [whose place it took], "garbage": [artifacts to be deleted]}`.
pub fn write_record(run: &Run, to: &mut dyn Write) -> io::Result<()> {
    if let Some(run) = run.of::<taskset::Run>() {
        return write_task_set(run, to);
    }
    write_workflow(run.of().expect("there are two dialects"), to)
}

/// `,"logs":{attempt: bytes}`, when any wrote something.
fn write_log_sizes(sizes: impl Iterator<Item = (AttemptId, u64)>, to: &mut dyn Write) -> io::Result<()> {
    let mut open = false;
    for (attempt, bytes) in sizes {
        to.write_all(if open { b"," } else { b",\"logs\":{" })?;
        write!(to, "\"{attempt}\":{bytes}")?;
        open = true;
    }
    if open { to.write_all(b"}") } else { Ok(()) }
}

/// Every pod is listed with its own attempt, since a replica has as many as it had tries.
fn write_task_set(run: &taskset::Run, to: &mut dyn Write) -> io::Result<()> {
    to.write_all(b"{\"object\":")?;
    serde_json::to_writer(&mut *to, &taskset::status::object(run))?;
    to.write_all(b",\"elsewhere\":{")?;
    for (count, (pod, attempt)) in run.pods().into_iter().enumerate() {
        let comma = if count == 0 { "" } else { "," };
        write!(to, "{comma}{}:\"{attempt}\"", serde_json::to_string(&pod)?)?;
    }
    to.write_all(b"}")?;
    write_log_sizes(run.state.logs.iter().copied(), to)?;
    if !run.took_place_of().is_empty() {
        to.write_all(b",\"runs\":")?;
        serde_json::to_writer(&mut *to, run.took_place_of())?;
    }
    to.write_all(b"}")
}

pub fn write_workflow(run: &argo::Run, to: &mut dyn Write) -> io::Result<()> {
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
