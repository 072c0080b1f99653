//! The worker that delivers events: it reads what is due, has helper threads send it, and writes down what became of it. The
//! events of one run for one plugin go out one after the other; everything else at once, within bounds. It waits for signals
//! and due times and for nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use octoflow_engine::plugins::{Plugin, PluginTable};
use octoflow_model::{Time, plugin::PluginType};
use octoflow_runtime::{calls::Caller, egress::Policy};
use octoflow_store::{Batch, Change, Delivery, Store};

use super::{
    DeliveryTotals, HookCounters, HookQueue, HookSignal,
    outcome::{Fate, Outcome, Verdict},
    request::request,
};
use crate::{Error, Supervisor, clock, supervisor::panic_message};

/// Deliveries under way at once, of all plugins. It is also the most threads.
const MAX_AT_ONCE: usize = 64;

/// Of one plugin, if it does not allow fewer.
const MAX_OF_PLUGIN: usize = 8;

/// The pause after something of this machine was out of order: the store, or no thread was to be had.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct HookWorker {
    store: Store,
    caller: Arc<Caller>,
    supervisor: Supervisor,
    queue: HookQueue,
    signals: Receiver<HookSignal>,
    table: Arc<PluginTable>,
    /// By key of the plugin.
    lanes: BTreeMap<String, Lane>,
    /// Answers that are not written down yet.
    answered: Vec<Outcome>,
    /// Plugins that are gone and whose deliveries are still there.
    gone: BTreeSet<String>,
    counters: HookCounters,
    /// The plugin that is served first; another one each time.
    turn: usize,
    /// Nothing is tried before, after something of this machine was out of order.
    resting: Option<Time>,
}

/// The deliveries of one plugin.
#[derive(Default)]
struct Lane {
    /// Those under way by their event, with the number of tries.
    under_way: BTreeMap<String, u32>,
    /// There may be something to send that was not looked at.
    unseen: bool,
    /// When the first of those that wait is due.
    due: Option<Time>,
    /// The last delivery failed. One at a time is tried then, so that a hook that does not answer occupies no more.
    troubled: bool,
}

impl HookWorker {
    pub(super) fn new(
        store: Store,
        policy: &Policy,
        supervisor: Supervisor,
        (queue, signals): (HookQueue, Receiver<HookSignal>),
        table: Arc<PluginTable>,
        counters: HookCounters,
    ) -> Self {
        let mut worker = Self {
            store,
            caller: Arc::new(Caller::new(policy)),
            supervisor,
            queue,
            signals,
            table: Arc::default(),
            lanes: BTreeMap::new(),
            answered: Vec::new(),
            gone: BTreeSet::new(),
            counters,
            turn: 0,
            resting: None,
        };
        worker.replace_table(table);
        worker
    }

    pub(super) fn run(mut self) -> Result<(), Error> {
        loop {
            self.advance();
            let first = match self.idle_for() {
                None => self.signals.recv().ok(),
                Some(pause) => match self.signals.recv_timeout(pause) {
                    Ok(signal) => Some(signal),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => None,
                },
            };
            let Some(first) = first else { return Ok(()) };
            let signals: Vec<HookSignal> = std::iter::once(first).chain(self.signals.try_iter()).collect();
            for signal in signals {
                match signal {
                    HookSignal::Due(plugins) => plugins.into_iter().for_each(|plugin| self.lane(plugin).unseen = true),
                    HookSignal::Table(table) => self.replace_table(table),
                    HookSignal::Answered(outcome) => self.answered.push(outcome),
                    HookSignal::Close => {
                        self.write_down(clock::steady());
                        return Ok(());
                    }
                }
            }
        }
    }

    /// How long nothing is to be done, unless a signal comes; `None`: for ever.
    fn idle_for(&self) -> Option<Duration> {
        let now = clock::steady();
        if let Some(until) = self.resting {
            return Some(until.since(now));
        }
        let enabled = self.hooks().filter(|hook| hook.enabled);
        let waiting = enabled.filter_map(|hook| self.lanes.get(&hook.key));
        let due = waiting.filter(|lane| !lane.unseen).filter_map(|lane| lane.due).min();
        due.map(|due| due.since(now))
    }

    fn hooks(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.table.of_type(PluginType::LifeHook).iter()
    }

    fn lane(&mut self, plugin: String) -> &mut Lane {
        self.lanes.entry(plugin).or_default()
    }

    fn replace_table(&mut self, table: Arc<PluginTable>) {
        let before: Vec<String> = self.hooks().map(|hook| hook.key.clone()).collect();
        self.table = table;
        let keys: BTreeSet<String> = self.hooks().map(|hook| hook.key.clone()).collect();
        self.gone.extend(before.into_iter().filter(|key| !keys.contains(key)));
        self.gone.retain(|key| !keys.contains(key));
        // A hook that was off or is new may find something to send.
        keys.into_iter().for_each(|key| self.lane(key).unseen = true);
    }

    /// Does all that can be done now.
    fn advance(&mut self) {
        let now = clock::steady();
        if self.resting.is_some_and(|until| until > now) {
            return;
        }
        self.resting = None;
        self.write_down(now);
        if self.resting.is_none()
            && let Err(error) = self.send_due(now)
        {
            self.rest(now, &error);
        }
    }

