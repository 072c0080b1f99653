//! Hashing of chosen passwords: slow and salted, so that a stolen database does not reveal them soon.

use std::num::NonZeroU32;

use octoflow_control::access::Password;
use ring::pbkdf2::{self, PBKDF2_HMAC_SHA256};

use super::secret;
use crate::answer::fault::Fault;

/// Number of rounds as recommended for this hash: about a fifth of a second on a machine of today.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).expect("the number is not zero");

/// Whoever chooses a shorter password is told that it is guessed soon.
const ADVISED_LENGTH: usize = 8;
const MAX_LENGTH: usize = 1024;

/// Checks whether a text can be the admin's password; the error says why not. The same for a password chosen over
/// either API and for one in a file.
pub(crate) fn acceptable(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > MAX_LENGTH {
        return Err(format!("it may have {MAX_LENGTH} characters and has {}", text.len()));
    }
    if text.trim() != text || !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return Err("it travels in a header: only printable ASCII characters, and no blanks at its ends".to_owned());
    }
    Ok(())
}

/// Returns what whoever chose a password should know of it.
pub(crate) fn advice(text: &str) -> Option<String> {
    let count = text.len();
    (count < ADVISED_LENGTH).then(|| {
        format!("the admin's password has {count} characters and is guessed soon; {ADVISED_LENGTH} are better")
    })
}

pub(super) fn hashed(who: &str, text: &str) -> Result<Password, Fault> {
    let salt = secret::random::<16>()?;
    let mut hash = [0; 32];
    pbkdf2::derive(PBKDF2_HMAC_SHA256, ROUNDS, &salt, text.as_bytes(), &mut hash);
    let changed = octoflow_control::now();
    Ok(Password { who: who.to_owned(), salt: salt.to_vec(), rounds: ROUNDS.get(), hash: hash.to_vec(), changed })
}

pub(super) fn fits(password: &Password, text: &str) -> bool {
    let Some(rounds) = NonZeroU32::new(password.rounds) else { return false };
    pbkdf2::verify(PBKDF2_HMAC_SHA256, rounds, &password.salt, text.as_bytes(), &password.hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_travels_in_a_header_and_a_short_one_comes_with_advice() {
        for (good, short) in [("x1", true), ("1234567", true), ("12345678", false), ("a long one with blanks", false)] {
            assert_eq!((acceptable(good), advice(good).is_some()), (Ok(()), short), "{good:?}");
        }
        for bad in ["", " 12345678", "12345678\n", "1234567\u{e4}", "tab\tinside it", &"x".repeat(1025)] {
            assert!(acceptable(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_the_same_password_fits_and_no_two_hashes_are_alike() {
        let (one, other) = (hashed("admin", "x1").unwrap(), hashed("admin", "x1").unwrap());
        assert_ne!(one.hash, other.hash);
        assert!(fits(&one, "x1") && !fits(&one, "x2"));
    }
}
