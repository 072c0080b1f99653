//! The one place where numbers are drawn: identities and name suffixes, handed to the engine and recorded.

use std::{fs::File, io::Read, sync::OnceLock};

use crate::Error;

/// A random uid in the usual written form.
pub fn new_uid() -> Result<String, Error> {
    let mut bytes = draw::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Five characters for the end of a generated name; no vowels, so that no words come out.
pub fn name_suffix() -> Result<String, Error> {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let bytes = draw::<5>()?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

fn draw<const N: usize>() -> Result<[u8; N], Error> {
    // Kept open: opening it takes longer than reading from it, and every run draws twice.
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
        assert_eq!(&one[14..15], "4");
        assert_eq!(name_suffix().unwrap().len(), 5);
    }
}
