//! Generation and hashing of tokens. A token is never stored here.

use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::answer::fault::Fault;

/// Letters of a token: 142 random bits cannot be guessed, so a fast hash suffices.
const LENGTH: usize = 24;

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub(crate) type Hash = [u8; 32];

/// Generates a token.
pub(super) fn generate() -> Result<String, Fault> {
    let mut token = String::with_capacity(LENGTH);
    while token.len() < LENGTH {
        let bytes = random::<LENGTH>()?;
        // Bytes beyond the alphabet are skipped, so that all letters are equally likely.
        let letters = bytes.iter().map(|byte| usize::from(byte & 63)).filter(|at| *at < LETTERS.len());
        token.extend(letters.take(LENGTH - token.len()).map(|at| char::from(LETTERS[at])));
    }
    Ok(token)
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    let drawn = SystemRandom::new().fill(&mut bytes);
    drawn.map_err(|_| Fault::internal("no random numbers could be drawn from the system"))?;
    Ok(bytes)
}

pub(crate) fn digest(text: &[u8]) -> Hash {
    Sha256::digest(text).into()
}

/// Compares in constant time.
pub(super) fn same(one: &Hash, other: &Hash) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_plain_and_never_the_same() {
        let tokens: std::collections::HashSet<String> = (0..100).map(|_| generate().unwrap()).collect();
        assert_eq!(tokens.len(), 100);
        assert!(tokens.iter().all(|token| token.len() == 24 && token.bytes().all(|byte| byte.is_ascii_alphanumeric())));
    }
}
