//! The guarantees of the ledger, also on a medium that fails at any call and tears its writes.

use std::{cell::RefCell, rc::Rc};

use octoflow_model::ids::{NodeIx, RunId};

use super::*;

fn attempt(task: u32) -> AttemptId {
    AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
}

fn boot(digit: char) -> String {
    digit.to_string().repeat(BOOT_BYTES)
}

/// A file in memory that survives its ledger. The n-th call fails after writing a part of its data.
#[derive(Clone, Default)]
struct Faulty {
    file: Rc<RefCell<Option<Vec<u8>>>>,
    calls: Rc<RefCell<usize>>,
    fails: Option<(usize, i32)>,
    /// Bytes of the failing write that are written.
    torn: usize,
}

impl Faulty {
    fn call(&self) -> io::Result<()> {
        *self.calls.borrow_mut() += 1;
        match self.fails {
            Some((nth, code)) if nth == *self.calls.borrow() => Err(io::Error::from_raw_os_error(code)),
            _ => Ok(()),
        }
    }
}

impl Medium for Faulty {
    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.call()?;
        Ok(self.file.borrow().clone())
    }

    fn replace(&mut self, bytes: &[u8], _: bool) -> io::Result<()> {
        self.call()?;
        *self.file.borrow_mut() = Some(bytes.to_vec());
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.call();
        let written = if outcome.is_ok() { bytes } else { &bytes[..self.torn.min(bytes.len())] };
        let mut file = self.file.borrow_mut();
        let file = file.as_mut().expect("a ledger is replaced before it is added to");
        let offset = usize::try_from(offset).unwrap();
        file.resize(file.len().max(offset + written.len()), 0);
        file[offset..offset + written.len()].copy_from_slice(written);
        outcome
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.call()?;
        self.file.borrow_mut().as_mut().unwrap().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

/// Simulates two spawners in a row that record attempts in batches, with a rewrite in between. Returns the attempts
/// that were acknowledged as written.
fn play(medium: &Faulty) -> HashSet<AttemptId> {
    let mut noted = HashSet::new();
    for (name, first) in [("one", 1), ("two", 10)] {
        let Ok((mut ledger, history)) = Ledger::over(medium.clone(), name, boot('1')) else { continue };
        assert!(history.complete, "nothing here is a reboot or damage");
        assert!(noted.is_subset(&history.started), "{noted:?} but {history:?}");
        for batch in [vec![attempt(first)], vec![attempt(first + 1), attempt(first + 2)], vec![attempt(first + 3)]] {
            if ledger.record(&batch).is_ok() {
                noted.extend(batch);
            }
        }
        // A failure keeps the old records.
        let _ = ledger.rewrite(&noted);
        let last = attempt(first + 4);
        if ledger.record(&[last]).is_ok() {
            noted.insert(last);
        }
    }
    noted
}

#[test]
fn whatever_call_fails_what_was_noted_is_found_and_the_next_lines_are_whole() {
    let sound = Faulty::default();
    let all = play(&sound);
    assert_eq!(all.len(), 10);
    let calls = *sound.calls.borrow();
    for code in [libc::EIO, libc::ENOSPC, libc::EINTR] {
        for nth in 1..=calls + 1 {
            for torn in [0, 1, RECORD - 1, RECORD, RECORD + 5] {
                let medium = Faulty { fails: Some((nth, code)), torn, ..Faulty::default() };
                let noted = play(&medium);
                // The medium works again.
                let sound = Faulty { fails: None, ..medium };
                let (_, history) = Ledger::over(sound, "three", boot('1')).unwrap();
                assert!(noted.is_subset(&history.started), "call {nth} failed: {noted:?} but {history:?}");
                let never = history.started.iter().filter(|attempt| !all.contains(attempt)).count();
                assert_eq!(never, 0, "call {nth} failed: a line nobody wrote");
                assert!(history.complete, "call {nth} failed");
            }
        }
    }
}

#[test]
fn a_ledger_torn_at_any_byte_knows_every_whole_line() {
    let medium = Faulty::default();
    let (mut ledger, _) = Ledger::over(medium.clone(), "one", boot('1')).unwrap();
    for task in 0..5 {
        ledger.record(&[attempt(task)]).unwrap();
    }
    let whole = medium.file.borrow().clone().unwrap();
    for cut in 0..whole.len() {
        let torn = Faulty { file: Rc::new(RefCell::new(Some(whole[..cut].to_vec()))), ..Faulty::default() };
        let (mut ledger, history) = Ledger::over(torn.clone(), "two", boot('1')).unwrap();
        let lines = cut.saturating_sub(HEADER) / RECORD;
        let expected: HashSet<AttemptId> = (0..u32::try_from(lines).unwrap()).map(attempt).collect();
        assert_eq!((history.started, history.complete), (expected, cut >= HEADER), "cut at {cut}");
        // The torn record is overwritten: the next one is whole.
        ledger.record(&[attempt(99)]).unwrap();
        let (_, history) = Ledger::over(torn, "three", boot('1')).unwrap();
        assert!(history.started.contains(&attempt(99)) && history.started.len() == lines + 1, "cut at {cut}");
    }
}

#[test]
fn a_full_disk_at_the_start_keeps_the_old_ledger_true_and_is_tried_again() {
    let medium = Faulty::default();
    let (mut ledger, _) = Ledger::over(medium.clone(), "one", boot('1')).unwrap();
    ledger.record(&[attempt(1)]).unwrap();
    // The first write, which is the second call, fails.
    let full = Faulty { fails: Some((2, libc::ENOSPC)), calls: Rc::default(), ..medium.clone() };
    let (mut ledger, history) = Ledger::over(full, "two", boot('1')).unwrap();
    assert_eq!(history.started, HashSet::from([attempt(1)]));
    let (_, history) = Ledger::over(medium.clone(), "peek", boot('1')).unwrap();
    assert_eq!(history.instance.as_deref(), Some("one"), "the old one was not touched");
    ledger.record(&[attempt(2)]).unwrap();
    let (_, history) = Ledger::over(medium, "three", boot('1')).unwrap();
    assert_eq!(history.started, HashSet::from([attempt(1), attempt(2)]));
    assert_eq!(history.instance.as_deref(), Some("two"));
}

#[test]
fn a_rewrite_that_fails_is_not_tried_at_every_turn() {
    let medium = Faulty { fails: Some((3, libc::ENOSPC)), ..Faulty::default() };
    let (mut ledger, _) = Ledger::over(medium.clone(), "one", boot('1')).unwrap();
    ledger.lines = SLACK + 1;
    *medium.calls.borrow_mut() = 2;
    assert!(ledger.compact(0, HashSet::new).is_err());
    assert!(ledger.compact(0, || panic!("too early")).is_ok());
    ledger.lines += REWRITE_BACKOFF + 1;
    ledger.compact(0, HashSet::new).unwrap();
    assert_eq!(ledger.lines, 0);
}

#[test]
fn a_missing_ledger_means_that_nothing_ever_started_and_a_damaged_one_means_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_, history) = Ledger::open(dir.path(), "a").unwrap();
    assert!(history.complete && history.started.is_empty());
    fs::write(dir.path().join("ledger"), "").unwrap();
    let (_, history) = Ledger::open(dir.path(), "a").unwrap();
    assert_eq!(history, LedgerHistory::default());
}

