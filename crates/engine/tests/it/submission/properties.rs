//! Laws over random plugins, answers, commands and crashes. An oracle reads the scripts of the plugins from top to bottom and
//! says who is asked what and how the job ends; it knows no facts, no state and no crashes.

use std::collections::BTreeMap;

use octoflow_engine::{Command, plugins::FeatureRecord, submission::state::WalkStep};
use octoflow_model::{order::Exit, plugin::PluginType, submitted::WalkState};
use serde_json::{Value, json};

use super::world::{Crash, World, feature, task_set};

/// A small generator of numbers: the same seed gives the same story.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a plugin answers to one call.
#[derive(Clone, Debug)]
enum Reply {
    Status(u16),
    Body(Value),
    NoJson,
    /// The job with something more, or with something else.
    Grown,
    Spoiled,
}

/// What people do about a gate that suspends for good.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Person {
    Resumes,
    Rechecks,
}

#[derive(Clone, Debug)]
struct Plugin {
    name: String,
    plugin_type: PluginType,
    ignored: bool,
    replies: Vec<Reply>,
    person: Person,
}

#[derive(Clone, Debug)]
struct Story {
    plugins: Vec<Plugin>,
    kind: &'static str,
    exit: i32,
}

const TRIES: usize = 3;

impl Story {
    fn new(numbers: &mut Numbers) -> Self {
        let kind = if numbers.chance(50) { "TaskSet" } else { "TFJob" };
        let mut plugins = Vec::new();
        for stage in PluginType::STAGES {
            let several = numbers.chance(8);
            let count = match stage {
                PluginType::TemplateTranslator => 1 + usize::from(several) - usize::from(numbers.chance(5)),
                PluginType::SchedulerBinder => numbers.below(2) + usize::from(several),
                _ => numbers.below(4),
            };
            for at in 0..count {
                let name = format!("{}{at}", &stage.word()[..1].to_lowercase());
                plugins.push(Plugin {
                    name: format!("{name}{}", stage.word().len()),
                    plugin_type: stage,
                    ignored: stage == PluginType::FactorGenerator && numbers.chance(50),
                    replies: replies(stage, numbers),
                    person: if numbers.chance(50) { Person::Resumes } else { Person::Rechecks },
                });
            }
        }
        Self { plugins, kind, exit: if numbers.chance(70) { 0 } else { 3 } }
    }

    fn features(&self) -> Vec<FeatureRecord> {
        let of = |plugin: &Plugin| {
            let more = if plugin.ignored { json!({"onFailure": "ignore"}) } else { json!({}) };
            feature(&plugin.name, plugin.plugin_type, &more)
        };
        self.plugins.iter().map(of).collect()
    }

    /// Says what must happen: the questions in order, and the end.
    fn oracle(&self) -> (Vec<String>, WalkState) {
        let mut asked = Vec::new();
        for stage in PluginType::STAGES {
            let mut plugins: Vec<&Plugin> = self.plugins.iter().filter(|one| one.plugin_type == stage).collect();
            if stage == PluginType::TemplateTranslator {
                if self.kind == "TaskSet" {
                    plugins.clear();
                } else if plugins.len() != 1 {
                    return (asked, WalkState::Failed);
                }
            }
            if stage == PluginType::SchedulerBinder && plugins.len() > 1 {
                return (asked, WalkState::Failed);
            }
            for plugin in plugins {
                if let Some(end) = plugin.ask(&mut asked) {
                    return (asked, end);
                }
            }
        }
        (asked, if self.exit == 0 { WalkState::Succeeded } else { WalkState::Failed })
    }
}

impl Plugin {
    fn ask(&self, asked: &mut Vec<String>) -> Option<WalkState> {
        let key = format!("j1/{}.{}.a", self.plugin_type, self.name);
        asked.push(key.clone());
        let (mut errors, mut questions) = (0, 0);
        for reply in &self.replies {
            let failed = match reply {
                Reply::Status(status) if *status >= 500 => {
                    errors += 1;
                    if errors < TRIES {
                        continue;
                    }
                    true
                }
                Reply::Status(_) | Reply::NoJson | Reply::Spoiled => true,
                Reply::Grown => false,
                Reply::Body(body) => match (self.plugin_type, body["decision"].as_str(), body["kind"].as_str()) {
                    (PluginType::AccessGate, Some("pass"), _) => false,
                    (PluginType::AccessGate, Some("stop"), _) => return Some(WalkState::Stopped),
                    (PluginType::AccessGate, Some("suspend"), _) => {
                        let by_itself = body["recheckAfter"].is_number();
                        if !by_itself && self.person == Person::Resumes {
                            return None;
                        }
                        errors = 0;
                        questions += 1;
                        asked.push(format!("{key}#{questions}"));
                        continue;
                    }
                    (PluginType::AccessGate, _, _) => true,
                    (PluginType::TemplateTranslator, _, kind) => kind != Some("TaskSet"),
                    (PluginType::FactorGenerator, _, _) => !body.is_object(),
                    (PluginType::TemplateDecorator | PluginType::SchedulerBinder | PluginType::LifeHook, ..) => true,
                },
            };
            return (failed && !self.ignored).then_some(WalkState::Failed);
        }
        panic!("{self:?} has more to answer");
    }
}

