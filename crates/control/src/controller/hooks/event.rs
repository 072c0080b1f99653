//! Events for life hooks: what a hook is told of a change of a run, and under which id.

use std::{fmt::Write, sync::Arc};

use octoflow_engine::{
    Run,
    plugins::{Plugin, PluginTable},
};
use octoflow_model::{RunId, Time, plugin::LifeState};
use octoflow_store::{Delivery, DeliveryStatus};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Makes the deliveries of states that a run has entered, in order; `lived` is the number of states before. `now` is the
/// engine's time.
pub(crate) fn deliveries(
    table: &PluginTable,
    run: &Run,
    life: &[(LifeState, Time)],
    lived: u32,
    now: Time,
) -> Vec<Delivery> {
    if life.is_empty() || run.head().quiet || !table.has_hooks() {
        return Vec::new();
    }
    let header = run.hook_header();
    let numbered = (lived + 1..).zip(life);
    let events = numbered.flat_map(|(number, (state, at))| {
        let hooks = table.hooks(&header, *state).into_iter();
        hooks.map(move |hook| (hook, Event { number, state: *state, at: *at }))
    });
    events.map(|(hook, event)| event.delivery(&hook, run, &header, now)).collect()
}

/// Makes the deliveries of the end of a run that is deleted before it ended by itself.
pub(crate) fn of_deletion(table: &PluginTable, run: &Run, now: Time) -> Vec<Delivery> {
    if run.finished() {
        return Vec::new();
    }
    deliveries(table, run, &[(LifeState::Stopped, run.local(now))], run.lived(), now)
}

/// A state that a run has entered.
struct Event {
    /// How many it had entered then.
    number: u32,
    state: LifeState,
    at: Time,
}

impl Event {
    fn delivery(&self, hook: &Arc<Plugin>, run: &Run, header: &Value, now: Time) -> Delivery {
        let event = event_id(run.id(), run.uid(), self.number, &hook.key);
        let text = |name: &str| header[name].as_str().unwrap_or_default().to_owned();
        let job = text("jobID");
        let body = json!({
            "id": &job,
            "jobID": &job,
            "jobName": text("jobName"),
            "userID": text("userID"),
            "namespace": run.namespace(),
            "kind": text("jobKind"),
            "uid": run.uid(),
            "currentState": self.state,
            "current_state": self.state,
            "currentTime": self.at.timestamp().to_string(),
            "eventID": &event,
            "occurrence": self.number,
        });
        Delivery {
            event,
            plugin: hook.key.clone(),
            run: run.uid().to_owned(),
            job,
            namespace: run.namespace().to_owned(),
            sequence: self.number,
            state: self.state.word().to_owned(),
            body: body.to_string().into_bytes(),
            created: now,
            due: now,
            tries: 0,
            status: DeliveryStatus::Behind,
            reason: String::new(),
        }
    }
}

/// Returns the id of an event: the same whenever it is made, and another one for every plugin, run and change. A run that is
/// done again keeps its uid and has another number.
fn event_id(run: RunId, uid: &str, number: u32, plugin: &str) -> String {
    let digest = Sha256::digest(format!("{run}\0{uid}\0{number}\0{plugin}"));
    let mut bytes: Vec<u8> = digest[..16].to_vec();
    // Version 8, whose content is up to whoever makes it.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").expect("writing to memory does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_a_uuid_that_follows_from_what_it_is_about() {
        let id = event_id(RunId(1), "u", 1, "LifeHook.f.a");
        assert_eq!(id, event_id(RunId(1), "u", 1, "LifeHook.f.a"));
        let others = [
            event_id(RunId(1), "u", 2, "LifeHook.f.a"),
            event_id(RunId(1), "u", 1, "LifeHook.f.b"),
            event_id(RunId(1), "v", 1, "LifeHook.f.a"),
            event_id(RunId(2), "u", 1, "LifeHook.f.a"),
        ];
        assert!(!others.contains(&id));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!((parts.as_slice(), &id[14..15]), ([8, 4, 4, 4, 12].as_slice(), "8"));
    }
}
