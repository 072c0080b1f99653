//! Limits what an archive may unpack to. Archives of others may be bombs: small files that fill a disk, or never end.

use std::io::{self, Read};

/// Bytes that every archive may unpack to, however small it is.
const BYTES: u64 = 1 << 30;
/// Highest plausible compression ratio: text compresses ten times, logs thirty; a hundred times is not ordinary
/// content.
const RATIO: u64 = 100;
const ENTRIES: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

impl Budget {
    /// Returns the budget for an archive that somebody else packed.
    pub(super) fn untrusted(packed: u64) -> Self {
        Self { bytes: packed.saturating_mul(RATIO).saturating_add(BYTES), entries: ENTRIES }
    }

    /// Returns the budget for an archive that this program packed from existing files.
    pub(super) fn trusted() -> Self {
        Self { bytes: u64::MAX, entries: u64::MAX }
    }

    pub(super) fn count_entry(&mut self) -> Result<(), String> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| format!("it has more than {ENTRIES} entries"))?;
        Ok(())
    }
}

/// A reader that charges the bytes of an archive to a budget.
pub(super) struct BudgetReader<'a, R> {
    inner: R,
    budget: &'a mut Budget,
}

impl<'a, R> BudgetReader<'a, R> {
    pub(super) fn new(inner: R, budget: &'a mut Budget) -> Self {
        Self { inner, budget }
    }
}

impl<R: Read> Read for BudgetReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.budget.bytes = self.budget.bytes.checked_sub(count as u64).ok_or_else(|| {
            io::Error::other(
                "it unpacks to far more than its size explains (an archive bomb?), so unpacking was aborted",
            )
        })?;
        Ok(count)
    }
}
