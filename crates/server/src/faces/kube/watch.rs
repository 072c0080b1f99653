//! Watches: events as JSON lines until the client disconnects, its timeout passes, or the server shuts down. One piece
//! is prepared when the client has taken the previous one, so the memory of a slow client is bounded; it gets fewer
//! events, each with the newest state.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::{body::Body, http::StatusCode};
use futures_util::stream;
use octoflow_control::registry::{Event, Fault as RegistryFault, Kind, Watch};
use octoflow_model::Revision;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    accept::{self, Form},
    form, options,
    table::{self, Include},
    target::Target,
};
use crate::{
    answer::{
        self, Answer,
        fault::Fault,
        stream::{LOOKUPS, Piece},
    },
    app::App,
    call::Call,
};

/// Interval of bookmarks, for watches that want them.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);
/// Additional pause between two lookups per open watch, to bound the total load.
const REST_PER_WATCH: Duration = Duration::from_micros(10);
const INITIAL_END: &str = "k8s.io/initial-events-end";

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Counts an open watch until dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Watches one object, which must exist.
pub(super) async fn one(call: Call, target: Target) -> Result<Answer, Fault> {
    let (kind, space, name) = (target.kind, target.space(), target.name());
    call.work(move |registry| match registry.exists(kind, &space, &name)? {
        true => Ok(()),
        false => Err(RegistryFault::NotFound { kind, name }),
    })
    .await?;
    watch(call, target).await
}

/// Watches the objects of a collection, or the named one.
pub(super) async fn watch(call: Call, target: Target) -> Result<Answer, Fault> {
    let kind = target.kind;
    let form = accept::form(&call)?;
    let start = Start::of(&call)?;
    let seconds = options::number::<u64>(&call.query, "timeoutSeconds")?.filter(|seconds| *seconds > 0);
    // A century is as good as no end, and does not overflow.
    let ends = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.min(3_000_000_000)));
    let options = options::list(&call, &target)?;
    // Subscribed before the watch begins, so that no change is missed.
    let changes = call.app.changes();
    let since = start.since;
    let watch = call.work(move |registry| {
        let since = match since {
            Since::Everything => None,
            Since::Now => Some(registry.revision()?),
            Since::Revision(revision) => Some(revision),
        };
        registry.watch(kind, options, since)
    });
    let lines = WatchLines {
        app: call.app.clone(),
        watch: Some(watch.await?),
        changes,
        writer: Writer { kind, form, include: Include::of(&call.query), heads: true },
        ready: Vec::new(),
        look: true,
        initial_end: start.initial_end,
        bookmarks: start.bookmarks.then(|| Instant::now() + BOOKMARK_INTERVAL),
        ends,
        over: false,
        _counted: Counted::new(),
    };
    let stream = stream::unfold(lines, |mut lines| async move {
        let line = lines.next().await?;
        Some((Ok::<_, Infallible>(line), lines))
    });
    let mut answer = answer::bytes_as(StatusCode::OK, "application/json", Vec::new());
    *answer.body_mut() = Body::from_stream(stream);
    Ok(answer)
}

/// Start of a watch.
#[derive(Clone, Copy)]
enum Since {
    /// With the current state first.
    Everything,
    Now,
    Revision(Revision),
}

struct Start {
    since: Since,
    bookmarks: bool,
    /// True if the end of the initial events is to be marked.
    initial_end: bool,
}

