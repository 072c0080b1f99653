//! A web server of a test: it notes every request and answers as it is told.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// A request that came in.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// Status and body by the number of the request, from 0.
type Answers = Box<dyn Fn(usize) -> (u16, String) + Send>;

struct Shared {
    heard: Mutex<Vec<Heard>>,
    more: Condvar,
    answers: Mutex<Answers>,
    location: Option<String>,
    hangs: bool,
    /// Requests that are not answered yet, by their job.
    open: Mutex<BTreeMap<String, usize>>,
    overlapped: AtomicBool,
    count: AtomicUsize,
}

pub(crate) struct Listener {
    shared: Arc<Shared>,
    port: u16,
}

impl Listener {
    pub(crate) fn answering(answers: impl Fn(usize) -> (u16, String) + Send + 'static) -> Self {
        Self::start(Box::new(answers), None, false)
    }

    /// Takes requests and never answers.
    pub(crate) fn hanging() -> Self {
        Self::start(Box::new(|_| (200, String::new())), None, true)
    }

    pub(crate) fn redirecting(to: &str) -> Self {
        Self::start(Box::new(|_| (307, "OK".to_owned())), Some(to.to_owned()), false)
    }

    fn start(answers: Answers, location: Option<String>, hangs: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            heard: Mutex::default(),
            more: Condvar::new(),
            answers: Mutex::new(answers),
            location,
            hangs,
            open: Mutex::default(),
            overlapped: AtomicBool::new(false),
            count: AtomicUsize::new(0),
        });
        let own = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                thread::spawn(move || serve(&own, &stream));
            }
        });
        Self { shared, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// From now on it answers like this.
    pub(crate) fn answer(&self, answers: impl Fn(usize) -> (u16, String) + Send + 'static) {
        *self.shared.answers.lock().unwrap() = Box::new(answers);
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.shared.heard.lock().unwrap().clone()
    }

    /// Waits until so many requests have come in, and returns all.
    pub(crate) fn wait(&self, count: usize) -> Vec<Heard> {
        let heard = self.shared.heard.lock().unwrap();
        let patience = Duration::from_secs(30);
        let (heard, late) = self.shared.more.wait_timeout_while(heard, patience, |heard| heard.len() < count).unwrap();
        assert!(!late.timed_out(), "only {} of {count} requests came: {heard:?}", heard.len());
        heard.clone()
    }

    /// Whether a request about a job came while another one about it was not answered.
    pub(crate) fn overlapped(&self) -> bool {
        self.shared.overlapped.load(Ordering::Relaxed)
    }
}

fn serve(shared: &Shared, stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Some(heard) = read(&mut reader) {
        let job = heard.body["id"].as_str().unwrap_or_default().to_owned();
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = shared.open.lock().unwrap();
            let count = open.entry(job.clone()).or_default();
            *count += 1;
            shared.overlapped.fetch_or(*count > 1, Ordering::Relaxed);
        }
        shared.heard.lock().unwrap().push(heard);
        shared.more.notify_all();
        if shared.hangs {
            thread::sleep(Duration::from_secs(600));
        }
        let (status, body) = (shared.answers.lock().unwrap())(number);
        let location = shared.location.as_ref().map_or(String::new(), |to| format!("Location: {to}\r\n"));
        *shared.open.lock().unwrap().entry(job).or_default() -= 1;
        let answer = format!("HTTP/1.1 {status} x\r\n{location}Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Heard> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Heard { headers, body, at: Instant::now() })
}
