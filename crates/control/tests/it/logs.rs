//! Logs through the registry: the same call before, during and after a run. The files are written by hand, in the format
//! that is fixed: stream, microseconds, length, bytes.

use std::{fs, path::Path};

use octoflow_control::{
    read,
    registry::{Fault, LogBatch, LogQuery, LogReader, Registry},
};
use octoflow_engine::Command;
use octoflow_model::{AttemptId, Time};
use octoflow_runtime::logs::Logs;
use octoflow_store::Reader;
use serde_json::json;

use super::registry::{create, held, quick, registry, until};

fn attempts(dir: &Path, registry: &Registry, name: &str) -> Vec<AttemptId> {
    let run = registry.find_run(crate::registry::kind("Workflow"), "default", name).unwrap().run;
    let mut found = read::attempts(&Reader::open(dir).unwrap(), run).unwrap();
    found.sort_by_key(|(_, attempt)| *attempt);
    found.into_iter().map(|(_, attempt)| attempt).collect()
}

/// Times are in milliseconds since the run began to be interesting.
fn write(dir: &Path, attempt: AttemptId, frames: &[(u8, i64, &[u8])]) {
    let path = Logs::new(dir).path(attempt);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut bytes = Vec::new();
    for (stream, at, text) in frames {
        bytes.push(*stream);
        bytes.extend((later().0 + at * 1000).to_le_bytes());
        bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
        bytes.extend(*text);
    }
    fs::write(path, bytes).unwrap();
}

/// After everything that runs in these tests.
fn later() -> Time {
    Time::parse("2100-01-01T00:00:00Z").unwrap()
}

fn of(workflow: &str) -> LogQuery {
    LogQuery {
        namespace: "default".to_owned(),
        run: Some((crate::registry::kind("Workflow"), workflow.to_owned())),
        ..LogQuery::default()
    }
}

fn texts(batch: &LogBatch) -> Vec<String> {
    batch.lines.iter().map(|line| String::from_utf8_lossy(&line.content).into_owned()).collect()
}

fn all(mut reader: LogReader) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let batch = reader.read(2).unwrap();
        assert!(batch.lines.len() <= 2);
        lines.extend(texts(&batch));
        if batch.finished {
            return lines;
        }
    }
}

fn finished(registry: &Registry, name: &str) {
    until(registry, || {
        registry.find_run(crate::registry::kind("Workflow"), "default", name).is_ok_and(|named| named.row.archived)
    });
}

fn two(name: &str) -> serde_json::Value {
    let mut two = quick(name);
    two["spec"]["templates"][0]["steps"] =
        json!([[{"name": "one", "template": "leaf"}, {"name": "two", "template": "leaf"}]]);
    two
}

#[test]
fn lines_of_all_pods_come_in_order_of_time_and_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", two("w")).unwrap();
    finished(&registry, "w");
    let pods = attempts(dir.path(), &registry, "w");
    write(dir.path(), pods[0], &[(1, 1, b"a1\na2\n"), (0x11, 2, b"\x04sidex\n"), (1, 30, b"a3")]);
    write(dir.path(), pods[1], &[(2, 10, b"b1\n"), (1, 20, b"b2\n")]);
    let logs = |query: LogQuery| all(registry.logs(query).unwrap());
    assert_eq!(logs(of("w")), ["a1", "a2", "b1", "b2", "a3"]);
    assert_eq!(logs(of("@latest")).len(), 5);
    assert_eq!(logs(LogQuery { grep: Some("^a[12]$".to_owned()), ..of("w") }), ["a1", "a2"]);
    assert_eq!(logs(LogQuery { tail: Some(1), ..of("w") }), ["b2", "a3"]);
    assert_eq!(logs(LogQuery { since: Some(Time(later().0 + 20_000)), ..of("w") }), ["b2", "a3"]);
    assert_eq!(logs(LogQuery { container: Some("side".to_owned()), ..of("w") }), ["x"]);
    assert_eq!(logs(LogQuery { limit_bytes: Some(4), ..of("w") }), ["a1", "a"]);
    let stamped = logs(LogQuery { timestamps: true, tail: Some(1), ..of("w") });
    assert_eq!(stamped[0], "2100-01-01T00:00:00.020000Z b2");
    let batch = registry.logs(of("w")).unwrap().read(1).unwrap();
    let pod = batch.lines[0].pod.to_string();
    assert!(pod.starts_with("w-leaf-") && &*batch.lines[0].container == "main");
    let one = LogQuery { pod: Some(pod), ..of("w") };
    assert_eq!(logs(one.clone()), ["a1", "a2", "a3"]);
    // A pod's name alone is enough, and its bytes are what it wrote.
    let alone = LogQuery { run: None, ..one };
    let chunk = registry.pod_log_bytes(alone.clone()).unwrap().read().unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.finished), (&b"a1\na2\na3"[..], true));
    let chunk = registry.pod_log_bytes(LogQuery { tail: Some(2), ..alone.clone() }).unwrap().read().unwrap();
    assert_eq!(chunk.bytes, b"a2\na3\n");
    let chunk = registry.pod_log_bytes(LogQuery { limit_bytes: Some(4), ..alone }).unwrap().read().unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.finished), (&b"a1\na"[..], true));
    let wrong = [
        (LogQuery { grep: Some("(".to_owned()), ..of("w") }, "pattern"),
        (LogQuery { pod: Some("nobody".to_owned()), ..of("w") }, "pod"),
        (of("nothing"), "run"),
        (LogQuery { run: None, ..of("w") }, "nothing named"),
    ];
    for (query, what) in wrong {
        assert!(matches!(registry.logs(query), Err(Fault::BadRequest(_) | Fault::NotFound { .. })), "{what}");
    }
}

