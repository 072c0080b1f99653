//! Termination messages: what a task wrote into its own file for that, else the end of its output if it failed. Only
//! reads and truncates; the spawner knows whose output it is and how it ended.

use std::{collections::VecDeque, io::Read, path::Path};

use super::view::View;

/// Limit of the file, as in Kubernetes.
const FILE_BYTES: u64 = 4096;

/// Limits of the output that is used, as in Kubernetes.
const TAIL_BYTES: usize = 2048;
const TAIL_LINES: usize = 80;

/// Returns the content of the file; `None` if it is missing, empty or unreadable.
pub(crate) fn read(view: &View, path: &str) -> Option<String> {
    let found = view.find(Path::new(path)).ok().flatten()?;
    if !found.about.is_file() || found.about.len() == 0 {
        return None;
    }
    let mut bytes = Vec::new();
    found.open().ok()?.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a stream. Kept in memory, because a log can only be read from its beginning and may be long.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // One byte more than needed tells whether the first line is complete.
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_BYTES + 1)..];
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(TAIL_BYTES + 1);
        self.bytes.drain(..surplus);
        self.bytes.extend(bytes);
    }

    /// Returns the last lines that fit. A single line that does not fit is cut.
    pub(crate) fn text(mut self) -> Option<String> {
        let bytes = &*self.bytes.make_contiguous();
        let mut kept = bytes;
        if let Some(cut) = bytes.len().checked_sub(TAIL_BYTES).filter(|cut| *cut > 0) {
            kept = &bytes[cut..];
            if bytes[cut - 1] != b'\n' {
                let next = kept.iter().position(|byte| *byte == b'\n').map(|end| &kept[end + 1..]);
                kept = next.filter(|rest| !rest.is_empty()).unwrap_or(kept);
            }
        }
        let ends = kept.iter().enumerate().rev().filter(|(at, byte)| **byte == b'\n' && at + 1 < kept.len());
        if let Some((end, _)) = ends.map(|(at, byte)| (at, *byte)).nth(TAIL_LINES - 1) {
            kept = &kept[end + 1..];
        }
        (!kept.is_empty()).then(|| String::from_utf8_lossy(kept).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn tail(parts: &[&[u8]]) -> Option<String> {
        let mut tail = Tail::default();
        parts.iter().for_each(|part| tail.push(part));
        tail.text()
    }

    #[test]
    fn little_is_kept_whole_and_nothing_is_nothing() {
        assert_eq!(tail(&[]), None);
        assert_eq!(tail(&[b"one\n", b"tw\xff"]).as_deref(), Some("one\ntw\u{fffd}"));
    }

    #[test]
    fn at_most_eighty_lines_are_kept() {
        let lines: Vec<String> = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(tail(&[lines.concat().as_bytes()]), Some(lines[20..].concat()));
        let open_end = lines.concat() + "end";
        assert_eq!(tail(&[open_end.as_bytes()]), Some(lines[21..].concat() + "end"));
    }

    #[test]
    fn at_most_two_kibibytes_are_kept_and_they_begin_with_a_line() {
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let many = line.repeat(50);
        for part in [1, 7, 100, 5000] {
            let parts: Vec<&[u8]> = many.chunks(part).collect();
            assert_eq!(tail(&parts).unwrap().as_bytes(), line.repeat(20), "in parts of {part}");
        }
        let exact = [b"before\n".to_vec(), b"y".repeat(2047), b"\n".to_vec()].concat();
        assert_eq!(tail(&[&exact]).unwrap().as_bytes(), &exact[7..], "a line that just fits is whole");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        assert_eq!(tail(&[&b"z".repeat(3000)]).unwrap().len(), 2048);
        let ended = [b"z".repeat(3000), b"\n".to_vec()].concat();
        assert_eq!(tail(&[&ended]).unwrap().len(), 2048);
    }

    #[test]
    fn the_file_is_cut_and_an_empty_one_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let view = View::new(File::open(dir.path()).unwrap().into());
        assert_eq!(read(&view, "/words"), None);
        fs::write(dir.path().join("words"), "").unwrap();
        assert_eq!(read(&view, "/words"), None);
        fs::write(dir.path().join("words"), b"a".repeat(5000)).unwrap();
        assert_eq!(read(&view, "/words").unwrap().len(), 4096);
        assert_eq!(read(&view, "/"), None, "a directory says nothing");
    }
}
