//! Streams of what happens to workflows, and of events.

use std::time::Duration;

use octoflow_control::registry::{Event, Fault as RegistryFault, ListOptions, Watch};
use octoflow_model::Revision;
use serde_json::{Value, json};
use tokio::{
    sync::watch::Receiver,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use super::{
    kind,
    list::{FIELDS, selection},
    mask::Mask,
    namespace,
};
use crate::{
    answer::Answer,
    call::Call,
    fault::Fault,
    openapi::operation::{Parameter, count, text},
    stream::{Dress, LOOKS, Piece, Source, stream},
};

/// Commits come in flocks. Who has looked often lately waits so long for the rest of one; who has not looks at once.
const GATHER: Duration = Duration::from_millis(20);
/// So many looks are made without waiting, and one more for each time that could have been waited.
const BURST: u32 = 8;

/// The name that means the newest workflow.
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
    let dress = Dress::of(&call);
    let watch = Box::new(Watched { watch, mask, typed, dress });
    stream(&call, dress, Watching { at: At::Due(watch), changes, pace: Pace::new() })
}

/// Nothing said and zero mean: what is there now comes first.
fn since(call: &Call) -> Result<Option<Revision>, Fault> {
    match call.query.get("listOptions.resourceVersion") {
        None | Some("0") => Ok(None),
        Some(text) => text.parse().map(|number| Some(Revision(number))).map_err(|_| {
            Fault::bad_request(format!("listOptions.resourceVersion must be one an earlier answer had, not `{text}`"))
        }),
    }
}

struct Watching {
    at: At,
    changes: Receiver<Revision>,
    pace: Pace,
}

/// Kept between two calls, because waiting may be given up at any point.
enum At {
    /// Everything was told; something must happen first.
    Idle(Box<Watched>),
    /// Something happened.
    Due(Box<Watched>),
    Looking(JoinHandle<Look>),
    /// Only seen while changing from one to the other, or after a bug.
    Lost,
}

/// The watch, what it found, and whether there is more.
type Look = (Box<Watched>, Result<(Vec<u8>, bool), RegistryFault>);

/// A watch with the way its events are written down.
struct Watched {
    watch: Watch,
    mask: Mask,
    typed: bool,
    dress: Dress,
}

impl Watched {
    /// One piece of what is new. It waits for the disk and the engine.
    fn look(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = Piece::new();
        while !piece.is_full() {
            let Some(event) = self.watch.next_event()? else { return Ok((piece.bytes, false)) };
            self.dress.write(&self.dressed(event), &mut piece.bytes);
        }
        Ok((piece.bytes, true))
    }

    fn dressed(&self, event: Event) -> Value {
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
                At::Idle(_) => {
                    if self.changes.changed().await.is_err() {
                        return Ok(None);
                    }
                    let At::Idle(mut watched) = std::mem::replace(&mut self.at, At::Lost) else { continue };
                    // Most commits are about something else, and looking further would cost a thread.
                    self.at = if watched.watch.is_quiet() { At::Idle(watched) } else { At::Due(watched) };
                }
                At::Due(_) => {
                    sleep_until(self.pace.next()).await;
                    let turn = LOOKS.acquire().await.map_err(|error| Fault::internal(error.to_string()))?;
                    let At::Due(mut watched) = std::mem::replace(&mut self.at, At::Lost) else { continue };
                    self.pace.looked();
                    self.changes.mark_unchanged();
                    self.at = At::Looking(tokio::task::spawn_blocking(move || {
                        let found = watched.look();
                        drop(turn);
                        (watched, found)
                    }));
                }
                At::Looking(look) => {
                    let (watched, found) = look.await.map_err(|error| Fault::internal(error.to_string()))?;
                    self.at = At::Lost;
                    let (piece, more) = found?;
                    if more {
                        // The rest is ready; there is nothing to gather.
                        self.pace.go_on();
                    }
                    self.at = if more { At::Due(watched) } else { At::Idle(watched) };
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                At::Lost => return Ok(None),
            }
        }
    }
}

/// When the next look may be made. As if looks were made every [`GATHER`], and some were still owed.
struct Pace {
    made_until: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { made_until: Instant::now() }
    }

    fn next(&self) -> Instant {
        self.made_until.checked_sub(GATHER * BURST).unwrap_or(self.made_until)
    }

    fn looked(&mut self) {
        self.made_until = self.made_until.max(Instant::now()) + GATHER;
    }

    /// The last look goes on: it counts once.
    fn go_on(&mut self) {
        self.made_until = self.made_until.checked_sub(GATHER).unwrap_or(self.made_until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_looks_are_made_at_once_and_many_are_spread() {
        let began = Instant::now();
        let mut pace = Pace::new();
        for _ in 0..BURST {
            assert!(pace.next() <= Instant::now(), "nobody who looks seldom waits");
            pace.looked();
        }
        for _ in 0..10 {
            pace.looked();
        }
        assert!(pace.next() >= began + GATHER * 10);
    }
}
