//! Base64 and base32, the standard alphabets with padding.
//! Decoding refuses what it does not know; it never guesses.

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(crate) fn base64(bytes: &[u8]) -> String {
    encode(bytes, BASE64, 6, 4)
}

pub(crate) fn base32(bytes: &[u8]) -> String {
    encode(bytes, BASE32, 5, 8)
}

/// The bytes, or the position (0-based) of the first character that does not belong.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, usize> {
    decode(text, BASE64, 6, 4)
}

pub(crate) fn from_base32(text: &str) -> Result<Vec<u8>, usize> {
    decode(text, BASE32, 5, 8)
}

fn encode(bytes: &[u8], alphabet: &[u8], width: u32, group: usize) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + group);
    let mut held: u32 = 0;
    let mut bits = 0;
    for &byte in bytes {
        held = (held << 8) | u32::from(byte);
        bits += 8;
        while bits >= width {
            bits -= width;
            text.push(symbol(alphabet, held >> bits, width));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(symbol(alphabet, held << (width - bits), width));
    }
    while !text.len().is_multiple_of(group) {
        text.push('=');
    }
    text
}

fn symbol(alphabet: &[u8], held: u32, width: u32) -> char {
    char::from(alphabet[(held & ((1 << width) - 1)) as usize])
}

fn decode(text: &str, alphabet: &[u8], width: u32, group: usize) -> Result<Vec<u8>, usize> {
    // Line breaks are allowed anywhere, as encoders wrap long lines.
    let symbols: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r')).collect();
    let body = symbols.iter().rposition(|&(_, byte)| byte != b'=').map_or(0, |at| at + 1);
    let leftover = body % group;
    // A last group must hold whole bytes: the bits beyond them are fewer than one symbol's.
    let stray = leftover as u32 * width % 8 >= width;
    if !symbols.len().is_multiple_of(group) || symbols.len() - body >= group || (leftover > 0 && stray) {
        return Err(text.len());
    }
    let mut bytes = Vec::with_capacity(body);
    let mut held: u32 = 0;
    let mut bits = 0;
    for &(position, byte) in &symbols[..body] {
        let value = alphabet.iter().position(|&known| known == byte).ok_or(position)?;
        held = (held << width) | value as u32;
        bits += width;
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
        for (plain, sixty_four, thirty_two) in [
            ("", "", ""),
            ("f", "Zg==", "MY======"),
            ("fo", "Zm8=", "MZXQ===="),
            ("foo", "Zm9v", "MZXW6==="),
            ("foob", "Zm9vYg==", "MZXW6YQ="),
            ("fooba", "Zm9vYmE=", "MZXW6YTB"),
            ("foobar", "Zm9vYmFy", "MZXW6YTBOI======"),
        ] {
            assert_eq!(base64(plain.as_bytes()), sixty_four);
            assert_eq!(base32(plain.as_bytes()), thirty_two);
            assert_eq!(from_base64(sixty_four).unwrap(), plain.as_bytes());
            assert_eq!(from_base32(thirty_two).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn strangers_are_refused_with_their_place() {
        assert_eq!(from_base64("Zm9*"), Err(3));
        assert_eq!(from_base64("Zm9"), Err(3));
        assert_eq!(from_base64("Z==="), Err(4));
        assert_eq!(from_base64("===="), Err(4));
        assert_eq!(from_base64("Zg=="), Ok(b"f".to_vec()));
        assert_eq!(from_base64("Zm9v\nYmFy"), Ok(b"foobar".to_vec()));
    }
}
