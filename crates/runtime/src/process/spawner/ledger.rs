//! The ledger records which attempts may have started. A record is written before the start and without a sync, which
//! is enough: the page cache survives a crash of the process, and a crash of the machine shows in its boot id. Only the
//! very first ledger is synced, so that its absence proves that nothing ever started here. A failed write changes
//! nothing: the ledger stays as before, and the caller retries. It never ends the spawner.

mod medium;

use std::{collections::HashSet, fs, io, path::Path};

use octoflow_model::ids::AttemptId;

use self::medium::{Medium, OnDisk};
use crate::process::wire::Wire;

const MAGIC: &[u8; 8] = b"octoled1";
const BOOT_BYTES: usize = 36;
const INSTANCE_BYTES: usize = 12;
const HEADER: usize = MAGIC.len() + BOOT_BYTES + INSTANCE_BYTES;
const RECORD: usize = 16;

/// Records beyond the known attempts at which the file is rewritten (1 MiB).
const SLACK: usize = 65_536;
/// Records written after a failed rewrite before the next one.
const REWRITE_BACKOFF: usize = SLACK / 8;

pub(crate) struct Ledger<M = OnDisk> {
    medium: M,
    /// Complete records in the file; whatever follows is torn and overwritten by the next.
    lines: usize,
    boot: String,
    instance: String,
    /// True if the header may state the current boot id: then everything without a record never started.
    complete: bool,
    /// Attempts that must be written before anything is added: the file is not ours yet.
    unwritten: Option<HashSet<AttemptId>>,
    /// True if there was no ledger before.
    first: bool,
    /// Records below which no rewrite is attempted.
    compact_above: usize,
}

/// Content of the ledger of earlier spawners.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LedgerHistory {
    /// Attempts that may have started.
    pub(crate) started: HashSet<AttemptId>,
    /// True if everything else certainly did not start. False if the machine crashed meanwhile or the ledger is
    /// damaged.
    pub(crate) complete: bool,
    /// Id of the spawner that wrote last.
    pub(crate) instance: Option<String>,
}

impl Ledger {
    /// Reads the records of earlier spawners and takes the ledger over.
    pub(crate) fn open(dir: &Path, instance: &str) -> io::Result<(Self, LedgerHistory)> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Self::over(OnDisk::new(dir), instance, boot)
    }
}

impl<M: Medium> Ledger<M> {
    /// Fails only if the existing file cannot be read. A file that cannot be written is still correct: nothing is
    /// started before it can be.
    fn over(mut medium: M, instance: &str, boot: String) -> io::Result<(Self, LedgerHistory)> {
        let (history, first) = match medium.read()? {
            Some(bytes) => (read(&bytes, &boot), false),
            None => (LedgerHistory { complete: true, ..LedgerHistory::default() }, true),
        };
        let mut ledger = Self {
            medium,
            lines: 0,
            boot,
            instance: instance.to_owned(),
            complete: history.complete,
            unwritten: Some(history.started.clone()),
            first,
            compact_above: 0,
        };
        // Retried before the first record.
        let _ = ledger.take_over();
        Ok((ledger, history))
    }

    /// Records attempts that are about to start. After an error none of them is recorded.
    pub(crate) fn record(&mut self, attempts: &[AttemptId]) -> io::Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        self.take_over()?;
        let mut bytes = Vec::with_capacity(attempts.len() * RECORD);
        attempts.iter().for_each(|attempt| attempt.put(&mut bytes));
        let end = (HEADER + self.lines * RECORD) as u64;
        if let Err(error) = self.medium.write_at(&bytes, end) {
            // A partial write is truncated. If that fails too, the next record overwrites it.
            let _ = self.medium.truncate(end);
            return Err(error);
        }
        self.lines += attempts.len();
        Ok(())
    }

    /// Marks all earlier attempts as accounted for; from now on the absence of a record is a proof again.
    pub(crate) fn accounted(&mut self) {
        if std::mem::replace(&mut self.complete, true) || self.unwritten.is_some() {
            return;
        }
        let header = self.header();
        // If this fails, the next spawner only knows less than it could.
        let _ = self.medium.write_at(&header, 0);
    }

    /// Drops records of attempts that are no longer needed, once there are many. After an error the old records stay.
    pub(crate) fn compact(&mut self, remembered: usize, keep: impl FnOnce() -> HashSet<AttemptId>) -> io::Result<()> {
        if self.lines <= (remembered + SLACK).max(self.compact_above) {
            return Ok(());
        }
        let rewritten = self.rewrite(&keep());
        self.compact_above = if rewritten.is_ok() { 0 } else { self.lines + REWRITE_BACKOFF };
        rewritten
    }

    pub(crate) fn rewrite(&mut self, keep: &HashSet<AttemptId>) -> io::Result<()> {
        let mut bytes = self.header();
        bytes.reserve(keep.len() * RECORD);
        keep.iter().for_each(|attempt| attempt.put(&mut bytes));
        self.medium.replace(&bytes, self.first)?;
        (self.lines, self.first, self.unwritten) = (keep.len(), false, None);
        Ok(())
    }

    /// Writes the records of earlier spawners as our own.
    fn take_over(&mut self) -> io::Result<()> {
        let Some(started) = self.unwritten.take() else { return Ok(()) };
        self.rewrite(&started).inspect_err(|_| self.unwritten = Some(started))
    }

    fn header(&self) -> Vec<u8> {
        let boot = if self.complete { self.boot.as_str() } else { "" };
        let instance = &self.instance;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(format!("{boot:<BOOT_BYTES$.BOOT_BYTES$}").as_bytes());
        bytes.extend_from_slice(format!("{instance:<INSTANCE_BYTES$.INSTANCE_BYTES$}").as_bytes());
        bytes
    }
}

fn read(bytes: &[u8], boot: &str) -> LedgerHistory {
    let Some((header, mut lines)) = bytes.split_at_checked(HEADER) else { return LedgerHistory::default() };
    if !header.starts_with(MAGIC) {
        return LedgerHistory::default();
    }
    let header = &header[MAGIC.len()..];
    let instance = String::from_utf8_lossy(&header[BOOT_BYTES..]).trim_end().to_owned();
    // A torn last record belongs to an attempt that was not started yet, since the write comes first.
    let started = std::iter::from_fn(|| AttemptId::get(&mut lines).ok()).collect();
    LedgerHistory { started, complete: &header[..BOOT_BYTES] == boot.as_bytes(), instance: Some(instance) }
}

#[cfg(test)]
mod tests;
