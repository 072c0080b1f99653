//! Random TaskSets: roles, policies, whom they wait for, and how each pod will end. Everything follows from a seed.

use serde_json::{Value, json};

use crate::plan::Dice;

#[derive(Clone, Debug)]
pub(super) struct Scheme {
    seed: u64,
    pub(super) retry: Policy,
    pub(super) roles: Vec<Role>,
    pub(super) suspend: bool,
    pub(super) deadline: Option<u64>,
    /// How often a pod fails, in percent.
    failing: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) on: bool,
    pub(super) delay: u64,
    pub(super) most: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) replicas: u32,
    pub(super) max_failed: i32,
    pub(super) min_succeeded: i32,
    pub(super) retry: Policy,
    /// Ends with code 3 are not tried again.
    pub(super) picky: bool,
    pub(super) events: Vec<(&'static str, &'static str)>,
    pub(super) after: Vec<(usize, &'static str)>,
    pub(super) gang: bool,
}

impl Policy {
    fn new(dice: &mut Dice) -> Self {
        Self { on: dice.chance(60), delay: [0, 1, 3, 10][dice.below(4)], most: dice.below(3) as u64 }
    }

    fn text(self) -> Value {
        json!({"retry": self.on, "delay": self.delay, "maxRetryCount": self.most})
    }

    /// May be tried again after so many tries beyond the first.
    pub(super) fn allows(self, retried: u64) -> bool {
        self.on && retried < self.most
    }
}

impl Scheme {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let dice = &mut dice;
        let count = 1 + dice.below(4);
        let ganged = dice.chance(30);
        let mut roles: Vec<Role> = Vec::new();
        for at in 0..count {
            let replicas = 1 + dice.below(4) as u32;
            let gang = ganged && dice.chance(60);
            let criterion = |dice: &mut Dice, least: i32| match dice.below(6) {
                0 => -1,
                _ => least.max(1 + dice.below(replicas as usize) as i32),
            };
            let max_failed = if dice.chance(10) { 0 } else { criterion(dice, 1) };
            let mut after: Vec<(usize, &'static str)> = Vec::new();
            for (up, other) in roles.iter().enumerate() {
                // Members of a gang wait for nobody who could wait for one of them.
                let fits = if gang { !other.gang && other.after.is_empty() } else { true };
                if fits && dice.chance(25) {
                    after.push((up, ["Running", "Succeeded", "Completed"][dice.below(3)]));
                }
            }
            roles.push(Role {
                name: format!("r{at}"),
                replicas,
                max_failed,
                min_succeeded: criterion(dice, 1),
                retry: Policy::new(dice),
                picky: dice.chance(20),
                events: events(dice),
                after,
                gang,
            });
        }
        Self {
            seed,
            retry: Policy::new(dice),
            roles,
            suspend: dice.chance(5),
            deadline: dice.chance(15).then(|| 5 + dice.below(60) as u64),
            failing: [5, 20, 50, 80][dice.below(4)],
        }
    }

    pub(super) fn spec(&self) -> Value {
        let role = |role: &Role| {
            let mut retry = role.retry.text();
            if role.picky {
                retry["permanentExitCodes"] = json!([3]);
            }
            let after: Vec<Value> = role
                .after
                .iter()
                .map(|(up, condition)| match *condition {
                    "Running" => json!(self.roles[*up].name),
                    condition => json!({"role": self.roles[*up].name, "condition": condition}),
                })
                .collect();
            let events: Vec<Value> =
                role.events.iter().map(|(event, action)| json!({"event": event, "action": action})).collect();
            let mut made = json!({
                "name": role.name,
                "replicas": role.replicas,
                "completionPolicy": {"maxFailed": role.max_failed, "minSucceeded": role.min_succeeded},
                "retryPolicy": retry,
                "eventPolicy": events,
                "dependsOn": after,
                "template": {"spec": {"containers": [{"name": "main", "image": "i", "command": ["c"]}]}},
            });
            if role.gang {
                made["template"]["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "g"});
            }
            made
        };
        let roles: Vec<Value> = self.roles.iter().map(role).collect();
        let mut spec = json!({"retryPolicy": self.retry.text(), "roles": roles});
        if self.suspend {
            spec["suspend"] = json!(true);
        }
        if let Some(deadline) = self.deadline {
            spec["activeDeadlineSeconds"] = json!(deadline);
        }
        spec
    }

    /// How a pod ends when nobody tells it to; nothing when it is lost.
    pub(super) fn code(&self, pod: &str) -> Option<i32> {
        let mut dice =
            Dice(pod.bytes().fold(self.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))));
        match dice.chance(self.failing) {
            false => Some(0),
            true if dice.chance(15) => None,
            true => Some(1 + dice.below(4) as i32),
        }
    }
}

fn events(dice: &mut Dice) -> Vec<(&'static str, &'static str)> {
    const ACTIONS: [&str; 7] =
        ["TaskSetFailed", "TaskSetSucceeded", "TaskSetCompleted", "NoAction", "NoAction", "NoAction", "NoAction"];
    (0..dice.below(4))
        .map(|_| (["RoleFailed", "RoleSucceeded", "RoleCompleted"][dice.below(3)], ACTIONS[dice.below(7)]))
        .collect()
}
