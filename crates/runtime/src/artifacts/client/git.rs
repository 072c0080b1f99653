//! Artifacts from git repositories, fetched by the machine's `git`. It never prompts, reads no configuration but ours,
//! runs no hook, speaks only known protocols, and connects only to addresses that the guard has checked.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use octoflow_model::{location::Repository, order::Fetched};

use super::{ArtifactClient, IsWanted, ScratchDir, TransferError};
use crate::{
    artifacts::{pack, pack::describe, unpack::ArtifactFile},
    egress::Policy,
    process::{sys, view::View},
};

mod address;

use address::{Address, Scheme};

/// Timeout of a single command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Memory limit of git in KiB. A repository of a few kilobytes can describe more files than any disk holds, and git
/// counts them in memory before it writes the first.
const MEMORY: u64 = 8 << 20;
/// Depth limit of nested submodules: more is a loop.
const MAX_DEPTH: usize = 5;
const MAX_SUBMODULES: usize = 200;

pub(super) fn check_out(
    artifact_client: &ArtifactClient,
    repository: &Repository,
    is_wanted: IsWanted<'_>,
) -> Result<(ArtifactFile, Fetched), TransferError> {
    for word in [Some(&repository.repo), repository.revision.as_ref(), repository.branch.as_ref()]
        .into_iter()
        .flatten()
        .chain(&repository.fetch)
    {
        if word.is_empty() || word.starts_with('-') || word.contains(char::is_control) {
            return Err(TransferError::permanent(format!("`{word}` cannot be passed to git")));
        }
    }
    let permanent = |error: std::io::Error| TransferError::permanent(format!("git: {error}"));
    let scratch = ScratchDir::new(artifact_client.store()).map_err(permanent)?;
    let git = Git::new(&artifact_client.policy, repository, &scratch.0, is_wanted).map_err(permanent)?;
    let work = scratch.0.join("work");
    git.clone_to(&work)?;
    if repository.submodules {
        git.submodules(&work)?;
    }
    let commit = git.read(&work, &["rev-parse", "HEAD"])?.trim().to_owned();
    let mut entry = artifact_client.entry()?;
    let tree = View::new(File::open(&work).map_err(permanent)?.into());
    pack::pack(&tree, Path::new("."), &mut entry).map_err(TransferError::permanent)?;
    let held = entry.into_temp().map_err(|error| TransferError::permanent(describe(error)))?;
    let fetched = Fetched { digest: format!("git:{commit}"), size: held.size };
    Ok((ArtifactFile { file: held.file, size: held.size, own: true, maybe_tree: true }, fetched))
}

/// Creates a file with the given mode, so that others cannot read it even before it is written.
fn write_own(path: &Path, mode: u32, text: &str) -> std::io::Result<()> {
    File::options().write(true).create_new(true).mode(mode).open(path)?.write_all(text.as_bytes())
}

struct Git<'a> {
    policy: &'a Policy,
    repository: &'a Repository,
    scratch: &'a Path,
    is_wanted: IsWanted<'a>,
    memory: u64,
}

