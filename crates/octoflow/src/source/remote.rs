//! Requests to the process that holds a data directory: one line of JSON in each direction, over a socket in the
//! directory. `octoflow run` listens; `stop`, `terminate`, `suspend` and `resume` send. The listener decides what a
//! request does.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::AsRawFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use octoflow_control::Supervisor;
use serde_json::{Value, json};

/// File name of the socket in the data directory.
const NAME: &str = "control.sock";

/// Maximum length of a request.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Read timeout of a peer.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of socket paths (108 bytes); longer ones are reached through a short name for their directory.
const MAX_PATH_BYTES: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Stops the whole run, or only waiting nodes that the selector matches; with a reason.
    Stop {
        selector: Option<String>,
        message: Option<String>,
    },
    Terminate,
    Suspend,
    /// Resumes only nodes that the selector matches, or all; with values for outputs they wait for.
    Resume {
        selector: Option<String>,
        supplied: BTreeMap<String, String>,
    },
}

impl Request {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Stop { .. } => "stop",
            Self::Terminate => "terminate",
            Self::Suspend => "suspend",
            Self::Resume { .. } => "resume",
        }
    }
}

/// Request for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub namespace: String,
    /// Set because a workflow and a TaskSet may have the same name.
    pub kind: Option<String>,
    pub run: String,
    pub request: Request,
}

impl Message {
    fn to_json(&self) -> Value {
        let mut message = json!({"command": self.request.verb(), "namespace": self.namespace, "run": self.run});
        if let Some(kind) = &self.kind {
            message["kind"] = json!(kind);
        }
        match &self.request {
            Request::Resume { selector, supplied } => {
                message["selector"] = json!(selector);
                message["supplied"] = json!(supplied);
            }
            Request::Stop { selector, message: why } => {
                message["selector"] = json!(selector);
                message["message"] = json!(why);
            }
            Request::Terminate | Request::Suspend => {}
        }
        message
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let request = match value.get("command")?.as_str()? {
            "stop" => Request::Stop { selector: text("selector"), message: text("message") },
            "terminate" => Request::Terminate,
            "suspend" => Request::Suspend,
            "resume" => {
                let supplied = value.get("supplied").and_then(Value::as_object).into_iter().flatten();
                let supplied =
                    supplied.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
                Request::Resume { selector: text("selector"), supplied }
            }
            _ => return None,
        };
        Some(Self { namespace: text("namespace")?, kind: text("kind"), run: text("run")?, request })
    }
}

/// Sends a request to the listener. `None` if there is none.
pub(crate) fn ask(data_dir: &Path, message: &Message) -> Result<Option<Result<(), String>>> {
    let (path, _held) = reachable(data_dir)?;
    let mut stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error).context("cannot reach the process that runs it"),
    };
    let talk = "the process that runs it does not answer";
    stream.set_read_timeout(Some(READ_TIMEOUT)).context(talk)?;
    writeln!(stream, "{}", message.to_json()).context(talk)?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line).context(talk)?;
    let answer: Value = serde_json::from_str(&line).context(talk)?;
    match (answer.get("ok"), answer.get("error").and_then(Value::as_str)) {
        (_, Some(error)) => Ok(Some(Err(error.to_owned()))),
        (Some(Value::Bool(true)), None) => Ok(Some(Ok(()))),
        _ => bail!("{talk} in a way this version understands"),
    }
}

/// RequestListener, until dropped. Requests are answered one at a time by `answer`, on a thread of its own.
#[derive(Debug)]
pub(crate) struct RequestListener {
    data_dir: PathBuf,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), octoflow_control::Error>>>,
}

