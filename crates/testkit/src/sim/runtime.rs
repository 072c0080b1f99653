//! A runtime as the port describes it, made of nothing but the calendar. It outlives crashes of the controller.
//! How a task ends and what it leaves is a function of the seed and the task's name; when, is drawn.

pub(crate) mod answer;

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::{
    AttemptId, Order, Report, RunId, Task, Time,
    order::{End, Exit},
    pod::MemberEnd,
};

use super::{
    calendar::{Calendar, Event, Moment, ticks},
    draw::Draw,
    failure::{Broken, Guarantee, broken},
};

pub(super) struct Runtime {
    seed: u64,
    draw: Draw,
    attempts: BTreeMap<AttemptId, Attempt>,
    /// Every attempt whose process was ever started.
    started: BTreeSet<AttemptId>,
    /// Attempts whose end is durable with the controller.
    forgotten: BTreeSet<AttemptId>,
    /// Attempts that were here when everything was lost.
    gone: BTreeSet<AttemptId>,
    /// It cannot even say any more which attempts it was given.
    amnesia: bool,
}

struct Attempt {
    task: Box<Task>,
    state: State,
    told_to_end: bool,
    killed: bool,
}

enum State {
    Starting,
    Running { since: Time },
    Ended { report: Report },
}

impl Runtime {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            draw: Draw::new(seed, "runtime"),
            attempts: BTreeMap::new(),
            started: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            gone: BTreeSet::new(),
            amnesia: false,
        }
    }

    pub(super) fn send(&mut self, order: &Order, now: Time, calendar: &mut Calendar) -> Result<(), Broken> {
        let id = order.attempt();
        match order {
            Order::Start { task, .. } => {
                if self.attempts.contains_key(&id) || self.gone.contains(&id) || self.forgotten.contains(&id) {
                    return broken(
                        Guarantee::Fenced,
                        format!("attempt {id} ({}) is ordered to start a second time", task.name),
                    );
                }
                self.start(id, task.clone(), now, calendar)
            }
            Order::Stop { .. } => {
                self.end(id, now, calendar, false);
                Ok(())
            }
            Order::Kill { .. } => {
                self.end(id, now, calendar, true);
                Ok(())
            }
            Order::Forget { .. } => {
                if let Some(attempt) = self.attempts.remove(&id) {
                    if !matches!(attempt.state, State::Ended { .. }) {
                        return broken(
                            Guarantee::Fenced,
                            format!("attempt {id} ({}) is forgotten while it runs", attempt.task.name),
                        );
                    }
                    self.forgotten.insert(id);
                }
                Ok(())
            }
        }
    }

    fn start(&mut self, id: AttemptId, task: Box<Task>, now: Time, calendar: &mut Calendar) -> Result<(), Broken> {
        if !self.started.insert(id) {
            return broken(Guarantee::Fenced, format!("attempt {id} ({}) is started a second time", task.name));
        }
        let delay = if self.draw.chance(20) { 0 } else { self.draw.below(30) };
        calendar.put(now.saturating_add(ticks(delay)), Event::Task(id, Moment::Begin));
        self.attempts.insert(id, Attempt { task, state: State::Starting, told_to_end: false, killed: false });
        Ok(())
    }

    fn end(&mut self, id: AttemptId, now: Time, calendar: &mut Calendar, at_once: bool) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        attempt.told_to_end = true;
        attempt.killed |= at_once;
        let (moment, wait) = if at_once {
            (Moment::Killed, ticks(1))
        } else if answer::stubborn(&attempt.task) {
            (Moment::Killed, attempt.task.grace + ticks(1))
        } else {
            (Moment::GiveIn, ticks(self.draw.below(20)))
        };
        calendar.put(now.saturating_add(wait), Event::Task(id, moment));
    }

    /// Something happens to a task by itself.
    pub(super) fn live(&mut self, id: AttemptId, moment: Moment, now: Time, calendar: &mut Calendar) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        let since = match (&attempt.state, moment) {
            (State::Ended { .. }, _) => return,
            (State::Starting, Moment::Begin) => return self.begin(id, now, calendar),
            (State::Starting, Moment::GiveIn | Moment::Killed) => None,
            (State::Running { since }, Moment::End | Moment::GiveIn | Moment::Killed) => Some(*since),
            (State::Starting, Moment::End) | (State::Running { .. }, Moment::Begin) => return,
        };
        let mut end = answer::end(self.seed, &attempt.task);
        match moment {
            Moment::GiveIn => end.exit = Exit::Signal(15),
            Moment::Killed => end.exit = Exit::Signal(9),
            Moment::Begin | Moment::End => {}
        }
        let started = since.filter(|_| answer::ran(&end.exit));
        let members = answer::members(&attempt.task, &end.exit, started, now);
        let end = End { started, members, ..end };
        let report = Report::Ended { attempt: id, at: now, end: Box::new(end) };
        attempt.state = State::Ended { report: report.clone() };
        self.report(report, now, calendar);
    }

    fn begin(&mut self, id: AttemptId, now: Time, calendar: &mut Calendar) {
        let Some(attempt) = self.attempts.get_mut(&id) else { return };
        attempt.state = State::Running { since: now };
        let endless = answer::endless(&attempt.task);
        if !endless {
            let span = match self.draw.below(10) {
                0 | 1 => 0,
                2..=7 => self.draw.below(100),
                _ => self.draw.below(1500),
            };
            calendar.put(now.saturating_add(ticks(span)), Event::Task(id, Moment::End));
        }
        // A task that is over quickly is sometimes only ever heard of at its end.
        let quick = self.draw.chance(15);
        // One whose end will say that it never ran is not heard of before: hooks would tell the two apart.
        let runs = answer::runs(self.seed, &attempt.task);
        if endless || !quick && runs {
            self.report(Report::Started { attempt: id, at: now }, now, calendar);
        }
        self.talk(id, now, calendar);
    }

    /// Some tasks tell how far they are, and some pods of their containers.
    fn talk(&mut self, id: AttemptId, now: Time, calendar: &mut Calendar) {
        if self.draw.chance(5) {
            // It says what is true anyway: whether it is heard before the end depends on time, and the tree must not.
            self.report(Report::Progress { attempt: id, at: now, done: 0, total: 1 }, now, calendar);
        }
        let Some(attempt) = self.attempts.get(&id) else { return };
        let begun: Vec<String> = attempt
            .task
            .pod
            .iter()
            .flat_map(|pod| &pod.members)
            .filter(|member| member.after.is_empty())
            .map(|member| member.container.name.clone())
            .collect();
        for name in begun {
            let member = Box::new(MemberEnd { name, started: Some(now), ended: None, exit: None });
            self.report(Report::Container { attempt: id, at: now, member }, now, calendar);
        }
    }

    /// Reports take their time, and now and then one comes twice.
    fn report(&mut self, report: Report, now: Time, calendar: &mut Calendar) {
        let delay = if self.draw.chance(50) { 0 } else { self.draw.below(20) };
        let at = now.saturating_add(ticks(delay));
        if self.draw.chance(10) {
            let again = at.saturating_add(ticks(self.draw.below(300)));
            calendar.put(again, Event::Report(report.clone()));
        }
        calendar.put(at, Event::Report(report));
    }

    /// The controller is back and tells what it believes to be alive. Runs that it leaves alone go on.
    pub(super) fn adopt(
        &mut self,
        believed: Vec<(AttemptId, Box<Task>)>,
        leave: &[RunId],
        now: Time,
        calendar: &mut Calendar,
    ) -> Result<(), Broken> {
        let known: BTreeSet<AttemptId> = believed.iter().map(|(id, _)| *id).collect();
        for (id, task) in believed {
            match self.attempts.get(&id).map(|attempt| &attempt.state) {
                Some(State::Starting) => {}
                Some(State::Running { since }) => {
                    let report = Report::Started { attempt: id, at: *since };
                    let endless = answer::endless(&task);
                    let told = self.draw.chance(60) || endless;
                    // As above: one whose end will say that it never ran is not heard of before.
                    if told && (endless || answer::runs(self.seed, &task)) {
                        self.report(report, now, calendar);
                    }
                }
                Some(State::Ended { report }) => {
                    let report = report.clone();
                    self.report(report, now, calendar);
                }
                None if self.forgotten.contains(&id) => {
                    return broken(
                        Guarantee::Fenced,
                        format!("attempt {id} ({}) ended durably and is believed alive", task.name),
                    );
                }
                None if self.amnesia || self.gone.contains(&id) => {
                    self.gone.insert(id);
                    self.report(lost(id, now), now, calendar);
                }
                None => self.start(id, task, now, calendar)?,
            }
        }
        self.attempts.retain(|id, _| leave.contains(&id.run) || known.contains(id));
        // After all believed attempts were told, memory begins anew.
        self.amnesia = false;
        Ok(())
    }

    /// Everything that ran is gone. What had ended before is still known unless memory is lost as well.
    pub(super) fn collapse(&mut self, amnesia: bool, controller_is_up: bool, now: Time, calendar: &mut Calendar) {
        let lives = |attempt: &Attempt| amnesia || !matches!(attempt.state, State::Ended { .. });
        let dead: Vec<AttemptId> =
            self.attempts.iter().filter(|(_, attempt)| lives(attempt)).map(|(id, _)| *id).collect();
        for id in dead {
            self.attempts.remove(&id);
            self.gone.insert(id);
            if controller_is_up {
                self.report(lost(id, now), now, calendar);
            }
        }
        self.amnesia |= amnesia;
    }

    /// These attempts are gone, with their machine. Some may never have arrived there.
    pub(super) fn lose(&mut self, lost_ids: &[AttemptId], tell: bool, now: Time, calendar: &mut Calendar) {
        for id in lost_ids {
            let over = self.attempts.get(id).is_some_and(|attempt| matches!(attempt.state, State::Ended { .. }));
            if over || self.forgotten.contains(id) {
                continue;
            }
            self.attempts.remove(id);
            if self.gone.insert(*id) && tell {
                self.report(lost(*id, now), now, calendar);
            }
        }
    }

    /// It is here, or will be told lost: somebody answers for it.
    pub(super) fn answers_for(&self, id: AttemptId) -> bool {
        self.attempts.contains_key(&id) || self.gone.contains(&id)
    }

    /// An attempt that should end knows it.
    pub(super) fn told_to_end(&self, id: AttemptId) -> bool {
        match self.attempts.get(&id) {
            Some(attempt) => attempt.told_to_end || matches!(attempt.state, State::Ended { .. }),
            None => true,
        }
    }

    /// An attempt that must not be given time to end was killed.
    pub(super) fn killed(&self, id: AttemptId) -> bool {
        self.attempts.get(&id).is_none_or(|attempt| attempt.killed || matches!(attempt.state, State::Ended { .. }))
    }

    pub(super) fn alive(&self) -> Vec<AttemptId> {
        let alive = |attempt: &Attempt| !matches!(attempt.state, State::Ended { .. });
        self.attempts.iter().filter(|(_, attempt)| alive(attempt)).map(|(id, _)| *id).collect()
    }
}

