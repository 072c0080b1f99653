//! The one source of random numbers: identities and name suffixes, passed to the engine and recorded.

mod ssh;

use std::{fs::File, io::Read, sync::OnceLock};

use crate::{Error, clock};

pub(crate) use ssh::new_key_pair;

/// Returns a version 7 uid: the time in milliseconds, then 74 random bits. Consecutive uids are adjacent in an index,
/// so a commit of many touches few of its pages.
pub fn new_uid() -> Result<String, Error> {
    let mut bytes = draw::<16>()?;
    let millis = clock::now().0 / 1_000;
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x70;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut uid = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            uid.push('-');
        }
        uid.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789abcdef"[usize::from(half)])));
    }
    Ok(uid)
}

/// Returns five characters for the end of a generated name; no vowels, so that no words come out.
pub fn name_suffix() -> Result<String, Error> {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = draw::<5>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

fn draw<const N: usize>() -> Result<[u8; N], Error> {
    // Kept open: opening takes longer than reading, and every run needs two numbers.
    static SOURCE: OnceLock<File> = OnceLock::new();
    let mut source = match SOURCE.get() {
        Some(source) => source,
        None => {
            let opened = File::open("/dev/urandom").map_err(Error::Chance)?;
            SOURCE.get_or_init(|| opened)
        }
    };
    let mut bytes = [0; N];
    source.read_exact(&mut bytes).map_err(Error::Chance)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_have_the_usual_form_and_differ() {
        let (one, other) = (new_uid().unwrap(), new_uid().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "7");
        assert!(one.char_indices().all(|(at, c)| (c == '-') == matches!(at, 8 | 13 | 18 | 23)), "{one}");
        assert_eq!(name_suffix().unwrap().len(), 5);
    }
}