impl RequestListener {
    /// Starts listening. The caller holds the data directory's lock, so an existing socket was left by a crash. The
    /// supervisor is notified if the thread ends.
    pub(crate) fn start(
        data_dir: &Path,
        supervisor: &Supervisor,
        mut answer: impl FnMut(Message) -> Result<(), String> + Send + 'static,
    ) -> io::Result<Self> {
        let (path, held) = reachable(data_dir)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let thread = supervisor.spawn("control-socket", move || {
            let _held = held;
            for stream in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    break;
                }
                // An aborted connection affects only its peer.
                let _ = stream.and_then(|stream| serve(&stream, &mut answer));
            }
            Ok(())
        })?;
        Ok(Self { data_dir: data_dir.to_owned(), ending, thread: Some(thread) })
    }
}

impl Drop for RequestListener {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        let Ok((path, _held)) = reachable(&self.data_dir) else { return };
        // Wakes the thread, which waits for a connection.
        if UnixStream::connect(&path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&path);
    }
}

fn serve(mut stream: &UnixStream, answer: &mut impl FnMut(Message) -> Result<(), String>) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    if line.is_empty() {
        return Ok(());
    }
    let message = serde_json::from_str(&line).ok().and_then(|value| Message::from_json(&value));
    let reply = match message.map(&mut *answer) {
        Some(Ok(())) => json!({"ok": true}),
        Some(Err(error)) => json!({"error": error}),
        None => json!({"error": "the request is not understood; is the other octoflow of another version?"}),
    };
    writeln!(stream, "{reply}")
}

/// Returns a short path to the socket, and what must stay open for it to be valid.
fn reachable(data_dir: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let plain = data_dir.join(NAME);
    if plain.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok((plain, None));
    }
    let directory = File::open(data_dir)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", directory.as_raw_fd()));
    Ok((short, Some(directory)))
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::*;

    const STOP: Request = Request::Stop { selector: None, message: None };

    fn message(request: Request) -> Message {
        let kind = Some("TaskSet".to_owned());
        Message { namespace: "default".to_owned(), kind, run: "w".to_owned(), request }
    }

    #[test]
    fn requests_survive_the_wire() {
        let all = [
            STOP,
            Request::Stop { selector: Some("displayName=x".to_owned()), message: Some("why".to_owned()) },
            Request::Terminate,
            Request::Suspend,
            Request::Resume { selector: None, supplied: BTreeMap::new() },
            Request::Resume {
                selector: Some("displayName=x".to_owned()),
                supplied: BTreeMap::from([("ok".to_owned(), "yes".to_owned())]),
            },
        ];
        for request in all {
            let sent = message(request);
            assert_eq!(Message::from_json(&sent.to_json()), Some(sent));
        }
        assert_eq!(Message::from_json(&json!({"command": "dance", "namespace": "a", "run": "b"})), None);
    }

    #[test]
    fn a_request_is_answered_by_the_listener() {
        let dir = tempdir().unwrap();
        let listener = RequestListener::start(dir.path(), &Supervisor::default(), |message| match message.request {
            Request::Stop { .. } => Ok(()),
            other => Err(format!("no {other:?}")),
        })
        .unwrap();
        assert_eq!(ask(dir.path(), &message(STOP)).unwrap(), Some(Ok(())));
        assert_eq!(ask(dir.path(), &message(Request::Suspend)).unwrap(), Some(Err("no Suspend".to_owned())));
        drop(listener);
        assert_eq!(ask(dir.path(), &message(STOP)).unwrap(), None, "nobody listens any more");
    }

    #[test]
    fn a_long_data_directory_is_no_obstacle() {
        let dir = tempdir().unwrap();
        let deep = dir.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        let _listener = RequestListener::start(&deep, &Supervisor::default(), |_| Ok(())).unwrap();
        assert_eq!(ask(&deep, &message(STOP)).unwrap(), Some(Ok(())));
    }

    #[test]
    fn nonsense_gets_an_answer_too() {
        let dir = tempdir().unwrap();
        let _listener = RequestListener::start(dir.path(), &Supervisor::default(), |_| Ok(())).unwrap();
        let mut stream = UnixStream::connect(dir.path().join(NAME)).unwrap();
        writeln!(stream, "hello").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert!(line.contains("not understood"), "{line}");
    }
}
