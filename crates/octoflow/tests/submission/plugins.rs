//! An HTTP service with plugins of this test: each path is one, and what it is asked is kept.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::Value;

/// What a plugin was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Names in small letters.
    pub(crate) head: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// What a plugin answers.
pub(crate) enum Reply {
    Json(Value),
    /// With another status.
    Status(u16, Value),
    Text(String),
    /// Only after this time.
    Late(Duration, Value),
    /// With another place to go to.
    Elsewhere(String),
    /// Never: the connection is closed at once.
    Nothing,
}

type Plugin = Box<dyn Fn(&Asked) -> Reply + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Plugins {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    plugins: Mutex<BTreeMap<String, Arc<Plugin>>>,
    asked: Mutex<Vec<(String, Asked)>>,
}

impl Plugins {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plugins = Self { address: listener.local_addr().unwrap(), shared: Arc::default() };
        let shared = plugins.shared.clone();
        // Ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        plugins
    }

    /// Adds or replaces a plugin, and returns its address.
    pub(crate) fn on(&self, name: &str, plugin: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> String {
        self.shared.plugins.lock().unwrap().insert(format!("/{name}"), Arc::new(Box::new(plugin)));
        format!("http://{}/{name}", self.address)
    }

    /// Adds a plugin that always answers the same.
    pub(crate) fn says(&self, name: &str, answer: Value) -> String {
        self.on(name, move |_| Reply::Json(answer.clone()))
    }

    /// Everything that a plugin was asked so far, in order.
    pub(crate) fn asked(&self, name: &str) -> Vec<Asked> {
        let all = self.shared.asked.lock().unwrap();
        all.iter().filter(|(path, _)| *path == format!("/{name}")).map(|(_, asked)| asked.clone()).collect()
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut from = BufReader::new(stream.try_clone()?);
        loop {
            let mut first = String::new();
            if from.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut head = BTreeMap::new();
            loop {
                let mut line = String::new();
                from.read_line(&mut line)?;
                let Some((name, value)) = line.trim_end().split_once(':') else { break };
                head.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            let length = head.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            from.read_exact(&mut body)?;
            let asked = Asked { head, body: serde_json::from_slice(&body).unwrap_or_default() };
            self.asked.lock().unwrap().push((path.clone(), asked.clone()));
            let plugin = self.plugins.lock().unwrap().get(&path).cloned();
            let reply = plugin.map_or(Reply::Status(404, Value::Null), |plugin| plugin(&asked));
            let (status, kind, more, text) = match reply {
                Reply::Json(value) => (200, "application/json", String::new(), value.to_string()),
                Reply::Status(status, value) => (status, "application/json", String::new(), value.to_string()),
                Reply::Text(text) => (200, "text/plain", String::new(), text),
                Reply::Late(pause, value) => {
                    thread::sleep(pause);
                    (200, "application/json", String::new(), value.to_string())
                }
                Reply::Elsewhere(to) => (302, "text/plain", format!("location: {to}\r\n"), String::new()),
                Reply::Nothing => return Ok(()),
            };
            let length = text.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}content-length: {length}\r\n\r\n{text}"
            )?;
        }
    }
}
