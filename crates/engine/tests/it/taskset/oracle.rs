//! What should become of a TaskSet, worked out naively from the order in which its pods came and went. It is written
//! from the contract, shares nothing with the engine, and keeps no counts it could get wrong: it counts every time.

use octoflow_model::Time;

use super::scheme::{Role, Scheme};

#[derive(Clone, Debug)]
pub(super) struct Oracle {
    scheme: Scheme,
    pub(super) attempt: u32,
    began: Option<Time>,
    /// The attempt is over, and the next one comes then.
    next: Option<Time>,
    pub(super) over: Option<bool>,
    pub(super) verdict: Option<bool>,
    pub(super) roles: Vec<Fate>,
    suspended: bool,
    /// True if it is being ended, by a command or by its deadline.
    closing: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) verdict: Option<bool>,
    pub(super) replicas: Vec<Replica>,
    began: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Replica {
    stand: Stand,
    retried: u64,
    /// True if it has been up at least once.
    up: bool,
    /// True if its pod is being evicted.
    unwanted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Idle,
    Live,
    Waits(Time),
    Counts(bool),
    CountsNot,
}

impl Fate {
    pub(super) fn count(&self, well: bool) -> usize {
        self.replicas.iter().filter(|replica| replica.stand == Stand::Counts(well)).count()
    }

    pub(super) fn over(&self) -> bool {
        let finals = |replica: &Replica| matches!(replica.stand, Stand::Counts(_) | Stand::CountsNot);
        self.verdict.is_some() && self.replicas.iter().all(finals)
    }
}

fn fresh(scheme: &Scheme) -> Vec<Fate> {
    let replica = Replica { stand: Stand::Idle, retried: 0, up: false, unwanted: false };
    let fate =
        |role: &Role| Fate { verdict: None, replicas: vec![replica.clone(); role.replicas as usize], began: false };
    scheme.roles.iter().map(fate).collect()
}

impl Oracle {
    pub(super) fn new(scheme: &Scheme, now: Time) -> Self {
        let mut oracle = Self {
            roles: fresh(scheme),
            suspended: scheme.suspend,
            attempt: 0,
            began: None,
            next: Some(now),
            over: None,
            verdict: None,
            closing: false,
            scheme: scheme.clone(),
        };
        oracle.pass(now);
        oracle
    }

    /// The role, the number in it, and both attempts, from a pod's name.
    fn parse(&self, pod: &str) -> (usize, usize, u32, u64) {
        let parts: Vec<&str> = pod.split('-').collect();
        let role = self.scheme.roles.iter().position(|role| role.name == parts[1]).expect("a role of the scheme");
        let number = |at: usize| parts[at].parse::<u32>().expect("names of pods end in numbers");
        (role, number(4) as usize, number(2), u64::from(number(3)))
    }

    /// The engine starts a pod: it must be allowed to.
    pub(super) fn launched(&mut self, pod: &str, now: Time) {
        let (role, index, attempt, retried) = self.parse(pod);
        assert_eq!(attempt, self.attempt, "{pod} is of another attempt");
        assert!(!self.suspended, "{pod} is started while suspended");
        assert!(self.next.is_none() && self.verdict.is_none() && self.over.is_none(), "{pod} comes too late");
        assert_eq!(self.roles[role].verdict, None, "{pod} comes after its role's verdict");
        assert!(self.roles[role].began || self.may_begin(role), "{pod} does not wait for others");
        self.roles[role].began = true;
        let replica = &mut self.roles[role].replicas[index];
        assert_eq!(replica.retried, retried, "{pod} is not the next try");
        match replica.stand {
            Stand::Idle => {}
            Stand::Waits(until) => assert!(until <= now, "{pod} does not wait for its delay"),
            other => panic!("{pod} is started though its replica is {other:?}"),
        }
        replica.stand = Stand::Live;
        replica.unwanted = false;
    }

    pub(super) fn up(&mut self, pod: &str) {
        let (role, index, ..) = self.parse(pod);
        let open = self.roles[role].verdict.is_none();
        let replica = &mut self.roles[role].replicas[index];
        // One that is being ended is no longer asked whether it came up.
        replica.up |= open && !replica.unwanted;
        self.begin_roles();
    }

    pub(super) fn unwanted(&mut self, pod: &str) {
        let (role, index, ..) = self.parse(pod);
        self.roles[role].replicas[index].unwanted = true;
    }

    /// A pod is gone, with this code if anybody knows.
    pub(super) fn ended(&mut self, pod: &str, code: Option<i32>, now: Time) {
        let (role, index, ..) = self.parse(pod);
        let (plan, judged) = (&self.scheme.roles[role], self.roles[role].verdict.is_some());
        let replica = &mut self.roles[role].replicas[index];
        assert_eq!(replica.stand, Stand::Live, "{pod}");
        replica.up |= code.is_some();
        let well = code == Some(0) && !replica.unwanted;
        let permanent = plan.picky && code == Some(3) && !replica.unwanted;
        replica.stand = if judged {
            Stand::CountsNot
        } else if !well && !permanent && plan.retry.allows(replica.retried) && !self.closing {
            replica.retried += 1;
            Stand::Waits(now.saturating_add(std::time::Duration::from_secs(plan.retry.delay)))
        } else {
            Stand::Counts(well)
        };
        self.pass(now);
    }

    pub(super) fn suspend(&mut self, suspended: bool, now: Time) {
        self.suspended = suspended;
        self.pass(now);
    }

    pub(super) fn close(&mut self, now: Time) {
        self.closing = true;
        self.pass(now);
    }

