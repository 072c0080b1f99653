//! The audit log: every change and every denied request, as JSON lines in the data directory. It never holds a token, a
//! body or a query. Files are rotated at a maximum size, and the oldest are deleted.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, Sender},
    thread::JoinHandle,
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    http::{Method, StatusCode},
};
use http_body_util::BodyExt;
use octoflow_control::Supervisor;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{answer::Answer, call::Params};

/// File size at which the log is rotated.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Number of rotated files to keep.
const ROTATED_FILES: usize = 8;
const FOLDER: &str = "audit";
/// Maximum bytes buffered while the file cannot be written; more are dropped, and that is logged.
const MAX_BUFFERED_BYTES: usize = 4 << 20;
/// Entries within this time are written together: waking a thread for each costs more than writing it.
const BATCH_WINDOW: Duration = Duration::from_millis(2);

pub(crate) struct Audit {
    folder: PathBuf,
    entries: Sender<Message>,
    writer: Option<JoinHandle<Result<(), octoflow_control::Error>>>,
}

enum Message {
    Entry(Box<AuditEntry>),
    /// Answered once everything before it is in the file.
    Flush(Sender<()>),
}

pub(crate) struct AuditEntry {
    pub request: String,
    pub peer: String,
    /// Name and id of the token.
    pub who: Option<(String, String)>,
    pub method: String,
    pub path: String,
    pub status: u16,
    /// Object that the path names.
    pub object: Option<String>,
    /// Response body, from which only the name of the created object is taken.
    pub made: Option<Bytes>,
    pub dry_run: bool,
}

/// Query of the audit log, newest first.
#[derive(Default)]
pub(crate) struct AuditQuery {
    pub limit: usize,
    /// Only entries before this sequence number.
    pub before: Option<u64>,
    pub who: Option<String>,
    /// Only paths with this prefix.
    pub path: Option<String>,
}

impl Audit {
    pub(crate) fn open(data_dir: &Path, supervisor: &Supervisor) -> io::Result<Self> {
        let folder = data_dir.join(FOLDER);
        fs::create_dir_all(&folder)?;
        let next = last_number(&folder)?.map_or(1, |last| last + 1);
        let log = AuditWriter { file: open(&folder)?, folder: folder.clone(), next };
        let (entries, inbox) = mpsc::channel();
        let writer = supervisor.spawn("audit", move || {
            log.work(&inbox);
            Ok(())
        })?;
        Ok(Self { folder, entries, writer: Some(writer) })
    }

    pub(crate) fn write(&self, entry: AuditEntry) {
        // The writer ends only after the last sender.
        let _ = self.entries.send(Message::Entry(Box::new(entry)));
    }

    /// Returns the newest matching entries, and the sequence number to continue before if there may be more. Reads
    /// files: must not run on threads that serve requests.
    pub(crate) fn find(&self, query: &AuditQuery) -> io::Result<(Vec<Value>, Option<u64>)> {
        let (done, flushed) = mpsc::channel();
        let _ = self.entries.send(Message::Flush(done));
        let _ = flushed.recv();
        let mut found = Vec::new();
        for at in 0..=ROTATED_FILES {
            let lines = match File::open(file(&self.folder, at)) {
                Ok(file) => BufReader::new(file).lines().collect::<io::Result<Vec<_>>>()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
            };
            for line in lines.iter().rev() {
                // A crash may have left a partial line.
                let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
                if !query.matches(&entry) {
                    continue;
                }
                if found.len() == query.limit {
                    let next = found.last().and_then(|last: &Value| last["seq"].as_u64());
                    return Ok((found, next));
                }
                found.push(entry);
            }
        }
        Ok((found, None))
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let (none, _) = mpsc::channel();
        self.entries = none;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl AuditQuery {
    fn matches(&self, entry: &Value) -> bool {
        let before = self.before.is_none_or(|before| entry["seq"].as_u64().is_some_and(|seq| seq < before));
        let who = self.who.as_ref().is_none_or(|who| entry["who"] == who.as_str());
        let path = self.path.as_ref();
        before && who && path.is_none_or(|start| entry["path"].as_str().is_some_and(|path| path.starts_with(start)))
    }
}

/// Entry as it is serialized.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SerializedEntry {
    dry_run: bool,
    method: String,
    object: Option<String>,
    path: String,
    peer: String,
    request: String,
    seq: u64,
    status: u16,
    time: String,
    token: Option<String>,
    who: Option<String>,
}

/// State of the writer thread.
struct AuditWriter {
    folder: PathBuf,
    file: File,
    next: u64,
}

impl AuditWriter {
    fn work(mut self, inbox: &Receiver<Message>) {
        let mut lines = Vec::new();
        while let Ok(first) = inbox.recv() {
            std::thread::sleep(BATCH_WINDOW);
            let mut waiting = Vec::new();
            for message in std::iter::once(first).chain(inbox.try_iter().take(1024)) {
                match message {
                    Message::Entry(entry) => self.line(*entry, &mut lines),
                    Message::Flush(done) => waiting.push(done),
                }
            }
            match self.append(&lines) {
                Ok(()) => lines.clear(),
                Err(error) if lines.len() < MAX_BUFFERED_BYTES => {
                    tracing::error!(%error, "the audit log cannot be written; its lines wait in memory");
                }
                Err(error) => {
                    tracing::error!(%error, bytes = lines.len(), "the audit log cannot be written; lines are lost");
                    lines.clear();
                }
            }
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    /// Appends all lines or none: a partial line would corrupt the next.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        self.file.write_all(lines).inspect_err(|_| {
            // Truncating needs no space; if it fails all the same, readers skip the broken line.
            let _ = self.file.set_len(before);
        })?;
        self.rotate()
    }

