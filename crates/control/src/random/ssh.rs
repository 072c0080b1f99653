//! Key pairs for ssh, in the files that OpenSSH reads. Ed25519: short, and drawn at once.

use octoflow_model::{base64, submission::KeyPair};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::draw;
use crate::Error;

const ALGORITHM: &[u8] = b"ssh-ed25519";
const COMMENT: &[u8] = b"octoflow";
/// Length of the lines of a key file.
const LINE: usize = 70;

/// Draws a key pair.
pub(crate) fn new_key_pair() -> Result<KeyPair, Error> {
    let (seed, check) = (draw::<32>()?, draw::<4>()?);
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("every seed of 32 bytes is a key");
    Ok(write(&seed, pair.public_key().as_ref(), check))
}

fn write(seed: &[u8; 32], public: &[u8], check: [u8; 4]) -> KeyPair {
    let mut blob = Vec::new();
    put(&mut blob, ALGORITHM);
    put(&mut blob, public);
    // The same number twice shows that a key was decrypted well.
    let mut secret = [check, check].concat();
    secret.extend(&blob);
    put(&mut secret, &[seed, public].concat());
    put(&mut secret, COMMENT);
    // Filled to whole blocks of 8 with 1, 2, 3 and so on.
    let missing = secret.len().next_multiple_of(8) - secret.len();
    secret.extend((1..=7u8).take(missing));
    let mut file = b"openssh-key-v1\0".to_vec();
    put(&mut file, b"none");
    put(&mut file, b"none");
    put(&mut file, b"");
    file.extend(1u32.to_be_bytes());
    put(&mut file, &blob);
    put(&mut file, &secret);
    let encoded = base64::encode(&file);
    let lines: Vec<&str> =
        (0..encoded.len()).step_by(LINE).map(|at| &encoded[at..(at + LINE).min(encoded.len())]).collect();
    KeyPair {
        private: format!(
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
            lines.join("\n")
        ),
        public: format!("ssh-ed25519 {} octoflow\n", base64::encode(&blob)),
    }
}

/// Appends bytes after their length.
fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).expect("a key is short").to_be_bytes());
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_have_the_form_that_openssh_reads() {
        let (one, other) = (new_key_pair().unwrap(), new_key_pair().unwrap());
        assert_ne!(one, other);
        assert!(one.public.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"), "{}", one.public);
        assert!(one.private.lines().all(|line| line.len() <= LINE), "{}", one.private);
        assert!(!format!("{one:?}").contains("BEGIN"), "a log never shows it");
        let inner: String = one.private.lines().filter(|line| !line.starts_with('-')).collect();
        let file = base64::decode_lenient(&inner).unwrap();
        // The private part is the last text, in whole blocks.
        let blob = base64::decode_lenient(one.public.split(' ').nth(1).unwrap()).unwrap();
        let at = b"openssh-key-v1\0".len() + 8 + 8 + 4 + 4 + 4 + blob.len();
        let length = u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((length % 8, at + 4 + length), (0, file.len()));
    }
}
