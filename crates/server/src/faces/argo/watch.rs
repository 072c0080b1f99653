//! Streams of workflow changes and of events.

use std::time::Duration;

use octoflow_control::registry::{Event, Fault as RegistryFault, ListOptions, Watch};
use octoflow_model::Revision;
use serde_json::{Value, json};
use tokio::{
    sync::watch::Receiver,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{
    kind,
    list::{FIELDS, selection},
    mask::Mask,
    namespace,
};
use crate::{
    answer::{
        Answer,
        fault::Fault,
        stream::{Encoding, LOOKUPS, Piece, Source, stream},
    },
    call::Call,
    faces::openapi::operation::{Parameter, count, text},
};

/// Debounce time: commits come in bursts. A watch that looked often recently waits this long; others look at once.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Number of lookups without waiting, regained at one per debounce time.
const BURST: u32 = 8;

/// Name that means the newest workflow.
const LATEST: &str = "@latest";

pub(super) const OPTIONS: &[Parameter] = &[
    text("listOptions.labelSelector", "Only objects with these labels"),
    text("listOptions.fieldSelector", "Only objects with these fields"),
    count("listOptions.resourceVersion", "Only what happened since this revision; else what is there comes first"),
    count("listOptions.timeoutSeconds", "The stream ends after so long"),
    FIELDS,
];

pub(super) async fn workflows(call: Call) -> Result<Answer, Fault> {
    watch(call, "Workflow", true).await
}

pub(super) async fn events(call: Call) -> Result<Answer, Fault> {
    watch(call, "Event", false).await
}

/// `typed`: each value says what happened; otherwise it is the object alone.
async fn watch(call: Call, name: &'static str, typed: bool) -> Result<Answer, Fault> {
    let namespace = namespace(&call)?;
    let mut selection = selection(&call.query)?;
    let since = since(&call)?;
    let changes = call.app.changes();
    let watch = call
        .work(move |registry| -> Result<Watch, RegistryFault> {
            let latest =
                selection.fields.0.iter_mut().find(|test| test.field == "metadata.name" && test.value == LATEST);
            if let (Some(test), "Workflow") = (latest, name) {
                test.value =
                    registry.find_run(kind("Workflow"), namespace.as_deref().unwrap_or_default(), LATEST)?.row.name;
            }
            registry.watch(kind(name), ListOptions { namespace, selection, ..ListOptions::default() }, since)
        })
        .await?;
    let mask = Mask::of(&call.query).always("result.type");
    let encoding = Encoding::of(&call);
    let watch = Box::new(Watched { watch, mask, typed, encoding });
    stream(&call, encoding, Watching { at: WatchState::Due(watch), changes, rate: LookupRate::new() })
}

/// Parses the revision; absent and zero report the current state first.
fn since(call: &Call) -> Result<Option<Revision>, Fault> {
    match call.query.get("listOptions.resourceVersion") {
        None | Some("0") => Ok(None),
        Some(text) => text.parse().map(|number| Some(Revision(number))).map_err(|_| {
            Fault::bad_request(format!("listOptions.resourceVersion must be one an earlier answer had, not `{text}`"))
        }),
    }
}

struct Watching {
    at: WatchState,
    changes: Receiver<Revision>,
    rate: LookupRate,
}

/// State between calls of `next`, which may be cancelled at any point.
enum WatchState {
    /// Everything was reported; waits for a commit.
    Idle(Box<Watched>),
    /// A commit may concern the watch.
    Due(Box<Watched>),
    Looking(JoinHandle<Look>),
    /// Placeholder during a transition, or after a bug.
    Lost,
}

/// The watch, the encoded events, and whether there are more.
type Look = (Box<Watched>, Result<(Vec<u8>, bool), RegistryFault>);

/// Watch with its encoding.
struct Watched {
    watch: Watch,
    mask: Mask,
    typed: bool,
    encoding: Encoding,
}

impl Watched {
    /// Encodes one piece of new events. Blocks on the disk and the engine.
    fn look(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = Piece::new();
        while !piece.is_full() {
            let Some(event) = self.watch.next_event()? else { return Ok((piece.bytes, false)) };
            self.encoding.write(&self.encoded(event), &mut piece.bytes);
        }
        Ok((piece.bytes, true))
    }

    fn encoded(&self, event: Event) -> Value {
        let mut value = match self.typed {
            true => json!({"result": {"type": event.change.word(), "object": event.object}}),
            false => json!({"result": event.object}),
        };
        self.mask.apply(&mut value);
        value
    }
}

impl Source for Watching {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            match &mut self.at {
                WatchState::Idle(watched) => {
                    let due = watched.watch.due_in();
                    tokio::select! {
                        changed = self.changes.changed() => {
                            if changed.is_err() {
                                return Ok(None);
                            }
                        }
                        () = sleep(due.unwrap_or_default()), if due.is_some() => {}
                    }
                    let WatchState::Idle(mut watched) = std::mem::replace(&mut self.at, WatchState::Lost) else {
                        continue;
                    };
                    // Most commits do not concern this watch, and a lookup would cost a thread.
                    self.at =
                        if watched.watch.is_quiet() { WatchState::Idle(watched) } else { WatchState::Due(watched) };
                }
                WatchState::Due(_) => {
                    sleep_until(self.rate.next()).await;
                    let turn = LOOKUPS.acquire().await.map_err(|error| Fault::internal(error.to_string()))?;
                    let WatchState::Due(mut watched) = std::mem::replace(&mut self.at, WatchState::Lost) else {
                        continue;
                    };
                    self.rate.looked();
                    self.changes.mark_unchanged();
                    self.at = WatchState::Looking(tokio::task::spawn_blocking(move || {
                        let found = watched.look();
                        drop(turn);
                        (watched, found)
                    }));
                }
                WatchState::Looking(look) => {
                    let (watched, found) = look.await.map_err(|error| Fault::internal(error.to_string()))?;
                    self.at = WatchState::Lost;
                    let (piece, more) = found?;
                    if more {
                        // More is ready, so there is no need to wait.
                        self.rate.go_on();
                    }
                    self.at = if more { WatchState::Due(watched) } else { WatchState::Idle(watched) };
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                WatchState::Lost => return Ok(None),
            }
        }
    }
}

/// Rate limit of lookups (token bucket): one per [`DEBOUNCE`], in bursts of [`BURST`].
struct LookupRate {
    made_until: Instant,
}

impl LookupRate {
    fn new() -> Self {
        Self { made_until: Instant::now() }
    }

    fn next(&self) -> Instant {
        self.made_until.checked_sub(DEBOUNCE * BURST).unwrap_or(self.made_until)
    }

    fn looked(&mut self) {
        self.made_until = self.made_until.max(Instant::now()) + DEBOUNCE;
    }

    /// Continues the last lookup without counting it again.
    fn go_on(&mut self) {
        self.made_until = self.made_until.checked_sub(DEBOUNCE).unwrap_or(self.made_until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_looks_are_made_at_once_and_many_are_spread() {
        let began = Instant::now();
        let mut rate = LookupRate::new();
        for _ in 0..BURST {
            assert!(rate.next() <= Instant::now(), "nobody who looks seldom waits");
            rate.looked();
        }
        for _ in 0..10 {
            rate.looked();
        }
        assert!(rate.next() >= began + DEBOUNCE * 10);
    }
}