/// Draws the answers of a plugin; the last one ends its turn.
fn replies(stage: PluginType, numbers: &mut Numbers) -> Vec<Reply> {
    let mut all = Vec::new();
    let trouble = |all: &mut Vec<Reply>, numbers: &mut Numbers| {
        for _ in 0..TRIES {
            if numbers.chance(15) {
                all.push(Reply::Status(500 + numbers.below(4) as u16));
            } else {
                break;
            }
        }
    };
    trouble(&mut all, numbers);
    if stage == PluginType::AccessGate {
        while numbers.chance(35) {
            let mut body = json!({"decision": "suspend", "reason": "r"});
            if numbers.chance(50) {
                body["recheckAfter"] = json!(60);
            }
            all.push(Reply::Body(body));
            trouble(&mut all, numbers);
        }
    }
    all.push(match stage {
        _ if numbers.chance(3) => Reply::Status(404),
        _ if numbers.chance(3) => Reply::NoJson,
        PluginType::TemplateTranslator if numbers.chance(10) => Reply::Body(json!({"kind": "Other"})),
        PluginType::TemplateTranslator => Reply::Body(task_set()),
        PluginType::FactorGenerator if numbers.chance(10) => Reply::Body(json!("much")),
        PluginType::FactorGenerator => Reply::Body(json!({"topic": "t", "advice": numbers.below(9)})),
        PluginType::AccessGate => {
            let word = ["pass", "pass", "pass", "pass", "pass", "stop", "maybe"][numbers.below(7)];
            Reply::Body(json!({"decision": word}))
        }
        PluginType::TemplateDecorator | PluginType::SchedulerBinder | PluginType::LifeHook => {
            if numbers.chance(8) {
                Reply::Spoiled
            } else {
                Reply::Grown
            }
        }
    });
    all
}

/// Plays a story with a controller that is lost now and then.
struct Play {
    world: World,
    numbers: Numbers,
    story: Story,
    /// How many answers of each plugin are durable.
    answered: BTreeMap<String, usize>,
    /// Questions whose answer is durable, with the number of calls until then.
    closed: Vec<(String, usize)>,
    crashing: usize,
}

impl Play {
    fn new(seed: u64, crashing: usize) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let story = Story::new(&mut numbers);
        let mut world = World::new(&story.features());
        let job = if story.kind == "TaskSet" { task_set() } else { json!({"kind": story.kind}) };
        world.submit(&job);
        Self { world, numbers, story, answered: BTreeMap::new(), closed: Vec::new(), crashing }
    }

    fn draw_crash(&mut self) -> Option<Crash> {
        let crash = self.numbers.chance(self.crashing);
        let crash = crash.then(|| if self.numbers.chance(50) { Crash::Before } else { Crash::After });
        self.world.crash = crash;
        crash
    }

    fn run(&mut self) {
        for _ in 0..10_000 {
            self.world.crash = None;
            if self.world.job().state.finished.is_some() {
                return;
            }
            if self.numbers.chance(self.crashing) {
                self.world.restart();
            }
            self.step();
        }
        panic!("it does not end: {:#}", self.world.object());
    }

    fn step(&mut self) {
        let (held, gated) = (self.world.job().state.head.suspended, self.world.job().state.walk.gated);
        if held && !gated && self.numbers.chance(40) {
            self.draw_crash();
            return drop(self.world.command(resume()));
        }
        if let Some((_, plugin)) = self.world.call() {
            if !held && !plugin.starts_with("AccessGate") && self.numbers.chance(10) {
                self.draw_crash();
                return drop(self.world.command(Command::Suspend));
            }
            return self.reply(&plugin);
        }
        if self.world.ordered().is_some() {
            self.draw_crash();
            return self.world.create_child();
        }
        if let Some(pod) = self.world.pod().filter(|_| !held) {
            self.draw_crash();
            return self.world.exit(pod, Exit::Code(self.story.exit));
        }
        if gated && self.world.job().state.walk.step == WalkStep::Gated(None) {
            let name = self.world.called().last().map(ToString::to_string).unwrap_or_default();
            let plugin = self.story.plugins.iter().find(|one| one.name == name).expect("it is in the story");
            let command = match plugin.person {
                Person::Resumes => resume(),
                Person::Rechecks => Command::Perform { action: "recheck".to_owned() },
            };
            self.draw_crash();
            return drop(self.world.command(command));
        }
        if held {
            return drop(self.world.command(resume()));
        }
        self.draw_crash();
        assert!(self.world.wait().is_some(), "it waits for nothing: {:#}", self.world.object());
    }

    fn reply(&mut self, key: &str) {
        let name = key.split('.').nth(1).expect("a key has three parts").to_owned();
        let plugin = self.story.plugins.iter().find(|one| one.name == name).expect("it is in the story").clone();
        let at = self.answered.get(&name).copied().unwrap_or_default();
        let reply = plugin.replies.get(at).unwrap_or_else(|| panic!("{name} is asked too often: {plugin:?}")).clone();
        let (number, sent) = (self.world.calls.len(), self.world.calls.last().expect("it is called").clone());
        let crash = self.draw_crash();
        match &reply {
            Reply::Status(status) => self.world.respond(&name, *status, "no"),
            Reply::NoJson => self.world.respond(&name, 200, "no"),
            Reply::Body(body) => self.world.answer(&name, body),
            Reply::Grown | Reply::Spoiled => {
                let mut job = sent.body["job"].clone();
                job["metadata"]["annotations"][&name] = json!("1");
                if matches!(reply, Reply::Spoiled) {
                    job["spec"] = json!({});
                }
                self.world.answer(&name, &job);
            }
        }
        if crash != Some(Crash::Before) {
            *self.answered.entry(name).or_default() += 1;
            if !matches!(reply, Reply::Status(500..)) {
                self.closed.push((sent.key, number));
            }
        }
    }
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: BTreeMap::new() }
}

