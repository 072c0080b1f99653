//! Reads the progress that a task reports: the last line of a small file, `done/total`. Anything else is ignored, never
//! an error.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use super::view::View;

/// Bytes read from the end of the file; a line of two numbers is far below this.
const TAIL: u64 = 256;

/// Returns the progress in the file.
pub(crate) fn read(view: &View, path: &str) -> Option<(u32, u32)> {
    let found = view.find(Path::new(path)).ok().flatten()?;
    if !found.about.is_file() {
        return None;
    }
    let tail = || -> io::Result<Vec<u8>> {
        let mut file = found.open()?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    parse(&tail().ok()?)
}

fn parse(bytes: &[u8]) -> Option<(u32, u32)> {
    let line = bytes.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let (done, total) = str::from_utf8(line).ok()?.trim().split_once('/')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    let (done, total) = (number(done)?, number(total)?);
    (total > 0 && done <= total).then_some((done, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_and_nonsense_does_not() {
        assert_eq!(parse(b"0/100"), Some((0, 100)));
        assert_eq!(parse(b"0/100\n50/100\n"), Some((50, 100)));
        assert_eq!(parse(b"50/100\n\n"), Some((50, 100)));
        for nonsense in ["", "50", "a/b", "-1/2", "3/2", "0/0", "1/2/3", "+1/2", "99999999999/99999999999"] {
            assert_eq!(parse(nonsense.as_bytes()), None, "{nonsense}");
        }
        assert_eq!(parse(b"\xff/2"), None);
    }
}
