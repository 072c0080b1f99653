//! Measuring one command with everything it leaves behind: time, processor time, memory.
//! The command runs below a process of ours that waits for its orphans too, because the spawner outlives the engine.

use std::{
    error::Error,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    os,
    role::{ROLE_ARGUMENT, Role},
};

pub(super) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long the processes a command leaves behind may take to end.
const AFTERMATH: Duration = Duration::from_secs(30);

/// What the rows work with.
pub struct Tools {
    /// This program, which plays the roles.
    own: PathBuf,
    /// The program that is measured.
    octoflow: PathBuf,
    /// Data directories go here, on the disk the caller stands on.
    ground: TempDir,
}

/// What one command took.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub wall: Duration,
    pub cpu: Duration,
    pub peak_kib: u64,
    /// What it wrote to its standard output.
    pub said: String,
}

impl Tools {
    /// `OCTOFLOW_BIN` names the program to measure; else it is looked for beside this one.
    pub fn find() -> Result<Self, Box<dyn Error + Send + Sync>> {
        let own = std::env::current_exe()?;
        let beside = own.with_file_name("octoflow");
        let octoflow = std::env::var_os("OCTOFLOW_BIN").map_or(beside, PathBuf::from);
        if !octoflow.is_file() {
            let text = format!(
                "there is no program at {}; build it with: cargo build --release -p octoflow",
                octoflow.display()
            );
            return Err(text.into());
        }
        let ground = tempfile::Builder::new().prefix(".bench-").tempdir_in(std::env::current_dir()?)?;
        Ok(Self { own, octoflow: octoflow.canonicalize()?, ground })
    }

    pub(super) fn octoflow(&self) -> &Path {
        &self.octoflow
    }

    pub(super) fn ground(&self) -> &Path {
        self.ground.path()
    }

    /// A directory nobody has used, gone when it is dropped.
    pub(super) fn fresh(&self) -> Outcome<TempDir> {
        Ok(tempfile::tempdir_in(&self.ground)?)
    }

    /// Measures one of our own roles.
    pub(super) fn role(&self, role: &Role) -> Outcome<Taken> {
        let mut words = vec![ROLE_ARGUMENT.to_owned()];
        words.extend(role.words());
        self.measure(&self.own, &words)
    }

    /// The command that plays a role, for whoever starts it without waiting for its end.
    pub(super) fn part(&self, role: &Role) -> Command {
        let mut command = Command::new(&self.own);
        command.arg(ROLE_ARGUMENT).args(role.words());
        command
    }

    /// Measures a command, below a process that waits for all it starts.
    pub(super) fn measure<S: AsRef<OsStr>>(&self, program: &Path, arguments: &[S]) -> Outcome<Taken> {
        let mut command = Command::new(&self.own);
        command.arg(ROLE_ARGUMENT).arg("measure").arg(program).args(arguments);
        let output = command.stdin(Stdio::null()).output()?;
        let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        let Some(answer) = answer.filter(|answer| answer["code"] == 0) else {
            let errors = String::from_utf8_lossy(&output.stderr);
            let text = format!("{} failed: {errors}{}", program.display(), String::from_utf8_lossy(&output.stdout));
            return Err(text.into());
        };
        if answer["settled"] != true {
            return Err(format!("{} left processes behind that do not end", program.display()).into());
        }
        let micros = |field: &str| Duration::from_micros(answer[field].as_u64().unwrap_or(0));
        Ok(Taken {
            wall: micros("wall_us"),
            cpu: micros("cpu_us"),
            peak_kib: answer["peak_kib"].as_u64().unwrap_or(0),
            said: answer["said"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// The measuring process itself: runs the command and answers in JSON.
pub(super) fn watch(program: &str, arguments: &[String]) -> Outcome<String> {
    os::adopt_orphans()?;
    let began = Instant::now();
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let wall = began.elapsed();
    let settled = os::outlive_children(AFTERMATH);
    let usage = os::children()?;
    let answer = json!({
        "wall_us": wall.as_micros() as u64,
        "cpu_us": usage.cpu.as_micros() as u64,
        "peak_kib": usage.peak_kib,
        "code": output.status.code(),
        "settled": settled,
        "said": String::from_utf8_lossy(&output.stdout),
    });
    Ok(answer.to_string())
}
