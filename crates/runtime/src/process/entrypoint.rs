//! Determines the program of a container: its command, or what its image would run, and where that program is on this
//! machine. Only looks names up; whether a program really starts shows when it is started.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use octoflow_model::task::TaskContainer;

/// Programs that images run if no command is given. Configuration extends and overrides it.
const KNOWN: [(&str, &str); 24] = [
    ("alpine", "sh"),
    ("amazonlinux", "bash"),
    ("argosay", "argosay"),
    ("bash", "bash"),
    ("bitnami-shell", "bash"),
    ("busybox", "sh"),
    ("centos", "bash"),
    ("cowsay", "cowsay"),
    ("curl", "curl"),
    ("debian", "bash"),
    ("fedora", "bash"),
    ("git", "git"),
    ("golang", "bash"),
    ("jq", "jq"),
    ("kubectl", "kubectl"),
    ("node", "node"),
    ("openjdk", "jshell"),
    ("perl", "perl"),
    ("python", "python3"),
    ("rockylinux", "bash"),
    ("ruby", "irb"),
    ("ubuntu", "bash"),
    ("whalesay", "cowsay"),
    ("yq", "yq"),
];

/// What to run: candidate paths in order, and the arguments, starting with the name it is called by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    pub(crate) places: Vec<String>,
    pub(crate) args: Vec<String>,
}

/// Lookup of programs, with everything that is determined once.
#[derive(Clone, Debug)]
pub(crate) struct ProgramTable {
    configured: BTreeMap<String, Vec<String>>,
    /// Shell that `sh` runs instead, if the machine's own `sh` lacks what scripts written for containers use.
    better_shell: Option<PathBuf>,
}

impl ProgramTable {
    pub(crate) fn new(configured: BTreeMap<String, Vec<String>>) -> Self {
        Self { configured, better_shell: better_shell() }
    }

    /// Returns the arguments of a container, its entrypoint first. `Err` says what the user can do.
    pub(crate) fn args(&self, container: &TaskContainer) -> Result<Vec<String>, String> {
        let mut args =
            if container.command.is_empty() { self.entrypoint(&container.image)? } else { container.command.clone() };
        args.extend(container.args.iter().cloned());
        Ok(args)
    }

    fn entrypoint(&self, image: &str) -> Result<Vec<String>, String> {
        let name = short_name(image);
        if let Some(words) = self.configured.get(image).or_else(|| self.configured.get(name)) {
            return Ok(words.clone());
        }
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        known.map(|(_, program)| vec![(*program).to_owned()]).ok_or_else(|| {
            format!(
                "no command is given, and what the image `{image}` would run is not known here: set `command` in the \
                 template, add `{name}` to the entrypoint table of the process runtime, or use the docker runtime"
            )
        })
    }

    /// Returns where the program may be, for a process with this `PATH`.
    pub(crate) fn find(&self, args: Vec<String>, path: &str) -> Result<Executable, String> {
        let name = args.first().filter(|name| !name.is_empty()).ok_or("the command is empty")?;
        let mut places = Vec::new();
        if matches!(name.as_str(), "sh" | "/bin/sh" | "/usr/bin/sh") {
            places.extend(self.better_shell.iter().map(|shell| shell.to_string_lossy().into_owned()));
        }
        if name.contains('/') {
            places.push(name.clone());
        } else {
            places.extend(on_path(name, path));
        }
        if name == "python" {
            places.extend(on_path("python3", path));
        }
        Ok(Executable { places, args })
    }
}

fn on_path(name: &str, path: &str) -> Vec<String> {
    let dirs = path.split(':').map(|dir| if dir.is_empty() { "." } else { dir });
    dirs.map(|dir| format!("{}/{name}", dir.trim_end_matches('/'))).collect()
}

/// Returns the name in `registry:5000/team/name:tag@digest`.
fn short_name(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split(['@', ':']).next().unwrap_or(last)
}

/// Returns a shell to use instead of dash: scripts for containers are usually tested with busybox or bash, and dash
/// refuses some of what both accept.
fn better_shell() -> Option<PathBuf> {
    let real = std::fs::canonicalize("/bin/sh").ok()?;
    if real.file_name()? != "dash" {
        return None;
    }
    let choices = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/busybox", "/usr/bin/busybox"];
    choices.iter().map(Path::new).find(|choice| choice.is_file()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> ProgramTable {
        let configured = BTreeMap::from([("mine".to_owned(), vec!["my".to_owned(), "--flag".to_owned()])]);
        ProgramTable { configured, better_shell: Some("/bin/bash".into()) }
    }

    fn container(image: &str, command: &[&str], args: &[&str]) -> TaskContainer {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        TaskContainer {
            image: image.to_owned(),
            command: texts(command),
            args: texts(args),
            ..TaskContainer::default()
        }
    }

    #[test]
    fn the_entrypoint_comes_from_the_table_and_args_follow_it() {
        assert_eq!(programs().args(&container("host:5000/a/mine:1", &[], &["x"])).unwrap(), ["my", "--flag", "x"]);
        assert_eq!(programs().args(&container("docker/whalesay:latest", &[], &["hi"])).unwrap(), ["cowsay", "hi"]);
        assert_eq!(programs().args(&container("what", &["c"], &["a"])).unwrap(), ["c", "a"]);
        let error = programs().args(&container("team/what:2", &[], &[])).unwrap_err();
        assert!(error.contains("`team/what:2`") && error.contains("set `command`") && error.contains("docker runtime"));
    }

    #[test]
    fn sh_prefers_a_fuller_shell_and_keeps_its_name() {
        let program = programs().find(vec!["sh".to_owned(), "-c".to_owned()], "/a:/b").unwrap();
        assert_eq!(program.places, ["/bin/bash", "/a/sh", "/b/sh"]);
        assert_eq!(program.args[0], "sh");
        assert_eq!(programs().find(vec!["/bin/sh".to_owned()], "").unwrap().places, ["/bin/bash", "/bin/sh"]);
    }

    #[test]
    fn python_falls_back_to_python3() {
        let program = programs().find(vec!["python".to_owned()], "/a:/b/").unwrap();
        assert_eq!(program.places, ["/a/python", "/b/python", "/a/python3", "/b/python3"]);
    }

    #[test]
    fn an_empty_command_is_refused() {
        assert!(programs().find(vec![String::new()], "/a").is_err());
        assert!(programs().find(vec![], "/a").is_err());
    }
}
