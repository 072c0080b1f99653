//! The real server as a process of its own, and what the system says about it. Its yardstick is started the same way.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    measure::{Outcome, Tools},
    role::Role,
};

pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts it on a free port and waits until it answers.
    pub(super) fn start(tools: &Tools, data_dir: &Path, more: &[&str]) -> Outcome<Self> {
        let mut command = Command::new(tools.octoflow());
        command.args(["server", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(more);
        // By the environment, because binaries of before know neither the flag nor that they need it.
        command.env("OCTOFLOW_ALLOW_DEFAULT_PASSWORD", "1");
        Self::listening(command)
    }

    /// The yardstick of it, which only says hello.
    pub(super) fn hello(tools: &Tools) -> Outcome<Self> {
        Self::listening(tools.part(&Role::Hello))
    }

    fn listening(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut talk = BufReader::new(child.stderr.take().ok_or("the talk of the server is piped")?);
        let mut heard = String::new();
        loop {
            let mut line = String::new();
            if talk.read_line(&mut line)? == 0 {
                return Err(format!("the server ended before it answered: {heard}").into());
            }
            if let Some((_, address)) = line.trim().rsplit_once("listens on http://") {
                let address = address.parse()?;
                std::thread::spawn(move || talk.lines().map_while(Result::ok).for_each(drop));
                return Ok(Self { child, address });
            }
            heard.push_str(&line);
        }
    }

    /// Memory in use now, and the most that ever was.
    pub(super) fn memory_kib(&self) -> Outcome<(u64, u64)> {
        memory_kib(self.child.id())
    }

    /// Processor time that it has used so far, without its tasks.
    pub(super) fn cpu(&self) -> Outcome<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program stands in parentheses and may hold blanks; the times are the 12th and 13th behind it.
        let (_, rest) = text.rsplit_once(')').ok_or("the system tells no times")?;
        let ticks: u64 = rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        // Linux tells them in hundredths of a second, whatever its clock does.
        Ok(Duration::from_millis(10 * ticks))
    }

    /// How often its threads were put on a processor so far.
    pub(super) fn switches(&self) -> Outcome<u64> {
        let mut all = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end at this moment.
            let Ok(text) = fs::read_to_string(task?.path().join("status")) else { continue };
            all += ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]
                .into_iter()
                .filter_map(|name| number(&text, name))
                .sum::<u64>();
        }
        Ok(all)
    }

    /// The most memory that each process of the data directory has used, the server first.
    pub(super) fn family_kib(&self, data_dir: &Path) -> Outcome<u64> {
        let needle = data_dir.display().to_string();
        let mut all = 0;
        for process in fs::read_dir("/proc")?.flatten() {
            let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(&needle) {
                all += memory_kib(id).map_or(0, |(now, _)| now);
            }
        }
        Ok(all)
    }

    pub(super) fn stop(mut self) -> Outcome<()> {
        Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
                return Err("the server does not end".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only after a failure: one that was stopped is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_kib(process: u32) -> Outcome<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let of = |name: &str| number(&text, name).ok_or("the system tells no memory");
    Ok((of("VmRSS:")?, of("VmHWM:")?))
}

fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