fn lost(attempt: AttemptId, at: Time) -> Report {
    Report::Lost { attempt, at, why: "the runtime went down".to_owned() }
}

#[cfg(test)]
mod tests {
    use octoflow_model::NodeIx;

    use super::{super::calendar::DAWN, *};

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    fn start(task: u32) -> Order {
        Order::Start { attempt: attempt(task), task: Box::default() }
    }

    /// Lets everything happen that is going to, and gives back what the engine would hear.
    fn reports(runtime: &mut Runtime, calendar: &mut Calendar) -> Vec<Report> {
        let mut heard = Vec::new();
        while let Some((at, event)) = calendar.pop_until(Time(i64::MAX)) {
            match event {
                Event::Task(id, moment) => runtime.live(id, moment, at, calendar),
                Event::Report(report) => heard.push(report),
                other => unreachable!("nobody put down {other:?}"),
            }
        }
        heard
    }

    #[test]
    fn a_second_start_of_one_attempt_is_noticed() {
        let (mut runtime, mut calendar) = (Runtime::new(1), Calendar::default());
        runtime.send(&start(1), DAWN, &mut calendar).unwrap();
        assert_eq!(runtime.send(&start(1), DAWN, &mut calendar).unwrap_err().0, Guarantee::Fenced);
    }

