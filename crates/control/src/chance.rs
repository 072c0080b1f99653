//! The one place where numbers are drawn: identities and name suffixes, handed to the engine and recorded.

use std::{fs::File, io::Read};

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
    let mut bytes = [0; N];
    let drawn = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    drawn.map_err(Error::Chance)?;
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
