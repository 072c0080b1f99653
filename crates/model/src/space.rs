//! Disk space thresholds: how much of the data directory's file system is kept free, and for what. One module, because
//! the thresholds depend on each other: what users write stops first, then new work, then the journal. It measures
//! nothing.
//!
//! Each threshold is a share of the file system with an upper bound: a fixed amount alone would make a small file system
//! unusable, a share alone would waste much of a large one.

/// Below this many free bytes logs, artifacts and tasks may not write to the data directory: they must not take what the
/// journal needs.
pub const fn task_floor(total: u64) -> u64 {
    share(total, 25, 256 << 20)
}

/// Below this many free bytes nothing new is accepted; what runs goes on.
pub const fn submission_floor(total: u64) -> u64 {
    share(total, 50, 128 << 20)
}

/// The size of the file that is deleted when the disk is full, so that what runs can still be recorded: some thousand
/// commits.
pub const fn journal_reserve(total: u64) -> u64 {
    share(total, 100, 8 << 20)
}

/// Space that must be writable before a journal that could not be written is opened again: its log grows by whole
/// transactions, and one that fails at once would be read back in vain.
pub const JOURNAL_HEADROOM: u64 = 256 << 10;

const fn share(total: u64, part: u64, most: u64) -> u64 {
    let share = total / part;
    if share < most { share } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_stops_before_new_work_and_that_before_the_journal() {
        for total in [16 << 20, 64 << 20, 1 << 30, 1 << 40] {
            assert!(task_floor(total) > submission_floor(total), "{total}");
            assert!(submission_floor(total) > journal_reserve(total), "{total}");
            assert!(task_floor(total) <= total / 25, "{total}");
        }
        assert_eq!(task_floor(1 << 40), 256 << 20);
    }
}
