//! `octoflow doctor`: checks whether this machine, or a named server, has what runs need, with advice for each problem.

mod private;
mod secrets;
mod server;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Result;
use octoflow_runtime::process;
use octoflow_store::RunRow;
use serde_json::json;

use super::Context;
use crate::{
    cli::Doctor,
    config::system,
    exit::Exit,
    local::{Local, holder},
    output::{
        Output,
        colour::Colour,
        json::objects,
        table::{Cell, Table},
    },
};

/// Below this, logs and artifacts will soon fail to be written.
const LITTLE_SPACE: u64 = 1 << 30;

/// Below this, the database itself is at risk.
const NO_SPACE: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Self::Ok => Colour::Green,
            Self::Warn => Colour::Yellow,
            Self::Fail => Colour::Red,
        }
    }
}

#[derive(Debug)]
struct Finding {
    about: &'static str,
    status: CheckStatus,
    found: String,
    advice: String,
}

impl Finding {
    fn ok(about: &'static str, found: impl Into<String>) -> Self {
        Self { about, status: CheckStatus::Ok, found: found.into(), advice: String::new() }
    }

    fn warn(about: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, status: CheckStatus::Warn, found: found.into(), advice: advice.into() }
    }

    fn fail(about: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, status: CheckStatus::Fail, found: found.into(), advice: advice.into() }
    }
}

pub(crate) fn doctor(args: &Doctor, context: &Context) -> Result<Exit> {
    let dir = &context.data_dir;
    // If a server is named only that one is checked; otherwise this machine first.
    let mut findings = match &context.server_args.server {
        Some(_) => Vec::new(),
        None => {
            vec![
                writable(dir),
                private::finding(dir),
                space(dir),
                database(dir),
                secrets::finding(dir, context),
                runs(dir),
                lock(dir),
                isolation(),
                memory(),
                shell(),
                python(),
                kernel(),
            ]
        }
    };
    if let Some(client) = context.named_server()? {
        findings.extend(server::findings(&client));
    }
    let failed = findings.iter().any(|finding| finding.status == CheckStatus::Fail);
    show(&findings, args, &context.output)?;
    Ok(if failed { Exit::Failed } else { Exit::Succeeded })
}

fn show(findings: &[Finding], args: &Doctor, output: &Output) -> Result<()> {
    let values: Vec<_> = findings
        .iter()
        .map(|one| json!({"check": one.about, "verdict": one.status.word(), "found": one.found, "advice": one.advice}))
        .collect();
    if let Some(text) = args.output.as_ref().and_then(|format| objects(format, &values, true)) {
        return Ok(output.data(&text)?);
    }
    let mut table = Table::bare();
    for one in findings {
        let words = if one.advice.is_empty() { one.found.clone() } else { format!("{}; {}", one.found, one.advice) };
        table.push(vec![Cell::coloured(one.status.word(), one.status.colour()), one.about.into(), words.into()]);
    }
    Ok(output.text(&table.render(output.paint()))?)
}