impl<'a> Git<'a> {
    fn new(
        policy: &'a Policy,
        repository: &'a Repository,
        scratch: &'a Path,
        is_wanted: IsWanted<'a>,
    ) -> std::io::Result<Self> {
        fs::create_dir(scratch.join("home"))?;
        // Git calls this helper for a user name or a password; the answers come from the environment and touch no disk.
        let ask = scratch.join("ask");
        write_own(
            &ask,
            0o700,
            "#!/bin/sh\ncase \"$1\" in Username*) printf %s \"$OCTOFLOW_GIT_USER\";; *) printf %s \"$OCTOFLOW_GIT_PASSWORD\";; esac\n",
        )?;
        if let Some(key) = &repository.ssh_key {
            let path = scratch.join("key");
            let text = key.reveal();
            write_own(&path, 0o600, &if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") })?;
        }
        Ok(Self { policy, repository, scratch, is_wanted, memory: MEMORY })
    }

    fn clone_to(&self, work: &Path) -> Result<(), TransferError> {
        let repository = self.repository;
        let address = self.address(&repository.repo)?;
        let mut args = vec!["clone".to_owned(), "--quiet".to_owned(), "--no-checkout".to_owned()];
        if let Some(depth) = repository.depth.filter(|depth| *depth > 0) {
            args.push(format!("--depth={depth}"));
        }
        if let Some(branch) = &repository.branch {
            args.push(format!("--branch={branch}"));
        }
        args.push(if repository.single_branch { "--single-branch" } else { "--no-single-branch" }.to_owned());
        args.extend(["--".to_owned(), address.text.clone(), work.to_string_lossy().into_owned()]);
        self.run(self.scratch, Some(&address), &args)?;
        if !repository.fetch.is_empty() {
            let mut args = self.fetch_args();
            args.extend(repository.fetch.iter().cloned());
            self.run(work, Some(&address), &args)?;
        }
        let Some(revision) = &repository.revision else {
            return self.run(work, None, &["checkout".to_owned(), "--quiet".to_owned()]);
        };
        let remote = format!("refs/remotes/origin/{revision}");
        if self.knows(work, &remote) {
            return self.run(work, None, &["checkout", "--quiet", "-B", revision, &remote].map(str::to_owned));
        }
        if !self.knows(work, revision) {
            // A shallow or single-branch clone may lack the revision.
            let mut args = self.fetch_args();
            args.push(revision.clone());
            self.run(work, Some(&address), &args)?;
            return self.run(work, None, &["checkout", "--quiet", "--detach", "FETCH_HEAD"].map(str::to_owned));
        }
        self.run(work, None, &["checkout".to_owned(), "--quiet".to_owned(), "--detach".to_owned(), revision.clone()])
    }

    fn fetch_args(&self) -> Vec<String> {
        let mut args = vec!["fetch".to_owned(), "--quiet".to_owned()];
        if let Some(depth) = self.repository.depth.filter(|depth| *depth > 0) {
            args.push(format!("--depth={depth}"));
        }
        args.push("origin".to_owned());
        args
    }

    fn knows(&self, work: &Path, revision: &str) -> bool {
        let name = format!("{revision}^{{commit}}");
        self.read(work, &["rev-parse", "--quiet", "--verify", "--end-of-options", &name]).is_ok()
    }

    /// Fetches submodules level by level; each address is checked before anything is fetched from it.
    fn submodules(&self, work: &Path) -> Result<(), TransferError> {
        let mut open = vec![(work.to_owned(), 0)];
        let mut count = 0;
        while let Some((dir, depth)) = open.pop() {
            // The repository may contain a link in the place of a module's directory.
            let listed = dir.join(".gitmodules");
            if !fs::symlink_metadata(&listed).is_ok_and(|about| about.is_file()) {
                continue;
            }
            if depth == MAX_DEPTH {
                return Err(TransferError::permanent(format!("its submodules are nested more than {MAX_DEPTH} deep")));
            }
            self.run(&dir, None, &["submodule", "--quiet", "init"].map(str::to_owned))?;
            let paths =
                self.read(&dir, &["config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"])?;
            for line in paths.lines() {
                count += 1;
                if count > MAX_SUBMODULES {
                    return Err(TransferError::permanent(format!("it has more than {MAX_SUBMODULES} submodules")));
                }
                let Some((key, path)) = line.split_once(' ') else { continue };
                let name = key.strip_prefix("submodule.").and_then(|key| key.strip_suffix(".path")).unwrap_or_default();
                // A disabled submodule has no address.
                let Ok(url) = self.read(&dir, &["config", "--get", &format!("submodule.{name}.url")]) else { continue };
                let address = self.address(url.trim())?;
                let args = ["submodule", "--quiet", "update", "--", path].map(str::to_owned);
                self.run(&dir, Some(&address), &args)?;
                open.push((dir.join(path), depth + 1));
            }
        }
        Ok(())
    }

    fn address(&self, url: &str) -> Result<Address, TransferError> {
        Address::parse(url, self.policy).map_err(TransferError::permanent)
    }

    fn read(&self, dir: &Path, args: &[&str]) -> Result<String, TransferError> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.call(dir, None, &args)
    }

