//! Uncollected results: when the engine is gone and the last task has ended, the spawner writes them to a file and
//! exits. The next spawner reads them and reports them as if it had run the tasks itself.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use octoflow_model::ids::AttemptId;

use crate::process::wire::{Bind, Ending, Malformed, MemberEnding, Wire, frame, next_frame};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    pub(crate) attempt: AttemptId,
    pub(crate) ending: Ending,
    /// True if outputs are still to be collected.
    pub(crate) keep: bool,
    pub(crate) isolated: bool,
    /// Directory of the workspace with the outputs.
    pub(crate) workspace: Option<String>,
    pub(crate) mounts: Vec<Bind>,
    /// Ends of its containers, if it had several.
    pub(crate) members: Vec<MemberEnding>,
    /// Its termination message.
    pub(crate) message: Option<String>,
}

impl Wire for Leftover {
    fn put(&self, out: &mut Vec<u8>) {
        self.attempt.put(out);
        let Ending { at, started, exit, log_truncated, log_bytes } = &self.ending;
        at.put(out);
        started.put(out);
        exit.put(out);
        log_truncated.put(out);
        self.keep.put(out);
        self.isolated.put(out);
        self.workspace.put(out);
        self.mounts.put(out);
        self.members.put(out);
        self.message.put(out);
        log_bytes.put(out);
    }

    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        let attempt = Wire::get(from)?;
        let (at, started, exit, log_truncated) =
            (Wire::get(from)?, Wire::get(from)?, Wire::get(from)?, Wire::get(from)?);
        let mut leftover = Self {
            attempt,
            ending: Ending { at, started, exit, log_truncated, log_bytes: 0 },
            keep: Wire::get(from)?,
            isolated: Wire::get(from)?,
            workspace: Wire::get(from)?,
            mounts: Wire::get(from)?,
            // Older spawners wrote none.
            members: if from.is_empty() { Vec::new() } else { Wire::get(from)? },
            message: if from.is_empty() { None } else { Wire::get(from)? },
        };
        leftover.ending.log_bytes = if from.is_empty() { 0 } else { Wire::get(from)? };
        Ok(leftover)
    }
}

fn name(dir: &Path) -> std::path::PathBuf {
    dir.join("results")
}

/// Writes the results atomically and synced: they are stored nowhere else.
pub(crate) fn write(dir: &Path, leftovers: &[Leftover]) -> io::Result<()> {
    if leftovers.is_empty() {
        return forget(dir);
    }
    let mut bytes = Vec::new();
    leftovers.iter().for_each(|leftover| frame(leftover, &mut bytes));
    let fresh = dir.join("results.new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&fresh)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&fresh, name(dir))
    };
    write().inspect_err(|_| drop(fs::remove_file(&fresh)))
}

pub(crate) fn read(dir: &Path) -> io::Result<Vec<Leftover>> {
    let bytes = match fs::read(name(dir)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut rest = &bytes[..];
    // Everything after damage is lost, and reported as lost: the ledger knows that those attempts were started.
    Ok(std::iter::from_fn(|| next_frame(&mut rest).ok().flatten()).collect())
}

pub(crate) fn forget(dir: &Path) -> io::Result<()> {
    match fs::remove_file(name(dir)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::{
        ids::{NodeIx, RunId},
        time::Time,
    };

    use super::*;
    use crate::process::wire::Ended;

    #[test]
    fn results_survive_their_spawner() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
        let leftover = Leftover {
            attempt: AttemptId { run: RunId(1), task: NodeIx(2), attempt: 3 },
            ending: Ending {
                at: Time(1),
                started: Some(Time(0)),
                exit: Ended::Code(3),
                log_truncated: false,
                log_bytes: 0,
            },
            keep: true,
            isolated: true,
            workspace: Some("/somewhere".to_owned()),
            mounts: Vec::new(),
            members: vec![MemberEnding { started: Some(Time(0)), ended: None, exit: Some(Ended::Code(1)) }],
            message: Some("last words".to_owned()),
        };
        let both = [leftover.clone(), leftover];
        write(dir.path(), &both).unwrap();
        assert_eq!(read(dir.path()).unwrap(), both);
        let bytes = fs::read(name(dir.path())).unwrap();
        for cut in 0..bytes.len() {
            fs::write(name(dir.path()), &bytes[..cut]).unwrap();
            assert_eq!(read(dir.path()).unwrap(), both[..cut / (bytes.len() / 2)], "cut at {cut}");
        }
        write(dir.path(), &[]).unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
    }

    #[test]
    fn results_of_a_spawner_that_knew_no_containers_and_no_words_are_still_read() {
        let leftover = Leftover {
            attempt: AttemptId { run: RunId(1), task: NodeIx(2), attempt: 3 },
            ending: Ending { at: Time(1), started: None, exit: Ended::Code(3), log_truncated: false, log_bytes: 0 },
            keep: false,
            isolated: false,
            workspace: None,
            mounts: Vec::new(),
            members: Vec::new(),
            message: None,
        };
        let mut bytes = Vec::new();
        leftover.put(&mut bytes);
        for missing in [8, 9, 13] {
            let old = &bytes[..bytes.len() - missing];
            assert_eq!(Leftover::get(&mut &old[..]).unwrap(), leftover);
        }
    }
}