#[test]
fn the_next_spawner_knows_what_may_have_started() {
    let dir = tempfile::tempdir().unwrap();
    let (mut ledger, _) = Ledger::open(dir.path(), "first").unwrap();
    ledger.record(&[attempt(1), attempt(2)]).unwrap();
    ledger.record(&[attempt(3)]).unwrap();
    let (mut ledger, history) = Ledger::open(dir.path(), "second").unwrap();
    assert_eq!(history.started, HashSet::from([attempt(1), attempt(2), attempt(3)]));
    assert!(history.complete);
    assert_eq!(history.instance.as_deref(), Some("first"));
    ledger.rewrite(&HashSet::from([attempt(2)])).unwrap();
    ledger.record(&[attempt(4)]).unwrap();
    let (_, history) = Ledger::open(dir.path(), "third").unwrap();
    assert_eq!(history.started, HashSet::from([attempt(2), attempt(4)]));
}

#[test]
fn after_a_reboot_absence_proves_nothing_until_everything_is_accounted_for() {
    let medium = Faulty::default();
    let (mut ledger, _) = Ledger::over(medium.clone(), "a", boot('1')).unwrap();
    ledger.record(&[attempt(1)]).unwrap();
    let (_, history) = Ledger::over(medium.clone(), "b", boot('2')).unwrap();
    assert!(history.started.contains(&attempt(1)) && !history.complete);
    // The first spawner of the new boot died before an engine connected.
    let (mut ledger, history) = Ledger::over(medium.clone(), "c", boot('2')).unwrap();
    assert!(!history.complete);
    ledger.accounted();
    let (_, history) = Ledger::over(medium, "d", boot('2')).unwrap();
    assert!(history.complete);
}