    fn run(&self, dir: &Path, address: Option<&Address>, args: &[String]) -> Result<(), TransferError> {
        self.call(dir, address, args).map(drop)
    }

    fn call(&self, dir: &Path, address: Option<&Address>, args: &[String]) -> Result<String, TransferError> {
        let permanent = |error: std::io::Error| TransferError::permanent(format!("git could not be run: {error}"));
        let said = |name: &str| {
            File::options().read(true).write(true).create(true).truncate(true).open(self.scratch.join(name))
        };
        let (mut out, mut err) = (said("out").map_err(permanent)?, said("err").map_err(permanent)?);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask 022 && ulimit -v {} && exec git \"$@\"", self.memory), "git"]);
        self.set_environment(&mut command, address);
        command.args(args).current_dir(dir).process_group(0).stdin(Stdio::null());
        command.stdout(out.try_clone().map_err(permanent)?).stderr(err.try_clone().map_err(permanent)?);
        let mut child = command.spawn().map_err(permanent)?;
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(permanent)? {
                break status;
            }
            if !(self.is_wanted)() || began.elapsed() > COMMAND_TIMEOUT {
                // Git leads a process group of its own, so its helpers end with it.
                sys::signal_group(child.id() as i32, libc::SIGKILL);
                let _ = child.wait();
                return Err(TransferError::permanent(format!("git {} took too long or was cancelled", args[0])));
            }
            thread::sleep(POLL_INTERVAL);
        };
        if status.success() {
            return text(&mut out, 1 << 20).map_err(permanent);
        }
        if status.code() == Some(127) {
            return Err(TransferError::permanent(
                "`git` is not installed on this machine, and git artifacts need it".to_owned(),
            ));
        }
        let why = self.without_secrets(text(&mut err, 2000).map_err(permanent)?.trim());
        let message = format!("git {} failed: {why}", args[0]);
        Err(if is_temporary(&why) { TransferError::retryable(message) } else { TransferError::permanent(message) })
    }

    /// Sets up the command so that nothing of the user's own environment and configuration applies.
    fn set_environment(&self, command: &mut Command, address: Option<&Address>) {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        command.env_clear().env("PATH", path).env("HOME", self.scratch.join("home")).env("LC_ALL", "C");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_ASKPASS", self.scratch.join("ask")).env("GIT_LFS_SKIP_SMUDGE", "1");
        // Each thread would reserve address space that counts towards the memory limit.
        command.env("MALLOC_ARENA_MAX", "2");
        let files = if self.policy.is_local() { ":file" } else { "" };
        command.env("GIT_ALLOW_PROTOCOL", format!("https:http:ssh{files}"));
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "submodule.recurse=false",
            "gc.auto=0",
            "pack.threads=4",
            "core.packedGitLimit=1g",
            "http.followRedirects=false",
            "http.lowSpeedLimit=1",
            "http.lowSpeedTime=60",
            "credential.helper=",
        ] {
            command.arg("-c").arg(setting);
        }
        let Some(address) = address else { return };
        match address.scheme {
            Scheme::Http => {
                for pin in &address.pins {
                    command.arg("-c").arg(format!("http.curloptResolve={pin}"));
                }
                if let Some(user) = &self.repository.user {
                    command.env("OCTOFLOW_GIT_USER", user.reveal());
                }
                if let Some(password) = &self.repository.password {
                    command.env("OCTOFLOW_GIT_PASSWORD", password.reveal());
                }
            }
            Scheme::Ssh => {
                command.env("GIT_SSH_COMMAND", self.ssh(address)).env("GIT_SSH_VARIANT", "ssh");
            }
            Scheme::File => {}
        }
    }

    fn ssh(&self, address: &Address) -> String {
        let quoted = |path: PathBuf| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
        let mut ssh = "ssh -F /dev/null -o BatchMode=yes -o ConnectTimeout=30 -o IdentitiesOnly=yes -a -x".to_owned();
        // The name was resolved and checked; ssh must not resolve it again.
        ssh.push_str(&format!(" -o HostName={} -o HostKeyAlias={}", address.pins[0], address.host));
        if self.repository.ssh_key.is_some() {
            ssh.push_str(&format!(" -i {}", quoted(self.scratch.join("key"))));
        }
        if self.repository.ignore_host_key {
            ssh.push_str(" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null");
        } else {
            // The known hosts are the one setting taken from the owner of this machine.
            let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
            ssh.push_str(" -o StrictHostKeyChecking=yes");
            ssh.push_str(&format!(" -o UserKnownHostsFile={}", quoted(home.join(".ssh/known_hosts"))));
        }
        ssh
    }

    fn without_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in [&self.repository.user, &self.repository.password].into_iter().flatten() {
            if !secret.reveal().is_empty() {
                text = text.replace(secret.reveal(), "***");
            }
        }
        address::without_user(&text)
    }
}

