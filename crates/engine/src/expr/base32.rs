//! Base32 in the standard alphabet, with padding. Decoding refuses unknown characters; it never guesses.

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Bits per symbol, and symbols per group.
const WIDTH: u32 = 5;
const GROUP: usize = 8;

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + GROUP);
    let mut held: u32 = 0;
    let mut bits = 0;
    for &byte in bytes {
        held = (held << 8) | u32::from(byte);
        bits += 8;
        while bits >= WIDTH {
            bits -= WIDTH;
            text.push(symbol(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(symbol(held << (WIDTH - bits)));
    }
    while !text.len().is_multiple_of(GROUP) {
        text.push('=');
    }
    text
}

fn symbol(held: u32) -> char {
    char::from(ALPHABET[(held & ((1 << WIDTH) - 1)) as usize])
}

/// Decodes the bytes; on error returns the 0-based position of the first invalid character.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    // Line breaks are allowed anywhere, as encoders wrap long lines.
    let symbols: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r')).collect();
    let body = symbols.iter().rposition(|&(_, byte)| byte != b'=').map_or(0, |at| at + 1);
    let leftover = body % GROUP;
    // A last group must hold whole bytes: the bits beyond them are fewer than one symbol's.
    let stray = leftover as u32 * WIDTH % 8 >= WIDTH;
    if !symbols.len().is_multiple_of(GROUP) || symbols.len() - body >= GROUP || (leftover > 0 && stray) {
        return Err(text.len());
    }
    let mut bytes = Vec::with_capacity(body);
    let mut held: u32 = 0;
    let mut bits = 0;
    for &(position, byte) in &symbols[..body] {
        let value = ALPHABET.iter().position(|&known| known == byte).ok_or(position)?;
        held = (held << WIDTH) | value as u32;
        bits += WIDTH;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_are_encoded_and_decoded() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "MY======"),
            ("fo", "MZXQ===="),
            ("foo", "MZXW6==="),
            ("foob", "MZXW6YQ="),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI======"),
        ] {
            assert_eq!(encode(plain.as_bytes()), encoded);
            assert_eq!(decode(encoded).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn strangers_are_refused_with_their_place() {
        assert_eq!(decode("MZXW6Y*="), Err(6));
        assert_eq!(decode("MZX"), Err(3));
        assert_eq!(decode("M======="), Err(8));
        assert_eq!(decode("MZXW6\nYTB"), Ok(b"fooba".to_vec()));
    }
}
