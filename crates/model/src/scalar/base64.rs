//! Base64 in the standard alphabet: the only place that encodes bytes as text for JSON and headers, and decodes it.

use base64::{
    DecodeError, Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Padding must be whole; stray bits of the last symbol are ignored, as Go and Python do.
const STRICT: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

const UNPADDED: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Encodes bytes, padded.
pub fn encode(bytes: &[u8]) -> String {
    STRICT.encode(bytes)
}

/// Decodes padded text. On error returns the 0-based position of the first invalid character, or the end of the text
/// when it is too short. Line breaks are allowed anywhere, as encoders wrap long lines.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let (places, symbols): (Vec<usize>, Vec<u8>) =
        text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\n' | b'\r')).unzip();
    if !symbols.len().is_multiple_of(4) {
        return Err(text.len());
    }
    STRICT.decode(&symbols).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) if symbols[at..].iter().any(|byte| *byte != b'=') => places[at],
        DecodeError::InvalidByte(..)
        | DecodeError::InvalidLength(_)
        | DecodeError::InvalidLastSymbol { .. }
        | DecodeError::InvalidPadding => text.len(),
    })
}

/// Decodes text as users paste it: white space is ignored, padding may be missing or misplaced, and an incomplete last
/// group is dropped. Returns `None` on an invalid character.
pub fn decode_lenient(text: &str) -> Option<Vec<u8>> {
    let mut symbols: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').collect();
    // A single symbol holds six bits of a byte: it is completed to be checked, and its byte dropped.
    let dangling = symbols.len() % 4 == 1;
    if dangling {
        symbols.push(b'A');
    }
    let mut bytes = UNPADDED.decode(symbols).ok()?;
    if dangling {
        bytes.pop();
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_again() {
        for (plain, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(plain.as_bytes()), encoded);
            assert_eq!(decode(encoded).unwrap(), plain.as_bytes());
            assert_eq!(decode_lenient(encoded).unwrap(), plain.as_bytes());
        }
        assert_eq!(decode("Zm9v\nYmFy\r\n").unwrap(), b"foobar");
        assert_eq!(decode("Zh==").unwrap(), b"f");
    }

    #[test]
    fn strangers_are_refused_with_their_place() {
        for (text, place) in
            [("Zm9*", 3), ("Zm\n9*", 4), ("Zm9", 3), ("Z===", 4), ("====", 4), ("Zg==Zg==", 2), ("=AAA", 0)]
        {
            assert_eq!(decode(text), Err(place), "{text}");
        }
    }

    #[test]
    fn people_may_leave_out_padding_and_wrap_lines() {
        for text in ["Zm9vYg", "Zm9vYg=", "Zm9v\n Yg==\n", "Zm9=vYg", "Zm9vYgAA"] {
            assert!(decode_lenient(text).unwrap().starts_with(b"foob"), "{text}");
        }
        assert_eq!(decode_lenient("Zm9vY").unwrap(), b"foo");
        for text in ["no!", "Zm9v*", "Zm9v_w"] {
            assert_eq!(decode_lenient(text), None, "{text}");
        }
    }
}