impl Start {
    fn of(call: &Call) -> Result<Self, Fault> {
        let revision = options::revision(&call.query)?.filter(|revision| *revision != Revision(0));
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let matching = call.query.get("resourceVersionMatch");
        let Some(initial) = call.query.get("sendInitialEvents") else {
            if matching.is_some() {
                return Err(Fault::bad_request("a watch takes resourceVersionMatch only with sendInitialEvents"));
            }
            let since = revision.map_or(Since::Everything, Since::Revision);
            return Ok(Self { since, bookmarks, initial_end: false });
        };
        if matching != Some("NotOlderThan") {
            return Err(Fault::bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan"));
        }
        if initial != "true" && initial != "1" {
            let since = revision.map_or(Since::Now, Since::Revision);
            return Ok(Self { since, bookmarks, initial_end: false });
        }
        if !bookmarks {
            return Err(Fault::bad_request("sendInitialEvents=true needs allowWatchBookmarks=true"));
        }
        Ok(Self { since: Since::Everything, bookmarks, initial_end: true })
    }
}

/// JSON lines of one watch.
struct WatchLines {
    app: App,
    /// `None` only while a lookup runs.
    watch: Option<Watch>,
    changes: tokio::sync::watch::Receiver<Revision>,
    writer: Writer,
    /// WatchLines that the client has not taken yet.
    ready: Vec<u8>,
    look: bool,
    initial_end: bool,
    bookmarks: Option<Instant>,
    ends: Option<Instant>,
    over: bool,
    _counted: Counted,
}

impl WatchLines {
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if !self.ready.is_empty() {
                return Some(std::mem::take(&mut self.ready));
            }
            if self.over {
                return None;
            }
            if self.look {
                self.look = false;
                self.look().await;
                continue;
            }
            let far = Instant::now() + BOOKMARK_INTERVAL;
            let closing = self.app.closing.clone();
            let due = self.watch.as_ref().and_then(Watch::due_in);
            tokio::select! {
                biased;
                () = closing.cancelled() => self.over = true,
                () = sleep_until(self.ends.unwrap_or(far)), if self.ends.is_some() => {
                    if self.bookmarks.is_some() {
                        self.bookmark(false);
                    }
                    self.over = true;
                }
                () = sleep_until(self.bookmarks.unwrap_or(far)), if self.bookmarks.is_some() => {
                    self.bookmarks = Some(far);
                    self.bookmark(false);
                }
                () = sleep(due.unwrap_or(BOOKMARK_INTERVAL)), if due.is_some() => self.look = true,
                changed = self.changes.changed() => match changed {
                    Ok(()) => {
                        let rest = REST_PER_WATCH * u32::try_from(OPEN.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
                        if rest >= Duration::from_millis(1) {
                            sleep(rest).await;
                        }
                        self.look = true;
                    }
                    Err(_) => self.over = true,
                },
            }
        }
    }

    /// Looks up new events on a blocking thread.
    async fn look(&mut self) {
        self.changes.mark_unchanged();
        let Some(mut watch) = self.watch.take() else { return };
        // Most changes do not concern most watches.
        if !self.initial_end && watch.is_quiet() {
            self.watch = Some(watch);
            return;
        }
        let mut writer = self.writer;
        let _turn = LOOKUPS.acquire().await;
        let looked = tokio::task::spawn_blocking(move || {
            let lines = writer.piece(&mut watch);
            (watch, writer, lines)
        });
        match looked.await {
            Ok((watch, writer, Ok((lines, more)))) => {
                (self.watch, self.writer, self.ready, self.look) = (Some(watch), writer, lines, more);
                if !more && std::mem::take(&mut self.initial_end) {
                    self.bookmark(true);
                }
            }
            Ok((_, _, Err(trouble))) => self.fail(&trouble.into()),
            Err(error) => self.fail(&Fault::internal(format!("this is a bug of ours: the watch ended: {error}"))),
        }
    }

    fn bookmark(&mut self, initial_end: bool) {
        let Some(watch) = &self.watch else { return };
        let line = self.writer.bookmark(watch.revision(), initial_end);
        self.ready.extend(line);
    }

    fn fail(&mut self, fault: &Fault) {
        self.ready.extend(line("ERROR", &answer::status(fault)));
        self.over = true;
    }
}

/// Encodes events.
#[derive(Clone, Copy)]
struct Writer {
    kind: &'static Kind,
    form: Form,
    include: Include,
    /// True until the column definitions of a table were sent.
    heads: bool,
}

impl Writer {
    /// Encodes one piece of new events. Returns whether there are more.
    fn piece(&mut self, watch: &mut Watch) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = Piece::new();
        while !piece.is_full() {
            let Some(event) = watch.next_event()? else { return Ok((piece.bytes, false)) };
            piece.bytes.extend(self.event(event));
        }
        Ok((piece.bytes, true))
    }

    fn event(&mut self, event: Event) -> Vec<u8> {
        let heads = std::mem::take(&mut self.heads);
        line(event.change.word(), &form::one(self.form, self.include, self.kind, event.object, heads))
    }

    fn bookmark(&self, revision: Revision, initial_end: bool) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_END: "true"});
        }
        let object = match self.form {
            Form::Whole => {
                json!({"kind": self.kind.name, "apiVersion": self.kind.api_version(), "metadata": metadata})
            }
            Form::Metadata(version) => form::partial(&json!({"metadata": metadata}), version),
            Form::Table(version) => table::table(version, None, metadata, Vec::new()),
        };
        line("BOOKMARK", &object)
    }
}

fn line(word: &str, object: &Value) -> Vec<u8> {
    let mut line = json!({"type": word, "object": object}).to_string().into_bytes();
    line.push(b'\n');
    line
}
