//! The program in other surroundings: below `/tmp`, in a path with spaces, and as another user. Each runs a copy of the
//! binary with manifests beside it, as a person would: `run`, a server with `submit --wait` and `logs`, examples, corpus.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    stage::{Said, one_step},
    wire::server::{ANYWHERE, Server},
};

/// Uid of `nobody` on every Linux.
const NOBODY: u32 = 65_534;

/// Examples that are quick, of every dialect.
const EXAMPLES: &[&str] = &[
    "argo/hello.yaml",
    "argo/diamond.yaml",
    "argo/artifacts.yaml",
    "argo/hooks.yaml",
    "argo/container-set.yaml",
    "argo/config.yaml",
    "argo/fan-out.yaml",
    "argo/init-container.yaml",
    "taskset/hello.yaml",
    "volcano/gang.yaml",
    "kubernetes-job/indexed.yaml",
    "jobflow/diamond.yaml",
];

/// Cases of the corpus that are quick and end well.
const CASES: &[&str] = &[
    "arguments-parameters",
    "steps",
    "dag-diamond",
    "dag-nested",
    "loops-maps",
    "global-parameters",
    "status-reference",
];

struct Place {
    home: TempDir,
    user: Option<u32>,
}

impl Place {
    fn new(around: &str, name: &str, user: Option<u32>) -> Self {
        let home = tempfile::Builder::new().prefix(name).tempdir_in(around).unwrap();
        let place = Self { home, user };
        fs::copy(env!("CARGO_BIN_EXE_octoflow"), place.program()).unwrap();
        fs::create_dir(place.work()).unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for example in EXAMPLES {
            place.write(&example.replace('/', "-"), &fs::read_to_string(examples.join(example)).unwrap());
        }
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/argo/examples");
        if corpus.is_dir() {
            for case in CASES {
                let text = fs::read_to_string(corpus.join(format!("{case}.yaml"))).unwrap();
                place.write(&format!("case-{case}.yaml"), &text);
            }
        } else {
            assert!(std::env::var_os("CI").is_none(), "the corpus is required in CI: {}", corpus.display());
        }
        place.write("beside.txt", "what lies beside it\n");
        let near = format!("cat '{}/beside.txt'; id -u", place.work().display());
        place.write("near.yaml", &one_step("near", &near));
        place.write("far.yaml", &one_step("far", "echo from far; id -u"));
        if let Some(user) = user {
            for path in [place.home.path().to_owned(), place.program(), place.work()] {
                chown(path, Some(user), Some(user)).unwrap();
            }
        }
        place
    }

    fn program(&self) -> PathBuf {
        self.home.path().join("octoflow")
    }

    fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).unwrap();
    }

    /// Returns a command as a person in the folder of the manifests gives it.
    fn command(&self, data: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(words).env("OCTOFLOW_DATA_DIR", self.home.path().join(data)).env("HOME", self.home.path());
        command.current_dir(self.work()).stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn good(&self, data: &str, words: &[&str]) -> String {
        let said = Said::from(self.command(data, words).output().unwrap());
        assert_eq!(said.code, 0, "{words:?}\n{said}");
        said.out
    }

    fn manifests(&self) -> Vec<String> {
        let names = fs::read_dir(self.work()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".yaml")).collect();
        names.sort();
        names
    }

    /// Everything that is tried in each place.
    fn try_all(&self) {
        let user = self.user.unwrap_or_else(|| fs::metadata("/proc/self").unwrap().uid());
        let manifests = self.manifests();
        assert!(manifests.len() >= EXAMPLES.len() + 2, "{manifests:?}");
        for manifest in &manifests {
            self.good("alone", &["run", "--quiet", "--timeout", "60s", manifest]);
        }
        let told = self.good("alone", &["logs", "near"]);
        assert!(told.contains("what lies beside it"), "a step sees the files beside its manifest: {told}");

        let mut server = self.command("served", &["server", "--listen", ANYWHERE]);
        let mut server = Server::launch(&mut server);
        self.good("served", &["submit", "--wait", "far.yaml"]);
        let told = self.good("served", &["logs", "far"]);
        assert!(told.contains("from far"), "{told}");
        for example in ["argo-hello.yaml", "argo-artifacts.yaml", "taskset-hello.yaml", "kubernetes-job-indexed.yaml"] {
            self.good("served", &["submit", "--wait", example]);
        }
        let listed = self.good("served", &["list"]);
        assert!(listed.contains("far") && listed.contains("Succeeded"), "{listed}");
        let data = fs::metadata(self.home.path().join("served/octoflow.db")).unwrap();
        assert_eq!(
            (data.uid(), data.mode() & 0o077),
            (user, 0),
            "the data belongs to who started it, and to nobody else"
        );
        server.stop();
    }
}

#[test]
fn below_tmp() {
    Place::new("/tmp", "octoflow-", None).try_all();
}

#[test]
fn in_a_path_with_spaces() {
    Place::new("/var/tmp", "a path with spaces-", None).try_all();
}

#[test]
fn as_another_user() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        // All tests run as an ordinary user here.
        return Place::new("/var/tmp", "own-", None).try_all();
    }
    Place::new("/var/tmp", "other-", Some(NOBODY)).try_all();
}