#[test]
fn following_waits_for_the_run_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", held("w")).unwrap();
    let mut reader = registry.logs(LogQuery { follow: true, ..of("w") }).unwrap();
    let batch = reader.read(10).unwrap();
    assert!(batch.lines.is_empty() && !batch.finished, "nothing yet, and more to come");
    let before = registry.logs(of("w")).unwrap().read(10).unwrap();
    assert!(before.lines.is_empty() && before.finished, "who does not follow is told what is there");
    let run = registry.find_run(crate::registry::kind("Workflow"), "default", "w").unwrap().run;
    registry.command(run, Command::Resume { selector: None, supplied: Default::default() }).unwrap();
    finished(&registry, "w");
    let pod = attempts(dir.path(), &registry, "w")[0];
    write(dir.path(), pod, &[(1, 1, b"one\ntwo")]);
    let batch = reader.read(10).unwrap();
    assert_eq!((texts(&batch), batch.finished), (vec!["one".to_owned(), "two".to_owned()], true));
    assert!(reader.read(10).unwrap().finished);
}

#[test]
fn a_long_log_is_read_whole_with_little_memory() {
    const LINE: &[u8] = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    const FRAMES: usize = 512;
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "Workflow", quick("w")).unwrap();
    finished(&registry, "w");
    let pod = attempts(dir.path(), &registry, "w")[0];
    {
        let frame = LINE.repeat(1024);
        let path = Logs::new(dir.path()).path(pod);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = std::io::BufWriter::new(fs::File::create(path).unwrap());
        for at in 0..FRAMES as i64 {
            use std::io::Write;
            file.write_all(&[1]).unwrap();
            file.write_all(&(later().0 + at).to_le_bytes()).unwrap();
            file.write_all(&u32::try_from(frame.len()).unwrap().to_le_bytes()).unwrap();
            file.write_all(&frame).unwrap();
        }
    }
    let name = registry.logs(of("w")).unwrap().read(1).unwrap().lines[0].pod.to_string();
    let before = resident();
    let mut bytes = registry.pod_log_bytes(LogQuery { pod: Some(name), ..of("w") }).unwrap();
    let mut total = 0;
    loop {
        let chunk = bytes.read().unwrap();
        assert!(chunk.bytes.len() <= 2 << 20);
        total += chunk.bytes.len();
        if chunk.finished {
            break;
        }
    }
    assert_eq!(total, FRAMES * 1024 * LINE.len());
    let mut reader = registry.logs(LogQuery { tail: Some(200_000), ..of("w") }).unwrap();
    let mut lines = 0;
    loop {
        let batch = reader.read(10_000).unwrap();
        lines += batch.lines.len();
        if batch.finished {
            break;
        }
    }
    assert_eq!(lines, 200_000);
    let grown = resident().saturating_sub(before);
    assert!(grown <= 16 << 20, "memory grew by {grown} bytes");
}

fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