    pub(super) fn disband(&mut self, now: Time) {
        if self.next.is_none() && self.over.is_none() {
            self.verdict.get_or_insert(false);
        }
        self.pass(now);
    }

    /// Time has passed, or something has happened: whatever follows follows.
    pub(super) fn pass(&mut self, now: Time) {
        // Longer chains than roles and attempts there are not.
        for _ in 0..60 {
            if self.over.is_some() {
                return;
            }
            let deadline = self.scheme.deadline.zip(self.began);
            let deadline = deadline.map(|(span, began)| began.saturating_add(std::time::Duration::from_secs(span)));
            self.closing |= deadline.is_some_and(|at| at <= now);
            match self.next {
                Some(_) if self.closing => self.over = Some(false),
                Some(next) if next <= now && !self.suspended => self.begin(now),
                Some(_) => {}
                None => self.judge(now),
            }
        }
        self.begin_roles();
    }

    fn begin(&mut self, now: Time) {
        if self.began.is_some() {
            self.attempt += 1;
        }
        self.began.get_or_insert(now);
        (self.next, self.verdict, self.roles) = (None, None, fresh(&self.scheme));
    }

    fn may_begin(&self, role: usize) -> bool {
        self.scheme.roles[role].after.iter().all(|(up, condition)| {
            let fate = &self.roles[*up];
            let well = fate.over() && fate.verdict == Some(true);
            match *condition {
                "Running" => well || fate.verdict.is_none() && fate.replicas.iter().all(|replica| replica.up),
                "Succeeded" => well,
                _ => fate.over(),
            }
        })
    }

    /// Starts every role that may start, whether there is room for its pods or not.
    fn begin_roles(&mut self) {
        let open = self.next.is_none() && self.verdict.is_none() && self.over.is_none() && !self.closing;
        for role in 0..self.roles.len() {
            if open && !self.suspended && self.roles[role].verdict.is_none() && self.may_begin(role) {
                self.roles[role].began = true;
            }
        }
    }

    fn judge(&mut self, now: Time) {
        if self.closing {
            self.verdict.get_or_insert(false);
        }
        for role in 0..self.roles.len() {
            if self.roles[role].verdict.is_none() {
                let verdict = self.verdict.or_else(|| self.role_verdict(role));
                self.roles[role].verdict = verdict;
            }
            if self.roles[role].verdict.is_some() {
                for replica in &mut self.roles[role].replicas {
                    if matches!(replica.stand, Stand::Idle | Stand::Waits(_)) {
                        replica.stand = Stand::CountsNot;
                    }
                }
            }
        }
        if self.verdict.is_none() {
            self.verdict = self.whole();
        }
        // Only where the whole goes on does it matter that a role can never start.
        if self.verdict.is_none()
            && let Some(lost) = (0..self.roles.len()).find(|role| self.hopeless(*role))
        {
            self.roles[lost].verdict = Some(false);
            return;
        }
        let Some(verdict) = self.verdict.filter(|_| self.roles.iter().all(Fate::over)) else { return };
        let retry = self.scheme.retry;
        if !verdict && !self.closing && retry.allows(u64::from(self.attempt)) {
            self.next = Some(now.saturating_add(std::time::Duration::from_secs(retry.delay)));
        } else {
            self.over = Some(verdict);
        }
    }

    fn role_verdict(&self, at: usize) -> Option<bool> {
        let (plan, fate) = (&self.scheme.roles[at], &self.roles[at]);
        let (well, badly) = (fate.count(true) as i32, fate.count(false) as i32);
        if plan.min_succeeded > 0 && well >= plan.min_succeeded {
            return Some(true);
        }
        if plan.max_failed >= 0 && badly >= plan.max_failed.max(1) {
            return Some(false);
        }
        if well + badly == plan.replicas as i32 {
            return Some(plan.min_succeeded < 0);
        }
        None
    }

    fn hopeless(&self, at: usize) -> bool {
        let (plan, fate) = (&self.scheme.roles[at], &self.roles[at]);
        let lost = |(up, condition): &(usize, &str)| {
            *condition != "Completed" && self.roles[*up].over() && self.roles[*up].verdict == Some(false)
        };
        let gone = |fate: &Fate| fate.verdict.is_some() && !fate.began;
        let mates = self.scheme.roles.iter().zip(&self.roles).filter(|(role, _)| role.gang);
        // The gang of these worlds wants all of its members.
        let incomplete = plan.gang && mates.into_iter().any(|(_, fate)| gone(fate));
        fate.verdict.is_none() && (!fate.began && plan.after.iter().any(lost) || incomplete)
    }

    fn whole(&self) -> Option<bool> {
        for (plan, fate) in self.scheme.roles.iter().zip(&self.roles).filter(|(_, fate)| fate.over()) {
            let well = fate.verdict == Some(true);
            let own = if well { "RoleSucceeded" } else { "RoleFailed" };
            let mut events = plan.events.clone();
            if !events.iter().any(|(event, _)| *event != "RoleSucceeded") {
                events.push(("RoleFailed", "TaskSetFailed"));
            }
            for (event, action) in events {
                match action {
                    _ if event != own && event != "RoleCompleted" => {}
                    "TaskSetFailed" => return Some(false),
                    "TaskSetSucceeded" => return Some(true),
                    "TaskSetCompleted" => return Some(well),
                    _ => {}
                }
            }
        }
        let all = self.roles.iter().all(Fate::over);
        all.then(|| self.roles.iter().all(|fate| fate.verdict == Some(true)))
    }
}
