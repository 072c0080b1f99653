//! The real server as a child process, and the processes that belong to its data directory.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long what was told to end may take to do so.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it on a free port and waits until it answers.
    pub(crate) fn start(data_dir: &Path, more: &[&str], path: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(["server", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(more);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("the server starts");
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut talk = BufReader::new(server.child.stderr.take().expect("its talk is piped"));
        let mut heard = String::new();
        loop {
            let mut line = String::new();
            if talk.read_line(&mut line).unwrap_or(0) == 0 {
                panic!("the server ended before it answered:\n{heard}");
            }
            if let Some((_, address)) = line.trim().rsplit_once("listens on http://") {
                server.address = address.parse().expect("the server names its address");
                // Somebody must go on listening, or it would stumble over its own words.
                std::thread::spawn(move || talk.lines().map_while(Result::ok).for_each(drop));
                return server;
            }
            heard.push_str(&line);
        }
    }

    /// From one moment to the next, as a power cut would.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Politely; it must end well, and in time.
    pub(crate) fn stop(mut self) {
        let number = i32::try_from(self.child.id()).expect("numbers of processes are small");
        let told = Command::new("kill").arg("-TERM").arg(number.to_string()).status().expect("kill can be started");
        assert!(told.success(), "the server was gone already");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return assert!(status.success(), "the server ended with {status}");
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    /// A test that fails leaves no server behind; one that was stopped is gone already.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes that still have something to do with the data directory. They get a moment to go.
pub(crate) fn left_behind(data_dir: &Path) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = naming(&data_dir.display().to_string());
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn naming(needle: &str) -> Vec<String> {
    let numbers = fs::read_dir("/proc")
        .expect("this is Linux")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok()?.parse::<u32>().ok());
    let told = numbers.filter(|number| *number != std::process::id()).filter_map(|number| {
        let read = |file: &str| {
            fs::read(format!("/proc/{number}/{file}")).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        };
        let text = format!("{} {}", read("cmdline").ok()?, read("environ").unwrap_or_default());
        text.contains(needle).then(|| format!("{number}: {}", text.chars().take(200).collect::<String>()))
    });
    told.collect()
}
