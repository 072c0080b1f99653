//! A life hook that hears everything, in every world: it takes what is to be delivered from the disk, now and then twice, and
//! now and then without anybody learning of it. Whatever crashes, it must hear of every state of every run once and in order.

use std::collections::BTreeMap;

use octoflow_control::{Error, VirtualDisk};
use octoflow_model::{RunId, plugin::LifeState};
use octoflow_store::{Batch, Change, Delivery};
use serde_json::{Value, json};

use super::{
    disk::Disk,
    draw::Draw,
    failure::{Broken, Guarantee, broken},
};

/// Feature and key of the hook.
const FEATURE: &str = "everything";
const HOOK: &str = "LifeHook.everything.sim";
/// Deliveries that are looked at in one step.
const AT_ONCE: usize = 8;

pub(super) struct HookListener {
    /// Its own stream: what is delivered does not change the story.
    draw: Draw,
    /// By uid of the run: number, id and state of the events heard, in order and without repetitions.
    heard: BTreeMap<String, Vec<(u32, String, String)>>,
}

impl HookListener {
    /// Keeps the feature on the disk, for every loop that starts there.
    pub(super) fn begin(seed: u64, disk: &VirtualDisk) -> Result<Self, Error> {
        let object = json!({"kind": "Feature", "metadata": {"name": FEATURE}, "spec": {
            "author": "sim", "enabled": true, "jobSelector": {"expression": "*"},
            "plugins": [{"pluginType": "LifeHook", "callAddress": "http://hook.invalid/",
                         "jobSelector": {"expression": "*", "states": ["*"]}}],
        }});
        disk.write(&Batch::from(Change::PutObject {
            kind: "Feature".to_owned(),
            namespace: String::new(),
            name: FEATURE.to_owned(),
            uid: FEATURE.to_owned(),
            body: object.to_string().into_bytes(),
        }))?;
        Ok(Self { draw: Draw::new(seed, "hooks"), heard: BTreeMap::new() })
    }

    /// Some of what is next is delivered, and some of that acknowledged.
    pub(super) fn listen(&mut self, disk: &VirtualDisk) -> Result<(), Broken> {
        if self.draw.chance(40) { self.take(disk, false).map(drop) } else { Ok(()) }
    }

    /// At the end everything is delivered, and nothing is missing.
    pub(super) fn settle(&mut self, virtual_disk: &VirtualDisk, disk: &Disk) -> Result<(), Broken> {
        while self.take(virtual_disk, true)? > 0 {}
        // A run that is done again has the uid that it had.
        let mut entered = BTreeMap::<String, usize>::new();
        // What comes out of a submitted job tells nothing of its own.
        let quiet = |run: &RunId| disk.seen(*run).is_some_and(|run| run.head().quiet);
        for run in disk.runs().into_iter().filter(|run| !quiet(run)) {
            let (uid, count) = disk.lived(run)?;
            *entered.entry(uid).or_default() += count as usize;
        }
        for (uid, count) in entered {
            let heard = self.heard.get(&uid).map_or(0, Vec::len);
            if heard != count {
                let what = format!("the run {uid} has entered {count} states, and the hook has heard of {heard}");
                return broken(Guarantee::Told, what);
            }
        }
        Ok(())
    }

    fn take(&mut self, disk: &VirtualDisk, all: bool) -> Result<usize, Broken> {
        let found = disk.reader().and_then(|reader| Ok(reader.next_deliveries(HOOK, AT_ONCE)?));
        let found = found.or_else(unreadable)?;
        for delivery in &found {
            if !all && self.draw.chance(30) {
                continue;
            }
            self.hear(delivery)?;
            let event = delivery.event.clone();
            // Without an acknowledgement, or with one that a crash loses, it comes again.
            let change = match self.draw.below(4) {
                0 if !all => Change::RetryDelivery { event, due: delivery.due, reason: "RE".to_owned() },
                1 if !all => continue,
                _ => Change::DeleteDelivery { event },
            };
            disk.write(&Batch::from(change)).or_else(unreadable)?;
        }
        Ok(found.len())
    }

    fn hear(&mut self, delivery: &Delivery) -> Result<(), Broken> {
        let heard = self.heard.entry(delivery.run.clone()).or_default();
        let body: Value = serde_json::from_slice(&delivery.body).unwrap_or_default();
        if body["eventID"] != delivery.event.as_str() || body["currentState"] != delivery.state.as_str() {
            return broken(Guarantee::Told, format!("the event {} says something else: {body}", delivery.event));
        }
        let (number, event, state) = (delivery.sequence, delivery.event.clone(), delivery.state.clone());
        let follows = match heard.last() {
            Some((_, last, _)) if *last == event => return Ok(()),
            Some((last, _, _)) if number == last + 1 => true,
            Some((_, _, last)) => number == 1 && LifeState::of_word(last).is_some_and(LifeState::is_final),
            None => number == 1,
        };
        if !follows {
            let what = format!("event {number} ({state}, {event}) of the run {} comes after {heard:?}", delivery.run);
            return broken(Guarantee::Told, what);
        }
        heard.push((number, event, state));
        Ok(())
    }
}

fn unreadable<T>(error: Error) -> Result<T, Broken> {
    broken(Guarantee::Told, format!("the deliveries cannot be read or written: {error}"))
}
