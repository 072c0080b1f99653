//! Many clients in one thread: each has sent one request with a streamed answer, and reads what is available on demand.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::wire::{http::TOKEN, waiting::PATIENCE};

/// Lets this process open as many files as it may. Most machines let a program open 1024 until it asks for more.
fn raise_open_files() {
    static ASKED: Once = Once::new();
    ASKED.call_once(|| {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    });
}

/// Client of a streamed answer.
pub(crate) struct Listener {
    stream: TcpStream,
    path: String,
    heard: Vec<u8>,
    /// True if the answer is complete.
    pub(crate) over: bool,
}

impl Listener {
    pub(crate) fn new(to: SocketAddr, path: &str) -> Self {
        raise_open_files();
        let mut stream = TcpStream::connect(to).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {TOKEN}\r\n\r\n").unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, path: path.to_owned(), heard: Vec::new(), over: false }
    }

    /// Reads what is available. A chunked answer ends with an empty chunk.
    pub(crate) fn listen(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("{} broke off: {}", self.path, self.text()),
                Ok(count) => self.heard.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{}: {error}: {}", self.path, self.text()),
            }
        }
        self.over = self.heard.ends_with(b"\r\n0\r\n\r\n");
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    pub(crate) fn count(&self, words: &str) -> usize {
        self.text().matches(words).count()
    }

    pub(crate) fn heard(&self, words: &str) -> bool {
        self.text().contains(words)
    }
}

/// Reads until all of them are satisfied.
pub(crate) fn all(crowd: &mut [Listener], what: &str, satisfied: impl Fn(&Listener) -> bool) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        crowd.iter_mut().filter(|one| !one.over).for_each(Listener::listen);
        let left = crowd.iter().filter(|one| !satisfied(one)).count();
        if left == 0 {
            return;
        }
        let first = crowd.iter().find(|one| !satisfied(one)).map(|one| format!("{}: {}", one.path, one.text()));
        assert!(Instant::now() < give_up, "{left} of {} never got {what}, such as {first:?}", crowd.len());
        thread::sleep(Duration::from_millis(20));
    }
}