/// Returns the directory itself, or its nearest existing ancestor, where it would be created.
fn existing(dir: &Path) -> PathBuf {
    let absolute = env::current_dir().map(|here| here.join(dir)).unwrap_or_else(|_| dir.to_owned());
    absolute.ancestors().find(|above| above.is_dir()).map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

fn writable(dir: &Path) -> Finding {
    const ABOUT: &str = "data directory";
    let place = existing(dir);
    let probe = place.join(format!(".octoflow-doctor-{}", std::process::id()));
    let outcome = fs::write(&probe, b"can this be written?");
    let _ = fs::remove_file(&probe);
    match outcome {
        Ok(()) if place.ends_with(dir) || dir.is_dir() => {
            Finding::ok(ABOUT, format!("{} can be written", dir.display()))
        }
        Ok(()) => Finding::ok(ABOUT, format!("{} will be made", dir.display())),
        Err(error) => Finding::fail(
            ABOUT,
            format!("{} cannot be written: {error}", place.display()),
            "choose another with --data-dir or OCTOFLOW_DATA_DIR",
        ),
    }
}

fn space(dir: &Path) -> Finding {
    const ABOUT: &str = "free space";
    let advice = "free some, or choose another place with --data-dir";
    match system::free_space(&existing(dir)) {
        Ok(bytes) if bytes < NO_SPACE => Finding::fail(ABOUT, amount(bytes), advice),
        Ok(bytes) if bytes < LITTLE_SPACE => Finding::warn(ABOUT, amount(bytes), advice),
        Ok(bytes) => Finding::ok(ABOUT, amount(bytes)),
        Err(error) => Finding::warn(ABOUT, format!("cannot be found out: {error}"), ""),
    }
}

fn amount(bytes: u64) -> String {
    let mega = bytes >> 20;
    if mega < 10_240 { format!("{mega} MiB") } else { format!("{} GiB", mega >> 10) }
}

fn database(dir: &Path) -> Finding {
    const ABOUT: &str = "database";
    let local = match Local::open(dir) {
        Ok(None) => return Finding::ok(ABOUT, "none yet, the first run makes it"),
        Ok(Some(local)) => local,
        // The errors of a missing or damaged database contain the advice.
        Err(error) => return Finding::fail(ABOUT, format!("{error:#}"), ""),
    };
    let reader = local.reader();
    let counted = reader.count(&octoflow_store::Filter::default());
    match counted.and_then(|count| reader.check_integrity().map(|()| count)) {
        Ok(count) => Finding::ok(ABOUT, format!("whole, {count} runs")),
        Err(error) => Finding::fail(ABOUT, format!("{:#}", anyhow::Error::from(error)), ""),
    }
}

fn runs(dir: &Path) -> Finding {
    const ABOUT: &str = "open runs";
    let Ok(Some(local)) = Local::open(dir) else { return Finding::ok(ABOUT, "none") };
    match local.unreadable() {
        Ok(found) => match found.as_slice() {
            [] => Finding::ok(ABOUT, "all can be read"),
            [(row, why), rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
                let RunRow { kind, namespace, name, .. } = row;
                Finding::warn(
                    ABOUT,
                    format!("{kind} `{name}` in namespace `{namespace}` cannot be read: {why}{more}"),
                    "the others are not affected; if it is damaged, restore the database from a backup, or delete the run",
                )
            }
        },
        Err(error) => Finding::fail(ABOUT, format!("{error:#}"), ""),
    }
}

fn lock(dir: &Path) -> Finding {
    const ABOUT: &str = "lock";
    match holder(dir) {
        Some(pid) => Finding::warn(
            ABOUT,
            format!("process {pid} is running workflows here"),
            "another `octoflow run` needs another --data-dir until it ends",
        ),
        None => Finding::ok(ABOUT, "free"),
    }
}

fn isolation() -> Finding {
    const ABOUT: &str = "isolation";
    match try_isolation() {
        Ok(None) => Finding::ok(ABOUT, "every step gets its own view of the file system and its own process table"),
        Ok(Some(why)) => Finding::warn(ABOUT, why, "docs/security.md says what keeps steps apart then"),
        Err(error) => Finding::fail(ABOUT, format!("{error:#}"), "steps cannot be started"),
    }
}

fn memory() -> Finding {
    const ABOUT: &str = "memory limits";
    match process::memory_limits() {
        Ok(version) => {
            Finding::ok(ABOUT, format!("they hold for a whole container, by control groups of version {version}"))
        }
        Err(why) => Finding::warn(ABOUT, why, "they hold for each process on its own, not for a container as a whole"),
    }
}

/// Starts the spawner in a directory of its own and asks for its capabilities.
fn try_isolation() -> Result<Option<String>> {
    let dir = env::temp_dir().join(format!("octoflow-doctor-{}", std::process::id()));
    let outcome = env::current_exe().map_err(anyhow::Error::from).and_then(|own| {
        let (runtime, notices) = process::open(process::Config::new(&dir, own), Box::new(|_| {}))?;
        runtime.shutdown();
        Ok(notices.into_iter().next().map(|notice| notice.0))
    });
    let _ = fs::remove_dir_all(&dir);
    outcome
}

fn shell() -> Finding {
    const ABOUT: &str = "sh";
    match ["bash", "busybox", "dash", "sh"].into_iter().find_map(|name| on_path(name).map(|path| (name, path))) {
        Some(("bash" | "busybox", path)) => Finding::ok(ABOUT, path.display().to_string()),
        Some((_, path)) => Finding::warn(
            ABOUT,
            path.display().to_string(),
            "scripts written for images with bash or busybox may need one of these installed",
        ),
        None => Finding::fail(ABOUT, "no shell in PATH", "install bash or busybox"),
    }
}

fn python() -> Finding {
    const ABOUT: &str = "python";
    let advice = "manifests with python scripts need it: install python3";
    match ["python3", "python"].into_iter().find_map(on_path) {
        None => Finding::warn(ABOUT, "not in PATH", advice),
        Some(path) => match Command::new(&path).arg("--version").stdin(Stdio::null()).output() {
            Ok(said) if said.status.success() => {
                Finding::ok(ABOUT, format!("{} ({})", path.display(), String::from_utf8_lossy(&said.stdout).trim()))
            }
            _ => Finding::warn(ABOUT, format!("{} does not start", path.display()), advice),
        },
    }
}

fn kernel() -> Finding {
    const ABOUT: &str = "kernel";
    match fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(release) => Finding::ok(ABOUT, format!("{} {}", env::consts::OS, release.trim())),
        Err(_) => Finding::warn(ABOUT, env::consts::OS, "only Linux isolates steps from each other"),
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    #[test]
    fn a_directory_that_is_not_there_yet_is_judged_by_the_one_above_it() {
        let dir = tempdir().unwrap();
        let finding = writable(&dir.path().join("not/yet"));
        assert_eq!(finding.status, CheckStatus::Ok, "{finding:?}");
        assert!(finding.found.contains("will be made"), "{finding:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "looking leaves nothing behind");
    }

    #[test]
    fn a_place_that_cannot_be_written_fails() {
        let finding = writable(Path::new("/proc/octoflow"));
        assert_eq!(finding.status, CheckStatus::Fail, "{finding:?}");
    }

    #[test]
    fn an_empty_directory_has_no_database_and_no_holder() {
        let dir = tempdir().unwrap();
        assert_eq!(database(dir.path()).status, CheckStatus::Ok);
        assert_eq!(lock(dir.path()).status, CheckStatus::Ok);
    }
}
