//! A ledger and a driver: the driver decides, acts on the decisions, and may be restarted at any time.

use std::collections::BTreeSet;

use octoflow_model::{RunId, Time};
use serde_json::{Value, json};

use crate::cron::{Act, CronState, Ledger, Timetable, decide};

#[derive(Default)]
pub(super) struct Books(pub BTreeSet<Time>);

impl Ledger for Books {
    fn has(&self, nominal: Time) -> bool {
        self.0.contains(&nominal)
    }

    fn newest(&self, until: Time) -> Option<Time> {
        self.0.range(..=until).next_back().copied()
    }
}

pub(super) struct Driver {
    pub object: Value,
    pub books: Books,
    pub looked: Option<Time>,
    pub started: Vec<Time>,
    pub active: Vec<RunId>,
    pub last: Option<Time>,
    pub succeeded: u64,
    pub stopped: bool,
}

impl Driver {
    pub(super) fn new(spec: Value) -> Self {
        let metadata = json!({"name": "c", "creationTimestamp": "2026-05-01T00:00:00Z"});
        Self {
            object: json!({"metadata": metadata, "spec": spec}),
            books: Books::default(),
            looked: None,
            started: Vec::new(),
            active: Vec::new(),
            last: None,
            succeeded: 0,
            stopped: false,
        }
    }

    pub(super) fn look(&mut self, now: Time) -> Vec<Act> {
        let timetable = Timetable::read(&self.object).unwrap();
        let state = CronState {
            now,
            looked: self.looked,
            ledger: &self.books,
            active: &self.active,
            succeeded: self.succeeded,
            failed: 0,
            last: self.last,
            stopped: self.stopped,
        };
        let acts = decide(&timetable, &self.object, &state);
        self.looked = Some(now);
        for act in &acts {
            match act {
                Act::Start { nominal, replaces } => {
                    self.books.0.insert(*nominal);
                    self.started.push(*nominal);
                    self.last = Some(*nominal);
                    self.active.retain(|run| !replaces.contains(run));
                    self.active.push(RunId(self.started.len() as u64));
                }
                Act::Skip { nominal, .. } => {
                    self.books.0.insert(*nominal);
                }
                Act::Stop => self.stopped = true,
                Act::Trouble(_) => {}
            }
        }
        acts
    }

    pub(super) fn at(&mut self, text: &str) -> Vec<Act> {
        self.look(Time::parse(text).unwrap())
    }

    pub(super) fn restart(&mut self) {
        self.looked = None;
    }

    pub(super) fn started(&self) -> Vec<String> {
        self.started.iter().map(|time| time.to_string()[11..16].to_owned()).collect()
    }
}
