//! A server broken on purpose: what its faults would leave on disk, done between a kill and the next start. The checks must
//! find each of them, or they prove nothing about a server that is not broken.

use std::{fs, path::Path};

use octoflow_store::{Batch, Change, Error, Reader, RunRow, Store};

/// Simulated fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Answers are given before the sync: a crash takes back what was acknowledged last.
    AnswerBeforeSync,
    /// One commit never reaches the disk, and the others do.
    DroppedCommit,
    /// A decision to start a step is acted on and forgotten, so that it is decided again.
    SecondStart,
}

const DATABASE: &str = "octoflow.db";

/// The database as it is on disk. Nobody has it open.
pub(crate) struct Snapshot(Vec<(String, Vec<u8>)>);

impl Snapshot {
    pub(crate) fn take(data_dir: &Path) -> Self {
        let names = ["", "-wal"].map(|end| format!("{DATABASE}{end}"));
        Self(names.into_iter().filter_map(|name| Some((name.clone(), fs::read(data_dir.join(&name)).ok()?))).collect())
    }

    /// Everything written since is lost, as after a power cut when nobody had asked for a sync.
    pub(crate) fn restore(self, data_dir: &Path) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(data_dir.join(format!("{DATABASE}{end}")));
        }
        for (name, bytes) in self.0 {
            fs::write(data_dir.join(name), bytes).unwrap();
        }
    }
}

/// The run was never written.
pub(crate) fn drop_run(data_dir: &Path, name: &str) {
    let store = Store::open(data_dir).unwrap();
    let row = row(&store.reader().unwrap(), name);
    store.commit_wait(Batch::from(Change::DeleteRun { run: row.run })).unwrap();
    store.close().unwrap();
}

/// The run was written when it was submitted, and nothing that was decided about it afterwards; and nobody who would
/// refuse to start a step again remembers it.
pub(crate) fn forget_decisions(data_dir: &Path, name: &str) {
    let store = Store::open(data_dir).unwrap();
    let reader = store.reader().unwrap();
    let mut row = row(&reader, name);
    let mut first = Vec::new();
    let read = reader.facts(row.run, 0, |rows| -> Result<(), Error> {
        if first.is_empty() {
            first = rows.lines.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
        }
        Ok(())
    });
    read.unwrap();
    assert!(!first.is_empty(), "{name} is open, so it has facts");
    drop(reader);
    store.commit_wait(Batch::from(Change::DeleteRun { run: row.run })).unwrap();
    let run = row.run;
    (row.phase, row.started) = ("Pending".to_owned(), None);
    let anew = [Change::NewRun(Box::new(row)), Change::AppendFacts { run, first: 0, count: 1, lines: first }];
    store.commit_wait(anew.into_iter().collect()).unwrap();
    store.close().unwrap();
    fs::remove_dir_all(data_dir.join("spawner")).unwrap();
}

fn row(reader: &Reader, name: &str) -> RunRow {
    reader.run_by_name("default", Some("Workflow"), name).unwrap().expect("it was acknowledged")
}
