//! The check of Secrets for `octoflow doctor`: how they are encrypted, and whether the key matches.

use std::path::Path;

use octoflow_store::SecretsCount;

use super::Finding;
use crate::{commands::Context, local::Local};

const ABOUT: &str = "secrets";

pub(super) fn finding(dir: &Path, context: &Context) -> Finding {
    let key = match context.secrets_key() {
        Ok(key) => key,
        Err(error) => return Finding::fail(ABOUT, format!("{error:#}"), "runs and the server will not start with it"),
    };
    // Problems of the database are reported by its own check.
    let Ok(Some(local)) = Local::open(dir) else { return Finding::ok(ABOUT, "none are kept yet") };
    let reader = local.reader();
    if let Err(error) = reader.check_secrets_key(key.as_ref()) {
        return Finding::fail(ABOUT, error.to_string(), "runs and the server will not start without it");
    }
    if reader.may_hold_plaintext().unwrap_or(false) {
        let found = "old values from before they were encrypted may still be readable in the database file [OF1116]";
        let advice = "free as much space as the file has and start octoflow: every start and every command that writes \
                      tries to write the file anew";
        return Finding::warn(ABOUT, found, advice);
    }
    match reader.count_secrets() {
        Ok(SecretsCount { plain_keys: 0, wrapped_keys: 0 }) => Finding::ok(ABOUT, "none are kept"),
        Ok(SecretsCount { plain_keys: 0, wrapped_keys }) => {
            Finding::ok(ABOUT, format!("{wrapped_keys} encrypted with the key file"))
        }
        Ok(SecretsCount { plain_keys, wrapped_keys }) => {
            let found = format!(
                "{} encrypted, {plain_keys} of them with keys that lie in the database",
                plain_keys + wrapped_keys
            );
            let advice = match key {
                Some(_) => "the next start encrypts these keys, too",
                None => "a copy of the directory opens them; --secrets-key-file FILE changes that",
            };
            Finding { advice: advice.to_owned(), ..Finding::ok(ABOUT, found) }
        }
        Err(error) => Finding::fail(ABOUT, error.to_string(), "restore the database or choose another data directory"),
    }
}