    fn line(&mut self, entry: AuditEntry, to: &mut Vec<u8>) {
        let (who, token) = entry.who.unzip();
        let line = SerializedEntry {
            dry_run: entry.dry_run,
            method: entry.method,
            object: entry.made.as_deref().and_then(name_of).or(entry.object),
            path: entry.path,
            peer: entry.peer,
            request: entry.request,
            seq: self.next,
            status: entry.status,
            time: octoflow_control::now().timestamp().to_string(),
            token,
            who,
        };
        self.next += 1;
        serde_json::to_writer(&mut *to, &line).expect("an entry can be written down");
        to.push(b'\n');
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < MAX_FILE_BYTES {
            return Ok(());
        }
        for at in (0..ROTATED_FILES).rev() {
            match fs::rename(file(&self.folder, at), file(&self.folder, at + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = open(&self.folder)?;
        Ok(())
    }
}

/// Returns whether a request is audited: every possible change and every denial. Rate limited requests are not, or they
/// could push everything else out.
pub(crate) fn is_audited(method: &Method, status: StatusCode) -> bool {
    let denied = status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN;
    denied || *method != Method::GET && *method != Method::HEAD && status != StatusCode::TOO_MANY_REQUESTS
}

/// Describes the object of a path by its named parts.
pub(crate) fn object(params: &Params) -> Option<String> {
    let parts: Vec<&str> = params.0.iter().map(|(_, value)| value.as_str()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Reads the body of a complete response, and returns both.
pub(crate) async fn peek(answer: Answer) -> (Answer, Option<Bytes>) {
    let whole = HttpBody::size_hint(answer.body()).exact().is_some();
    if !whole {
        return (answer, None);
    }
    let (head, body) = answer.into_parts();
    match body.collect().await {
        Ok(body) => {
            let bytes = body.to_bytes();
            (Answer::from_parts(head, Body::from(bytes.clone())), Some(bytes))
        }
        Err(_) => (Answer::from_parts(head, Body::empty()), None),
    }
}

/// Extracts the name and namespace of the object in a response.
fn name_of(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        kind: String,
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        namespace: String,
        name: String,
    }
    let named: Named = serde_json::from_slice(bytes).ok()?;
    let parts = [named.kind, named.metadata.namespace, named.metadata.name];
    Some(parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("/"))
}

fn file(folder: &Path, at: usize) -> PathBuf {
    folder.join(if at == 0 { "audit.jsonl".to_owned() } else { format!("audit.{at}.jsonl") })
}

fn open(folder: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(file(folder, 0))
}

fn last_number(folder: &Path) -> io::Result<Option<u64>> {
    for at in 0..=ROTATED_FILES {
        let text = match fs::read(file(folder, at)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let lines = text.split(|byte| *byte == b'\n').rev();
        let last = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()?["seq"].as_u64()).next();
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(path: &str, made: Option<&str>) -> AuditEntry {
        AuditEntry {
            request: "r".to_owned(),
            peer: "127.0.0.1".to_owned(),
            who: Some(("ann".to_owned(), "id".to_owned())),
            method: "POST".to_owned(),
            path: path.to_owned(),
            status: 201,
            object: Some("default".to_owned()),
            made: made.map(|text| Bytes::copy_from_slice(text.as_bytes())),
            dry_run: false,
        }
    }

    #[test]
    fn entries_are_numbered_across_restarts_and_found_newest_first_in_pages() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), &Supervisor::default()).unwrap();
        audit.write(entry("/a", Some(r#"{"kind":"Workflow","metadata":{"namespace":"n","name":"w"},"spec":{}}"#)));
        audit.write(entry("/b", None));
        drop(audit);
        let audit = Audit::open(dir.path(), &Supervisor::default()).unwrap();
        audit.write(entry("/c", None));
        let (first, next) = audit.find(&AuditQuery { limit: 2, ..AuditQuery::default() }).unwrap();
        assert_eq!(first.iter().map(|entry| entry["path"].as_str().unwrap()).collect::<Vec<_>>(), ["/c", "/b"]);
        let (rest, end) = audit.find(&AuditQuery { limit: 2, before: next, ..AuditQuery::default() }).unwrap();
        assert_eq!((rest.len(), end), (1, None));
        assert_eq!((&rest[0]["seq"], &rest[0]["object"]), (&json!(1), &json!("Workflow/n/w")));
        let nobody = AuditQuery { limit: 9, who: Some("bob".to_owned()), ..AuditQuery::default() };
        assert!(audit.find(&nobody).unwrap().0.is_empty());
    }

    #[test]
    fn a_long_file_is_put_aside_and_still_found() {
        let dir = tempfile::tempdir().unwrap();
        let audit = Audit::open(dir.path(), &Supervisor::default()).unwrap();
        let long = "x".repeat(1024 * 1024);
        for _ in 0..20 {
            audit.write(entry(&format!("/{long}"), None));
        }
        audit.write(entry("/last", None));
        let (found, _) = audit.find(&AuditQuery { limit: 100, ..AuditQuery::default() }).unwrap();
        assert_eq!(found.len(), 21);
        assert!(dir.path().join("audit/audit.1.jsonl").exists());
        assert!(fs::metadata(dir.path().join("audit/audit.jsonl")).unwrap().len() < MAX_FILE_BYTES);
    }
}
