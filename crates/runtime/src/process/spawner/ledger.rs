//! The ledger remembers which attempts may have started. A line is written before the start and without a sync, which
//! is enough: the page cache survives every death of ours, and a death of the machine shows in its boot id. Only the
//! very first ledger is synced, so that its absence proves that nothing ever started here.
//! A write that fails changes nothing: the ledger is as it was before, and the caller tries again. It never ends the
//! spawner.

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

/// The file is rewritten when it holds this many lines more than there are attempts to remember (1 MiB).
const SLACK: usize = 65_536;
/// After a rewrite that failed, so many more lines are written before the next.
const PATIENCE: usize = SLACK / 8;

pub(crate) struct Ledger<M = OnDisk> {
    medium: M,
    /// Whole lines in the file; whatever is behind them is torn and overwritten by the next.
    lines: usize,
    boot: String,
    instance: String,
    /// The header may say that it is of this boot: everything that is not in it never started.
    complete: bool,
    /// What the file must hold before anything is added: it is not ours yet.
    unwritten: Option<HashSet<AttemptId>>,
    /// There has been no ledger here before.
    first: bool,
    /// No rewrite before there are more lines than this.
    compact_above: usize,
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
        Self::over(OnDisk::new(dir), instance, boot)
    }
}

impl<M: Medium> Ledger<M> {
    /// Fails only when what is there cannot be read. A file that cannot be written is still true: nothing is started
    /// before it can.
    fn over(mut medium: M, instance: &str, boot: String) -> io::Result<(Self, Past)> {
        let (past, first) = match medium.read()? {
            Some(bytes) => (read(&bytes, &boot), false),
            None => (Past { complete: true, ..Past::default() }, true),
        };
        let mut ledger = Self {
            medium,
            lines: 0,
            boot,
            instance: instance.to_owned(),
            complete: past.complete,
            unwritten: Some(past.started.clone()),
            first,
            compact_above: 0,
        };
        // Tried again before the first line.
        let _ = ledger.settle();
        Ok((ledger, past))
    }

    /// Remembers attempts that are about to start. After an error none of them is.
    pub(crate) fn note(&mut self, attempts: &[AttemptId]) -> io::Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        self.settle()?;
        let mut bytes = Vec::with_capacity(attempts.len() * RECORD);
        attempts.iter().for_each(|attempt| attempt.put(&mut bytes));
        let end = (HEADER + self.lines * RECORD) as u64;
        if let Err(error) = self.medium.write_at(&bytes, end) {
            // What was half written is cut back. If that fails too, the next line is written over it.
            let _ = self.medium.truncate(end);
            return Err(error);
        }
        self.lines += attempts.len();
        Ok(())
    }

    /// Every attempt of before was accounted for; from now on the absence of a line proves something again.
    pub(crate) fn accounted(&mut self) {
        if std::mem::replace(&mut self.complete, true) || self.unwritten.is_some() {
            return;
        }
        let header = self.header();
        // Without it the next spawner only knows less than it could.
        let _ = self.medium.write_at(&header, 0);
    }

    /// Drops lines about attempts nobody will ask for, once there are many. After an error the old lines stay.
    pub(crate) fn compact(&mut self, remembered: usize, keep: impl FnOnce() -> HashSet<AttemptId>) -> io::Result<()> {
        if self.lines <= (remembered + SLACK).max(self.compact_above) {
            return Ok(());
        }
        let rewritten = self.rewrite(&keep());
        self.compact_above = if rewritten.is_ok() { 0 } else { self.lines + PATIENCE };
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

    /// Makes the file ours.
    fn settle(&mut self) -> io::Result<()> {
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

#[cfg(test)]
mod tests;
