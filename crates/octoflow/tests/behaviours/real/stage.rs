//! A folder and a data directory of a scenario's own, and what commands say there.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use octoflow_manifest::{Path, to_yaml};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server;
use crate::{
    scenario::{Misses, differences, texts},
    wire::said::Said,
};

pub(super) struct Stage {
    dir: TempDir,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A text as it is, an object as a manifest, a list of objects as several; `${stage}` is the folder itself and
    /// `${server}` a web server.
    pub(super) fn file(&self, name: &str, contents: &Value) {
        let text = match contents {
            Value::String(text) => text.clone(),
            Value::Array(objects) => objects.iter().map(|object| format!("---\n{}", to_yaml(object))).collect(),
            object => to_yaml(object),
        };
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        let text = text.replace("${stage}", self.dir.path().to_str().unwrap());
        let text = if text.contains("${server}") { text.replace("${server}", server::address()) } else { text };
        fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn octoflow(&self, words: &[String], stdin: &str) -> Said {
        self.start(words, stdin).wait_with_output().unwrap().into()
    }

    pub(super) fn start(&self, words: &[String], stdin: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).current_dir(self.dir.path()).env("OCTOFLOW_DATA_DIR", self.path("data")).env("TZ", "UTC");
        fs::write(self.path(".stdin"), stdin).unwrap();
        command.stdin(Stdio::from(fs::File::open(self.path(".stdin")).unwrap()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

impl Said {
    /// `exit`, `stdout`, `stderr`, and `object` where the output is JSON.
    pub(super) fn compare(&self, expected: &Value, path: &Path, found: &mut Misses) {
        if let Some(code) = expected.get("exit").filter(|code| **code != json!(self.code)) {
            let text = format!("expected {code}, actual {}\n{}\n{}", self.code, self.out, self.err);
            found.push((path.join("exit"), text));
        }
        for (key, actual) in [("stdout", &self.out), ("stderr", &self.err)] {
            if let Some(expected) = expected.get(key) {
                texts(expected, actual, &path.join(key), found);
            }
        }
        if let Some(expected) = expected.get("object") {
            differences(expected, &self.object(), &path.join("object"), found);
        }
    }

    pub(super) fn object(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_default()
    }
}
