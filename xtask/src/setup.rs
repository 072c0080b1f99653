//! Installs what the tests need. Deciding what is missing is a pure function of the machine; only `run` changes
//! anything, and it changes nothing if everything is there.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::step::Step;

/// Installs what is missing, or says what to install by hand.
///
/// In CI a gap is an error: tests that cannot run there must not look as if they had passed.
pub fn run() -> Result<()> {
    let machine = Machine::look();
    let plan = plan(&machine);
    for note in &plan.notes {
        println!("setup: {note}");
    }
    // Gaps come first: nobody should wait for a build before learning that it was in vain.
    if !plan.gaps.is_empty() {
        let gaps = plan.gaps.join("\n  - ");
        if machine.ci {
            bail!("this machine lacks what the tests need:\n  - {gaps}");
        }
        eprintln!("\nWARNING: some tests will fail, this machine lacks what they need:\n  - {gaps}\n");
    }
    if let Some(text) = outlook(&plan) {
        println!("setup: {text}");
    }
    if !plan.packages.is_empty() {
        apt(&machine, "update", &["-qq"])?;
        let mut args = vec!["-y", "--no-install-recommends"];
        args.extend(&plan.packages);
        apt(&machine, "install", &args)?;
    }
    if plan.nextest {
        Step::cargo(["install", NEXTEST, "--locked"]).run()?;
    }
    if plan.s3_server {
        let root = machine.tools.as_deref().expect("a server is only planned where there is room for tools");
        let folder = root.to_string_lossy().into_owned();
        Step::cargo(["install", S3_SERVER, "--locked", "--features", "binary", "--root", &folder])
            // Its many crates are built once and only for this; they need not be among ours.
            .env("CARGO_TARGET_DIR", root.join("build"))
            .run()?;
        // A few hundred megabytes that are not needed again.
        let _ = std::fs::remove_dir_all(root.join("build"));
    }
    for tool in plan.python {
        let root = machine.tools.as_deref().expect("tools are only planned where there is room for them");
        match install(tool, &root.join(tool.name)) {
            Err(error) if !machine.ci => {
                eprintln!("\nWARNING: {} are skipped, {} cannot be installed: {error:#}\n", tool.tests, tool.name)
            }
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Returns what will be installed and an estimate of the time on two cores; `None` if everything is there.
fn outlook(plan: &Plan) -> Option<String> {
    let mut parts: Vec<(String, u32)> = Vec::new();
    if !plan.packages.is_empty() {
        parts.push((format!("packages {}", plan.packages.join(", ")), 1));
    }
    if plan.nextest {
        parts.push((format!("{NEXTEST}, built from source"), 5));
    }
    if plan.s3_server {
        parts.push((format!("{S3_SERVER} for artifact tests, built from source"), 5));
    }
    for tool in &plan.python {
        parts.push((format!("{} in a Python environment of its own", tool.package), 1));
    }
    if parts.is_empty() {
        return None;
    }
    let all: u32 = parts.iter().map(|(_, minutes)| minutes).sum();
    let spelled: Vec<String> = parts.iter().map(|(what, minutes)| format!("{what} ({minutes} min)")).collect();
    Some(format!("this machine gets, once, in about {all} minutes on two cores: {}", spelled.join("; ")))
}

/// A program from PyPI that tests drive the server with, in an environment of its own.
struct PythonTool {
    /// Folder name, which the tests know.
    name: &'static str,
    package: &'static str,
    tests: &'static str,
}

const PYTHON: &[PythonTool] = &[
    PythonTool { name: "hera", package: "hera>=7,<8", tests: "tests with the Python client of workflows" },
    PythonTool { name: "schemathesis", package: "schemathesis>=4,<5", tests: "tests of the API against its document" },
];

/// Marker file, written last: an incomplete installation must not count as one. The tests look for it too.
const READY: &str = "ready";

fn install(tool: &PythonTool, folder: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    Step::new("python3", ["-m", "venv", &folder.to_string_lossy()]).run()?;
    let python = folder.join("bin/python");
    Step::new(&python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", tool.package]).run()?;
    Ok(std::fs::write(folder.join(READY), tool.package)?)
}

/// Pinned: a later version may need a compiler that a fresh machine does not have.
const NEXTEST: &str = "cargo-nextest@0.9.151";

/// Pinned to the newest version that the pinned compiler builds.
const S3_SERVER: &str = "s3s-fs@0.14.1";

/// Returns the folder of programs that only tests need; the tests look there too.
fn tools() -> Option<PathBuf> {
    let var = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = var("OCTOFLOW_CI_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("octoflow-ci")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/octoflow-ci")));
    Some(cache?.join("tools"))
}

/// Properties of a machine that setup needs to know.
struct Machine {
    /// True if the S3 server of the artifact tests is installed.
    s3_server: bool,
    /// Installed tools from PyPI, by name.
    python: Vec<&'static str>,
    tools: Option<PathBuf>,
    programs: Vec<&'static str>,
    nextest: bool,
    debian: bool,
    right: Right,
    ci: bool,
}

/// How this user may install packages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Root,
    Sudo,
    None,
}

#[derive(Default)]
struct Plan {
    packages: Vec<&'static str>,
    s3_server: bool,
    python: Vec<&'static PythonTool>,
    nextest: bool,
    gaps: Vec<String>,
    notes: Vec<String>,
}

struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

/// Programs that the workflows of the tests run as steps.
const NEEDS: &[Need] = &[
    Need { program: "bash", package: "bash", why: "steps and scripts of test workflows" },
    Need { program: "faketime", package: "faketime", why: "tests that set the clock" },
    Need { program: "git", package: "git", why: "git artifacts" },
    Need { program: "jq", package: "jq", why: "test workflows that take JSON apart" },
    Need { program: "kubectl", package: "kubernetes-client", why: "tests of the Kubernetes-style API" },
    Need { program: "python3", package: "python3", why: "script templates of test workflows" },
    Need { program: "script", package: "bsdutils", why: "tests of what reaches a terminal" },
    Need {
        program: ENSUREPIP,
        package: "python3-venv",
        why: "Hera and schemathesis, which tests of the server are driven with",
    },
];

/// Not a program: the part of Python that creates environments, which Debian packages separately.
const ENSUREPIP: &str = "ensurepip";

const EXTRA: &[&str] = &["python", "sqlite3"];

fn plan(machine: &Machine) -> Plan {
    let has = |program: &str| machine.programs.contains(&program);
    let s3_server = !machine.s3_server && machine.tools.is_some();
    let room = machine.tools.is_some();
    let python = PYTHON.iter().filter(|tool| room && !machine.python.contains(&tool.name)).collect();
    let mut plan = Plan { nextest: !machine.nextest, s3_server, python, ..Plan::default() };
    if machine.tools.is_none() {
        plan.gaps.push(
            "no folder for an S3 server, Hera and schemathesis (neither XDG_CACHE_HOME nor HOME is set): artifact and server tests"
                .to_owned(),
        );
    }
    for need in NEEDS.iter().filter(|need| !has(need.program)) {
        if machine.debian && machine.right != Right::None {
            plan.packages.push(need.package);
            continue;
        }
        let obstacle = if machine.debian { "neither root nor sudo" } else { "not Debian" };
        plan.gaps.push(format!("`{}` ({}): install it by hand, setup cannot ({obstacle})", need.program, need.why));
    }
    // Which Python the bare name means is the owner's choice, so it is reported and left alone.
    if !has("python") {
        plan.notes.push(
            "`python` is not on PATH, so workflows that name it as their command cannot run: add \
             it if you want them, for example with the package python-is-python3"
                .to_owned(),
        );
    }
    if !has("sqlite3") {
        plan.notes.push("optional: `sqlite3` is handy for looking into a journal".to_owned());
    }
    plan
}

impl Machine {
    fn look() -> Machine {
        let wanted = NEEDS.iter().map(|need| need.program);
        let root = Step::new("id", ["-u"]).read().is_ok_and(|user| user.trim_ascii() == b"0");
        let right = if root {
            Right::Root
        } else if on_path("sudo") {
            Right::Sudo
        } else {
            Right::None
        };
        Machine {
            programs: wanted.chain(EXTRA.iter().copied()).filter(|program| is_there(program)).collect(),
            python: PYTHON.iter().filter(|tool| is_installed(tool)).map(|tool| tool.name).collect(),
            s3_server: tools().is_some_and(|dir| dir.join("bin/s3s-fs").is_file()),
            tools: tools(),
            nextest: Step::cargo(["nextest", "--version"]).succeeds(),
            debian: Path::new("/etc/debian_version").exists() && on_path("apt-get"),
            right,
            ci: env::var("CI").is_ok_and(|value| value == "true"),
        }
    }
}

/// Returns whether exactly the wanted package was installed completely.
fn is_installed(tool: &PythonTool) -> bool {
    let ready = tools().map(|dir| dir.join(tool.name).join(READY));
    ready.and_then(|ready| std::fs::read_to_string(ready).ok()).is_some_and(|package| package == tool.package)
}

fn apt(machine: &Machine, verb: &str, args: &[&str]) -> Result<()> {
    let mut words = match machine.right {
        // In CI nobody can type a password, so sudo must not wait for one.
        Right::Sudo if machine.ci => vec!["sudo", "-n", "env"],
        Right::Sudo => vec!["sudo", "env"],
        Right::Root => vec!["env"],
        Right::None => unreachable!("a plan without the right to install holds no packages"),
    };
    words.extend(["DEBIAN_FRONTEND=noninteractive", "apt-get", verb]);
    words.extend(args);
    Step::new(words[0], &words[1..]).run()
}

fn is_there(need: &str) -> bool {
    match need {
        ENSUREPIP => Step::new("python3", ["-c", "import ensurepip, venv"]).succeeds(),
        program => on_path(program),
    }
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> Machine {
        Machine {
            programs: NEEDS.iter().map(|need| need.program).chain(EXTRA.iter().copied()).collect(),
            s3_server: true,
            python: vec!["hera", "schemathesis"],
            tools: Some("/cache/tools".into()),
            nextest: true,
            debian: true,
            right: Right::Root,
            ci: false,
        }
    }

    #[test]
    fn a_complete_machine_is_left_alone() {
        let plan = plan(&complete());
        assert!(plan.packages.is_empty() && !plan.nextest && !plan.s3_server && plan.python.is_empty());
        assert!(plan.gaps.is_empty() && plan.notes.is_empty());
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        let mut machine = complete();
        machine.programs.retain(|program| *program != "jq");
        machine.nextest = false;
        machine.s3_server = false;
        machine.python.retain(|tool| *tool != "hera");
        let plan = plan(&machine);
        assert_eq!(plan.packages, ["jq"]);
        assert!(plan.nextest && plan.s3_server);
        assert_eq!(plan.python.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["hera"]);
    }

    #[test]
    fn what_is_installed_is_told_beforehand_with_its_time() {
        assert_eq!(outlook(&plan(&complete())), None);
        let mut machine = complete();
        machine.programs.retain(|program| *program != "jq" && *program != "git");
        machine.nextest = false;
        let told = outlook(&plan(&machine)).unwrap();
        assert!(told.contains("about 6 minutes") && told.contains("packages git, jq (1 min)"), "{told}");
        assert!(told.contains(NEXTEST), "{told}");
    }

    #[test]
    fn what_cannot_be_installed_is_a_gap_with_its_reason() {
        let mut machine = complete();
        machine.programs.retain(|program| *program != "jq");
        machine.right = Right::None;
        let refused = plan(&machine);
        assert!(refused.packages.is_empty());
        assert!(refused.gaps[0].contains("`jq`") && refused.gaps[0].contains("sudo"));

        machine.right = Right::Root;
        machine.debian = false;
        assert!(plan(&machine).gaps[0].contains("not Debian"));
    }

    #[test]
    fn a_missing_python_name_is_reported_and_never_installed() {
        let mut machine = complete();
        machine.programs.retain(|program| *program != "python");
        let plan = plan(&machine);
        assert!(plan.packages.is_empty() && plan.gaps.is_empty());
        assert!(plan.notes[0].contains("`python`"));
    }

    #[test]
    fn sqlite3_is_only_a_wish() {
        let mut machine = complete();
        machine.programs.retain(|program| *program != "sqlite3");
        let plan = plan(&machine);
        assert!(plan.packages.is_empty() && plan.gaps.is_empty());
        assert_eq!(plan.notes.len(), 1);
    }
}