/// Returns the end of a command's output.
fn text(file: &mut File, most: u64) -> std::io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether git's message is about a network problem that may be temporary.
fn is_temporary(why: &str) -> bool {
    const WORDS: &[&str] = &[
        "timed out",
        "Connection reset",
        "early EOF",
        "hung up",
        "Could not resolve host",
        "Connection refused",
        "error: 429",
        "error: 500",
        "error: 502",
        "error: 503",
        "error: 504",
        "HTTP 429",
        "HTTP 5",
    ];
    WORDS.iter().any(|word| why.contains(word))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use octoflow_model::task::EnvValue;

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn ssh_goes_to_the_address_that_was_checked_and_believes_only_known_hosts() {
        let scratch = tempfile::tempdir().unwrap();
        let policy = Policy::local();
        let mut repository =
            Repository { ssh_key: Some(EnvValue::Secret("-----BEGIN KEY-----".to_owned())), ..Repository::default() };
        let address = Address::parse("git@localhost:a/b.git", &policy).unwrap();
        let git = Git::new(&policy, &repository, scratch.path(), &|| true).unwrap();
        let ssh = git.ssh(&address);
        assert!(ssh.contains("-o HostKeyAlias=localhost") && ssh.contains("-o StrictHostKeyChecking=yes"), "{ssh}");
        assert!(ssh.contains("-o HostName=127.0.0.1") || ssh.contains("-o HostName=::1"), "{ssh}");
        assert!(ssh.contains("-F /dev/null") && ssh.contains("BatchMode=yes") && !ssh.contains("BEGIN"), "{ssh}");
        let key = scratch.path().join("key");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(key).unwrap().ends_with("-----\n"), "ssh wants a last newline");
        repository.ignore_host_key = true;
        let git = Git {
            policy: &policy,
            repository: &repository,
            scratch: scratch.path(),
            is_wanted: &|| true,
            memory: MEMORY,
        };
        assert!(git.ssh(&address).contains("StrictHostKeyChecking=no"));
    }

    /// Runs a command in a directory with `input` and returns its output.
    fn say(dir: &Path, words: &[&str], input: &str) -> String {
        let mut child = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(words)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn a_repository_of_more_files_than_a_disk_holds_is_given_up() {
        let origin = tempfile::tempdir().unwrap();
        let git = |words: &[&str], input: &str| say(origin.path(), words, input);
        git(&["init", "--quiet", "--initial-branch=main", "."], "");
        let blob = git(&["hash-object", "-w", "--stdin"], "x");
        let mut tree = git(&["mktree"], &(0..10).map(|at| format!("100644 blob {blob}\tf{at}\n")).collect::<String>());
        for _ in 0..8 {
            tree = git(&["mktree"], &(0..10).map(|at| format!("040000 tree {tree}\td{at}\n")).collect::<String>());
        }
        let commit = git(&["commit-tree", &tree], "a bomb");
        git(&["update-ref", "refs/heads/main", &commit], "");
        let scratch = tempfile::tempdir().unwrap();
        let policy = Policy::local();
        let repository = Repository { repo: format!("file://{}", origin.path().display()), ..Repository::default() };
        let mut git = Git::new(&policy, &repository, scratch.path(), &|| true).unwrap();
        git.memory = 160 << 10;
        let error = super::super::Error::from(git.clone_to(&scratch.path().join("work")).unwrap_err()).to_string();
        assert!(error.contains("git checkout failed") && error.to_lowercase().contains("memory"), "{error}");
    }
}