    #[test]
    fn forgetting_what_still_runs_is_noticed() {
        let (mut runtime, mut calendar) = (Runtime::new(1), Calendar::default());
        runtime.send(&start(1), DAWN, &mut calendar).unwrap();
        let forget = Order::Forget { attempt: attempt(1) };
        assert_eq!(runtime.send(&forget, DAWN, &mut calendar).unwrap_err().0, Guarantee::Fenced);
    }

    #[test]
    fn what_ended_while_the_controller_was_down_is_told_when_it_is_back() {
        let (mut runtime, mut calendar) = (Runtime::new(1), Calendar::default());
        runtime.send(&start(1), DAWN, &mut calendar).unwrap();
        reports(&mut runtime, &mut calendar);
        let believed = vec![(attempt(1), Box::default()), (attempt(2), Box::default())];
        runtime.adopt(believed, &[], DAWN, &mut calendar).unwrap();
        let heard = reports(&mut runtime, &mut calendar);
        let ended = |task| {
            heard.iter().any(|report| matches!(report, Report::Ended { .. }) && report.attempt() == attempt(task))
        };
        assert!(ended(1), "the old one is told again");
        assert!(ended(2), "the one that never arrived is started");
    }

    #[test]
    fn what_was_lost_is_told_lost_and_never_started_again() {
        let (mut runtime, mut calendar) = (Runtime::new(1), Calendar::default());
        runtime.send(&start(1), DAWN, &mut calendar).unwrap();
        runtime.collapse(false, false, DAWN, &mut calendar);
        runtime.adopt(vec![(attempt(1), Box::default())], &[], DAWN, &mut calendar).unwrap();
        let heard = reports(&mut runtime, &mut calendar);
        assert!(!heard.is_empty() && heard.iter().all(|report| matches!(report, Report::Lost { .. })), "{heard:?}");
    }

    #[test]
    fn whatever_the_controller_does_not_know_is_ended() {
        let (mut runtime, mut calendar) = (Runtime::new(1), Calendar::default());
        runtime.send(&start(1), DAWN, &mut calendar).unwrap();
        runtime.adopt(Vec::new(), &[], DAWN, &mut calendar).unwrap();
        assert_eq!(runtime.alive(), []);
    }
}
