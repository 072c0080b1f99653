//! The real server as a child process. It never outlives the test that started it: dropping it ends it.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
};

use super::{
    processes::signal,
    said::Said,
    waiting::{PATIENCE, eventually, within},
};

/// A free port.
pub(crate) const ANYWHERE: &str = "127.0.0.1:0";

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Reads the server's output, or the pipe would fill up.
    talk: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        Self::launch(&mut Self::command(ANYWHERE, data_dir, more))
    }

    /// Lets steps mount the parent of the data directory, where tests check their results.
    pub(crate) fn command(listen: &str, data_dir: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(["server", "--listen", listen, "--data-dir"]).arg(data_dir).args(more);
        // These tests use TCP and are not about the first token.
        command.env("OCTOFLOW_ALLOW_DEFAULT_PASSWORD", "1");
        command.env("OCTOFLOW_ALLOW_HOST_PATH", data_dir.parent().unwrap_or(data_dir));
        command
    }

    /// Starts it as it is told to and waits until it answers.
    pub(crate) fn launch(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its talk is piped")).lines().map_while(Result::ok);
        let mut heard = String::new();
        let address = lines.by_ref().find_map(|line| {
            heard.push_str(&line);
            heard.push('\n');
            let (_, url) = line.split_once("listens on ")?;
            url.trim().rsplit("://").next().map(|address| address.parse().expect("the server names its address"))
        });
        let Some(address) = address else { panic!("the server ended before it answered: {:?}\n{heard}", child.wait()) };
        let talk = thread::spawn(move || lines.fold(heard, |heard, line| heard + &line + "\n"));
        Self { child, address, talk: Some(talk) }
    }

    /// How much memory it holds now, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says how much");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("it is a number") * 1024
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Kills it, like a power cut.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Stops it gracefully; it must end well, and in time.
    pub(crate) fn stop(&mut self) -> Said {
        self.signal("TERM");
        let said = self.ended();
        assert_eq!(said.code, 0, "the server ended badly\n{said}");
        said
    }

    /// Waits until it has ended by itself, and returns its output.
    pub(crate) fn ended(&mut self) -> Said {
        eventually("the server ends", || self.child.try_wait().expect("it can be waited for").is_some());
        let status = self.child.wait().expect("it can be waited for");
        let talk = self.talk.take().expect("it ends once").join();
        Said { code: status.code().unwrap_or(-1), out: String::new(), err: talk.expect("listening cannot fail") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
            within(PATIENCE, || !matches!(self.child.try_wait(), Ok(None)));
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