    fn rest(&mut self, now: Time, why: &dyn std::fmt::Display) {
        tracing::warn!("deliveries to life hooks wait: {why}");
        self.resting = Some(now.saturating_add(AFTER_FAILURE));
    }

    /// Stores what became of deliveries. Until that is done they count as under way.
    fn write_down(&mut self, now: Time) {
        if self.answered.is_empty() && self.gone.is_empty() {
            return;
        }
        let mut batch = Batch::new();
        let mut fates = Vec::new();
        for outcome in &self.answered {
            let lane = self.lanes.get(&outcome.plugin);
            let tries = lane.and_then(|lane| lane.under_way.get(&outcome.event)).copied().unwrap_or_default() + 1;
            let most = self.table.by_key(&outcome.plugin).map_or(1, |hook| hook.tries);
            let (fate, change) = outcome.change(tries, most, now);
            fates.push(fate);
            batch.push(change);
        }
        batch.extend(self.gone.iter().map(|plugin| Change::DropDeliveries { plugin: plugin.clone() }));
        if let Err(error) = self.store.commit_wait(batch) {
            return self.rest(now, &error);
        }
        let gone = std::mem::take(&mut self.gone);
        for (outcome, fate) in std::mem::take(&mut self.answered).into_iter().zip(fates) {
            count(self.counters.lock().entry(outcome.plugin.clone()).or_default(), &fate);
            if let Fate::Dead = fate {
                tracing::warn!(plugin = outcome.plugin, event = outcome.event, "an event for a life hook is given up");
            }
            let lane = self.lane(outcome.plugin);
            lane.under_way.remove(&outcome.event);
            lane.unseen = true;
            lane.troubled = !matches!(outcome.verdict, Verdict::Acknowledged | Verdict::Refused(_));
        }
        self.lanes.retain(|key, lane| !gone.contains(key) || !lane.under_way.is_empty());
    }

    fn send_due(&mut self, now: Time) -> Result<(), Error> {
        let hooks: Vec<Arc<Plugin>> = self.hooks().filter(|hook| hook.enabled).cloned().collect();
        let mut free = MAX_AT_ONCE.saturating_sub(self.lanes.values().map(|lane| lane.under_way.len()).sum());
        self.turn = if hooks.is_empty() { 0 } else { (self.turn + 1) % hooks.len() };
        let (later, first) = hooks.split_at(self.turn.min(hooks.len()));
        for hook in first.iter().chain(later) {
            let lane = self.lanes.entry(hook.key.clone()).or_default();
            let places = if lane.troubled { 1 } else { MAX_OF_PLUGIN.min(hook.concurrency as usize) };
            let free_here = places.saturating_sub(lane.under_way.len()).min(free);
            let wanted = lane.unseen || lane.due.is_some_and(|due| due <= now);
            if !wanted || free_here == 0 {
                // Whatever is answered next has it looked at again.
                lane.unseen |= wanted;
                continue;
            }
            let found = self.store.reader()?.next_deliveries(&hook.key, lane.under_way.len() + free_here + 1)?;
            let mut waiting = found.into_iter().filter(|delivery| !lane.under_way.contains_key(&delivery.event));
            let mut ready = Vec::new();
            let left = loop {
                match waiting.next() {
                    Some(delivery) if delivery.due <= now && ready.len() < free_here => ready.push(delivery),
                    left => break left,
                }
            };
            lane.unseen = left.as_ref().is_some_and(|left| left.due <= now);
            lane.due = left.map(|left| left.due).filter(|due| *due > now);
            for delivery in ready {
                self.send(hook, delivery)?;
                free -= 1;
            }
        }
        Ok(())
    }

    /// Sends one delivery on a thread of its own.
    fn send(&mut self, hook: &Arc<Plugin>, delivery: Delivery) -> Result<(), Error> {
        let (caller, queue) = (self.caller.clone(), self.queue.clone());
        let (plugin, event, tries) = (hook.key.clone(), delivery.event.clone(), delivery.tries);
        let hook = hook.clone();
        let thread = self.supervisor.spawn("hook", move || {
            let (plugin, event) = (delivery.plugin.clone(), delivery.event.clone());
            let verdict =
                catch_unwind(AssertUnwindSafe(|| deliver(&caller, &hook, &delivery))).unwrap_or_else(|panic| {
                    Verdict::Again(format!("a bug of octoflow: sending it panicked: {}", panic_message(&*panic)))
                });
            queue.send(HookSignal::Answered(Outcome { plugin, event, verdict }));
            Ok(())
        });
        let lane = self.lane(plugin);
        if let Err(error) = thread {
            lane.unseen = true;
            return Err(Error::Thread(error));
        }
        lane.under_way.insert(event, tries);
        Ok(())
    }
}

fn deliver(caller: &Caller, hook: &Plugin, delivery: &Delivery) -> Verdict {
    match request(hook, delivery, clock::now()) {
        Some(request) => Verdict::of(&caller.call(request)),
        None => Verdict::Refused("the plugin has no URL".to_owned()),
    }
}

fn count(totals: &mut DeliveryTotals, fate: &Fate) {
    match fate {
        Fate::Delivered => totals.delivered += 1,
        Fate::Retried => totals.retried += 1,
        Fate::Dead => totals.dead += 1,
    }
}
