//! The ledger remembers which attempts may have started. A line is written before the start and without a sync, which
//! is enough: the page cache survives every death of ours, and a death of the machine shows in its boot id. Only the
//! very first ledger is synced, so that its absence proves that nothing ever started here.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use octoflow_model::ids::AttemptId;

use crate::process::wire::Wire;

const MAGIC: &[u8; 8] = b"octoled1";
const BOOT_BYTES: usize = 36;
const INSTANCE_BYTES: usize = 12;
const HEADER: usize = MAGIC.len() + BOOT_BYTES + INSTANCE_BYTES;
const RECORD: usize = 16;

/// The file is rewritten when it holds this many lines more than there are attempts to remember (1 MiB).
const SLACK: usize = 65_536;

pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    lines: usize,
    boot: String,
    instance: String,
}

/// What the ledger of earlier spawners says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Past {
    /// These may have started.
    pub(crate) started: HashSet<AttemptId>,
    /// Everything else certainly did not. False when the machine went down meanwhile or the ledger is damaged.
    pub(crate) complete: bool,
    /// The spawner that wrote last.
    pub(crate) instance: Option<String>,
}

impl Ledger {
    /// Reads what earlier spawners wrote and takes the ledger over.
    pub(crate) fn open(dir: &Path, instance: &str) -> io::Result<(Self, Past)> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Self::open_at_boot(dir, instance, boot)
    }

    fn open_at_boot(dir: &Path, instance: &str, boot: String) -> io::Result<(Self, Past)> {
        let path = dir.join("ledger");
        let (past, first) = match fs::read(&path) {
            Ok(bytes) => (read(&bytes, &boot), false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Past { complete: true, ..Past::default() }, true),
            Err(error) => return Err(error),
        };
        let (file, lines) = write_whole(&path, &boot, instance, &past.started)?;
        if first {
            file.sync_all()?;
            File::open(dir)?.sync_all()?;
        }
        Ok((Self { path, file, lines, boot, instance: instance.to_owned() }, past))
    }

    /// Remembers attempts that are about to start.
    pub(crate) fn note(&mut self, attempts: &[AttemptId]) -> io::Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(attempts.len() * RECORD);
        attempts.iter().for_each(|attempt| attempt.put(&mut bytes));
        self.lines += attempts.len();
        self.file.write_all(&bytes)
    }

    /// Drops lines about attempts nobody will ask for, once there are many.
    pub(crate) fn compact(&mut self, remembered: usize, keep: impl FnOnce() -> HashSet<AttemptId>) -> io::Result<()> {
        if self.lines > remembered + SLACK { self.rewrite(&keep()) } else { Ok(()) }
    }

    pub(crate) fn rewrite(&mut self, keep: &HashSet<AttemptId>) -> io::Result<()> {
        (self.file, self.lines) = write_whole(&self.path, &self.boot, &self.instance, keep)?;
        Ok(())
    }
}

fn read(bytes: &[u8], boot: &str) -> Past {
    let Some((header, mut lines)) = bytes.split_at_checked(HEADER) else { return Past::default() };
    if !header.starts_with(MAGIC) {
        return Past::default();
    }
    let header = &header[MAGIC.len()..];
    let instance = String::from_utf8_lossy(&header[BOOT_BYTES..]).trim_end().to_owned();
    // A torn last line belongs to an attempt that was not started yet, since the write comes first.
    let started = std::iter::from_fn(|| AttemptId::get(&mut lines).ok()).collect();
    Past { started, complete: &header[..BOOT_BYTES] == boot.as_bytes(), instance: Some(instance) }
}

fn write_whole(path: &Path, boot: &str, instance: &str, attempts: &HashSet<AttemptId>) -> io::Result<(File, usize)> {
    let mut bytes = Vec::with_capacity(HEADER + attempts.len() * RECORD);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(format!("{boot:<BOOT_BYTES$.BOOT_BYTES$}").as_bytes());
    bytes.extend_from_slice(format!("{instance:<INSTANCE_BYTES$.INSTANCE_BYTES$}").as_bytes());
    attempts.iter().for_each(|attempt| attempt.put(&mut bytes));
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    file.write_all(&bytes)?;
    fs::rename(&fresh, path)?;
    Ok((file, attempts.len()))
}

#[cfg(test)]
mod tests {
    use octoflow_model::ids::{NodeIx, RunId};

    use super::*;

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    #[test]
    fn a_missing_ledger_means_that_nothing_ever_started_and_a_damaged_one_means_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (_, past) = Ledger::open(dir.path(), "a").unwrap();
        assert!(past.complete && past.started.is_empty());
        fs::write(dir.path().join("ledger"), "").unwrap();
        let (_, past) = Ledger::open(dir.path(), "a").unwrap();
        assert_eq!(past, Past::default());
    }

    #[test]
    fn the_next_spawner_knows_what_may_have_started() {
        let dir = tempfile::tempdir().unwrap();
        let (mut ledger, _) = Ledger::open(dir.path(), "first").unwrap();
        ledger.note(&[attempt(1), attempt(2)]).unwrap();
        ledger.note(&[attempt(3)]).unwrap();
        ledger.file.write_all(&[9; 5]).unwrap();
        let (mut ledger, past) = Ledger::open(dir.path(), "second").unwrap();
        assert_eq!(past.started, HashSet::from([attempt(1), attempt(2), attempt(3)]));
        assert!(past.complete);
        assert_eq!(past.instance.as_deref(), Some("first"));
        ledger.rewrite(&HashSet::from([attempt(2)])).unwrap();
        ledger.note(&[attempt(4)]).unwrap();
        let (_, past) = Ledger::open(dir.path(), "third").unwrap();
        assert_eq!(past.started, HashSet::from([attempt(2), attempt(4)]));
    }

    #[test]
    fn after_a_reboot_absence_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let boot = |digit: char| digit.to_string().repeat(BOOT_BYTES);
        let (mut ledger, _) = Ledger::open_at_boot(dir.path(), "a", boot('1')).unwrap();
        ledger.note(&[attempt(1)]).unwrap();
        let (_, past) = Ledger::open_at_boot(dir.path(), "b", boot('2')).unwrap();
        assert!(past.started.contains(&attempt(1)) && !past.complete);
    }
}
