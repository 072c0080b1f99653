//! Redacts secrets from exports: values whose names say that they are secret, texts that look like tokens, and every
//! other occurrence of such a value.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::source::workflow::text;

/// Replacement of a secret.
pub(crate) const REDACTED: &str = "***";

/// Minimum length: shorter values are common words, and redacting them everywhere would leave nothing readable.
const MIN_LENGTH: usize = 5;

/// Parts of names of secrets.
const NAMES: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "accesskey",
    "private_key",
    "credential",
    "authorization",
];

/// Patterns of secrets: keys of well-known services, signed tokens, passwords in URLs.
const FORMS: [&str; 6] = [
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}",
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,})",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
];

/// `//user:password@`
const IN_ADDRESS: &str = r"(?P<start>://[^\s/:@]+:)[^\s/@]+@";

/// `password=value`, as programs print it.
const PAIR: &str = r#"(?i)(?P<start>\b[a-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key)[a-z0-9_.-]*["']?\s*[=:]\s*["']?)[^\s"',;&]{3,}"#;

pub(crate) struct Redactor {
    forms: Vec<Regex>,
    address: Regex,
    pair: Regex,
    /// Values that were found under the name of a secret.
    known: BTreeSet<String>,
}

impl Redactor {
    /// Collects the secrets of this object, to redact them everywhere.
    pub(crate) fn of(object: &Value) -> Self {
        let compiled = |pattern: &str| RegexBuilder::new(pattern).build().expect("the patterns are fixed");
        let mut known = BTreeSet::new();
        gather(object, &mut known);
        Self {
            forms: FORMS.iter().map(|form| compiled(form)).collect(),
            address: compiled(IN_ADDRESS),
            pair: compiled(PAIR),
            known,
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        // The longest first: one secret may be the beginning of another.
        let mut known: Vec<&String> = self.known.iter().collect();
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        for value in known {
            if shown.contains(value.as_str()) {
                shown = shown.replace(value.as_str(), REDACTED);
            }
        }
        for form in &self.forms {
            shown = form.replace_all(&shown, REDACTED).into_owned();
        }
        shown = self.address.replace_all(&shown, format!("${{start}}{REDACTED}@")).into_owned();
        self.pair.replace_all(&shown, format!("${{start}}{REDACTED}")).into_owned()
    }

    /// Redacts every text of an object, and everything under the name of a secret.
    pub(crate) fn object(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.object(item)).collect()),
            Value::Object(fields) => {
                let named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret);
                let one = |(key, value): (&String, &Value)| {
                    let hidden = is_plain(value) && (is_secret(key) || (named && (key == "value" || key == "default")));
                    (key.clone(), if hidden { Value::String(REDACTED.to_owned()) } else { self.object(value) })
                };
                Value::Object(fields.iter().map(one).collect())
            }
            other => other.clone(),
        }
    }
}

/// Iterative, because manifests may nest deeply.
fn gather(object: &Value, known: &mut BTreeSet<String>) {
    let mut open = vec![object];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let named = is_secret(text(value, "name"));
                for (key, value) in fields {
                    if let Value::String(found) = value
                        && (is_secret(key) || (named && (key == "value" || key == "default")))
                        && found.len() >= MIN_LENGTH
                        && !found.contains("{{")
                    {
                        known.insert(found.clone());
                    }
                    open.push(value);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a name is that of a secret. A reference to a Secret has its name and key, which are not secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let refers = name.ends_with("secret") && name != "secret" || name.ends_with("ref") || name.ends_with("name");
    !refers && NAMES.iter().any(|word| name.contains(word))
        || matches!(name.as_str(), "client_secret" | "clientsecret" | "secret")
}

fn is_plain(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_secrets_are_taken_out_wherever_they_are() {
        let object = json!({"spec": {
            "arguments": {"parameters": [{"name": "db-password", "value": "hunter22"}, {"name": "who", "value": "me"}]},
            "templates": [{"container": {"args": ["login --with hunter22"], "env": [
                {"name": "API_TOKEN", "value": "abcdef"},
                {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "my-secret", "key": "token"}}}]}}]}});
        let redactor = Redactor::of(&object);
        let shown = redactor.object(&object);
        assert_eq!(shown["spec"]["arguments"]["parameters"][0]["value"], REDACTED);
        assert_eq!(shown["spec"]["arguments"]["parameters"][1]["value"], "me");
        let container = &shown["spec"]["templates"][0]["container"];
        assert_eq!(container["args"][0], "login --with ***");
        assert_eq!(container["env"][0]["value"], REDACTED);
        assert_eq!(container["env"][1]["valueFrom"]["secretKeyRef"], json!({"name": "my-secret", "key": "token"}));
        assert_eq!(redactor.text("the log says hunter22 and abcdef"), "the log says *** and ***");
    }

    #[test]
    fn what_looks_like_a_token_is_one() {
        let redactor = Redactor::of(&json!({}));
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        assert_eq!(redactor.text(&format!("x {jwt} y")), "x *** y");
        assert_eq!(redactor.text("Authorization: Bearer abcdefgh1234"), "Authorization: ***");
        assert_eq!(redactor.text("https://me:pass@host/x"), "https://me:***@host/x");
        assert_eq!(redactor.text("PASSWORD=geheim ok"), "PASSWORD=*** ok");
        assert_eq!(redactor.text(r#"{"token": "abc123", "n": 1}"#), r#"{"token": "***", "n": 1}"#);
        assert_eq!(redactor.text("nothing to hide: 3 tokens left"), "nothing to hide: 3 tokens left");
    }
}