fn check(seed: u64, crashing: usize) -> (u32, WalkState) {
    let mut play = Play::new(seed, crashing);
    let (asked, end) = play.story.oracle();
    play.run();
    let world = &play.world;
    assert_eq!(world.state(), end, "seed {seed}: {}\n{:#?}", world.message(), play.story);
    let mut keys: Vec<String> = world.calls.iter().map(|call| call.key.clone()).collect();
    keys.dedup();
    assert_eq!(keys, asked, "seed {seed}: who was asked what");
    for (key, number) in &play.closed {
        let again = world.calls.iter().skip(*number).any(|call| call.key == *key);
        assert!(!again, "seed {seed}: {key} was called after its answer was recorded");
    }
    // What grew stays grown, whatever was lost in between.
    let job = &world.object()["status"]["job"];
    for plugin in play.story.plugins.iter().filter(|one| matches!(one.replies.last(), Some(Reply::Grown))) {
        let passed = world.journals[&super::world::JOB].iter().any(|fact| {
            serde_json::to_string(fact)
                .is_ok_and(|text| text.contains(&format!("\"path\":\"/metadata/annotations/{}\"", plugin.name)))
        });
        assert_eq!(job["metadata"]["annotations"][&plugin.name] == "1", passed, "seed {seed}");
    }
    (world.crashes, end)
}

#[test]
fn every_walk_ends_as_the_oracle_says() {
    let mut ends: BTreeMap<WalkState, usize> = BTreeMap::new();
    for seed in 0..600 {
        *ends.entry(check(seed, 0).1).or_default() += 1;
    }
    for end in [WalkState::Succeeded, WalkState::Failed, WalkState::Stopped] {
        assert!(ends.get(&end).is_some_and(|count| *count > 20), "{end} is rare: {ends:?}");
    }
}

#[test]
fn a_controller_that_is_lost_asks_nobody_twice_and_makes_one_run() {
    let crashes: u32 = (0..900).map(|seed| check(seed, 20).0).sum();
    assert!(crashes > 1000, "only {crashes} crashes");
}

/// Restarts after every single fact, as if each were a commit of its own.
#[test]
fn going_on_after_any_fact_decides_what_was_decided() {
    for seed in 0..150 {
        let mut play = Play::new(seed, 0);
        play.run();
        let whole = play.world.journals.clone();
        let job = &whole[&super::world::JOB];
        for length in 1..=job.len() {
            let prefix: Vec<_> = job[..length].to_vec();
            let mut world = World::new(&play.story.features());
            // The run that came out is not there before it was made.
            world.journals.insert(super::world::JOB, prefix);
            world.restart_without_children();
            let after = &world.journals[&super::world::JOB];
            assert!(after.len() >= length);
            // What is decided without an answer from outside is what was decided then.
            let names = |facts: &[octoflow_model::Fact]| -> Vec<String> {
                let name = |fact: &octoflow_model::Fact| {
                    let value = serde_json::to_value(fact).unwrap_or_default();
                    let of = value["SubmittedJob"].as_object().or(value.as_object());
                    of.and_then(|map| map.keys().next().cloned()).unwrap_or_default()
                };
                facts.iter().map(name).collect()
            };
            let (then, now) = (names(job), names(after));
            let own = |name: &String| name != "Suspended" && name != "Resumed";
            let then: Vec<String> = then.into_iter().filter(own).collect();
            let now: Vec<String> = now.into_iter().filter(own).collect();
            assert!(then.starts_with(&now), "seed {seed} after {length} facts: {now:?} instead of {then:?}");
        }
    }
}
