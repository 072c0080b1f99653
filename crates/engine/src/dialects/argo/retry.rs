//! Decides whether a failed attempt is retried, and when.

use std::time::Duration;

use octoflow_model::{
    NodeIx, Time,
    argo::{NodeList, Phase, RetryStrategy, Role, WorkflowFact},
};

use super::{
    call::{CallGate, NewNode},
    duration,
    node::Body,
    scope::Scope,
    turn::Turn,
    view::View,
};

/// Next action after a failed attempt.
#[derive(Debug, PartialEq)]
enum Next {
    AnotherAttempt,
    /// Another attempt, but not before this time; with the message to show meanwhile.
    Wait(Time, String),
    /// No more attempts; with the message of the retry node.
    Stop(String),
}

impl Turn<'_> {
    pub(super) fn visit_retry(&mut self, at: NodeIx) {
        let node = self.run.state.node(at);
        let Body::Retry { attempts } = &node.body else { return };
        let count = attempts.len() as u32;
        let Some(last) = attempts.last().copied() else { return self.attempt(at, 0) };
        let last_node = self.run.state.node(last);
        if !last_node.settled {
            return;
        }
        if !last_node.phase.bad() {
            let (phase, outputs) = (last_node.phase, last_node.outputs.as_deref().cloned().unwrap_or_default());
            return self.finish_with(at, phase, String::new(), outputs, NodeList::default());
        }
        if node.wake.is_some_and(|wake| self.now < wake) && !self.run.state.closes(at) {
            return;
        }
        if node.daemoned && self.is_dismissed(at) {
            return;
        }
        if let Some((phase, message)) = self.view().gave_up_before(at, last, count) {
            let outputs = self.run.state.node(last).outputs.as_deref().cloned().unwrap_or_default();
            return self.finish_with(at, phase, message, outputs, NodeList::default());
        }
        if self.view().attempted_before(at, count) {
            return self.attempt(at, count);
        }
        match self.after_failure(at, last, count) {
            Next::AnotherAttempt => self.attempt(at, count),
            Next::Wait(until, message) => self.decide(WorkflowFact::Backoff { node: at, at: self.now, until, message }),
            Next::Stop(message) => {
                let last = self.run.state.node(last);
                let (phase, outputs) = (last.phase, last.outputs.as_deref().cloned().unwrap_or_default());
                self.finish_with(at, phase, message, outputs, NodeList::default());
            }
        }
    }

    fn attempt(&mut self, retry: NodeIx, number: u32) {
        let boundary = self.run.state.node(retry).boundary;
        if self.run.state.closes(retry) {
            let message = self.view().closing_message();
            return self.finish(retry, Phase::Failed, message);
        }
        let compiled = self.run.compiled_of(retry).clone();
        let handler = matches!(self.run.state.node(retry).role, Role::Hook(_));
        // Replaying an attempt of the previous run is not subject to failing fast.
        let exempt = handler || self.view().attempted_before(retry, number);
        let gate = if self.run.keeps_slot(retry) {
            self.kept_gate(boundary, exempt)
        } else if exempt {
            self.handler_gate(boundary, &compiled.template)
        } else {
            self.gate(boundary, &compiled.template)
        };
        match gate {
            Some(CallGate::FailFast(_)) => return self.give_up(retry),
            Some(gate) => return self.park(retry, gate),
            None => {}
        }
        let node = self.run.state.node(retry);
        let inputs = node.inputs.as_deref().cloned().unwrap_or_default();
        let new_node = NewNode {
            name: format!("{}({number})", node.name),
            role: Role::Attempt(number),
            parent: Some(retry),
            boundary: node.boundary,
            after: retry.into(),
            followed: false,
            place: None,
        };
        self.enter(new_node, &compiled, inputs);
    }

    /// Ends a retry node like its last attempt, because its boundary fails fast and starts nothing more.
    fn give_up(&mut self, retry: NodeIx) {
        let Some(last) = self.view().last_attempt(retry) else {
            return self.finish(retry, Phase::Failed, super::steps::FAIL_FAST);
        };
        let last = self.run.state.node(last);
        let (phase, message) = (last.phase, last.message.as_deref().unwrap_or_default().to_owned());
        let outputs = last.outputs.as_deref().cloned().unwrap_or_default();
        self.finish_with(retry, phase, message, outputs, NodeList::default());
    }

    fn after_failure(&mut self, at: NodeIx, last: NodeIx, count: u32) -> Next {
        if self.run.state.closes(at) {
            return Next::Stop(match self.run.state.head.shutdown {
                Some(how) => format!("Stopped with strategy '{}'", how.word()),
                None => format!("retry exceeded workflow deadline {}", self.view().run_deadline().unwrap_or(self.now)),
            });
        }
        if let Some(why) = super::room::full(self.run.state.nodes.len(), self.world.max_nodes) {
            return Next::Stop(why);
        }
        let strategy = match self.strategy(at) {
            Ok(strategy) => strategy,
            Err(why) => return Next::Stop(why),
        };
        let wait = match self.view().backoff(&strategy, at, last, count) {
            Ok(wait) => wait,
            Err(message) => return Next::Stop(message),
        };
        if let Some(stop) = self.view().refuses(&strategy, at, last, count) {
            return Next::Stop(stop);
        }
        match wait {
            Some((until, span)) if self.now < until => Next::Wait(until, format!("Backoff for {}", in_words(span))),
            _ => Next::AnotherAttempt,
        }
    }

    fn strategy(&mut self, at: NodeIx) -> Result<RetryStrategy, String> {
        let instance = self.instance(at)?;
        Ok(self.run.program.retry(&instance.template).cloned().unwrap_or_default())
    }

    /// Returns the deadline that the retry strategy sets for an attempt that begins now.
    pub(super) fn attempt_latest(&mut self, retry: NodeIx) -> Option<Time> {
        let strategy = self.strategy(retry).ok()?;
        self.view().retry_latest(retry, &strategy)
    }
}

impl View<'_> {
    /// Computes when the next attempt may begin; fails with the message if that would exceed the maximum duration.
    fn backoff(
        &self,
        strategy: &RetryStrategy,
        at: NodeIx,
        last: NodeIx,
        count: u32,
    ) -> Result<Option<(Time, Duration)>, String> {
        let Some(backoff) = &strategy.backoff else { return Ok(None) };
        let state = &self.run.state;
        let latest = self.retry_latest(at, strategy);
        if latest.is_some_and(|latest| self.now >= latest) {
            return Err("Max duration limit exceeded".to_owned());
        }
        let Some(base) = &backoff.duration else { return Ok(None) };
        let base = duration::parse(&base.0)
            .ok_or_else(|| format!("retryStrategy.backoff.duration is not a duration: '{}'", base.0))?;
        let factor = backoff.factor.as_ref().and_then(|factor| factor.0.trim().parse::<f64>().ok());
        let cap = backoff.cap.as_ref().and_then(|cap| duration::parse(&cap.0));
        let span = exponential(base, factor, count, cap);
        let until = state.node(last).finished.unwrap_or(self.now).saturating_add(span);
        if latest.is_some_and(|latest| until > latest) {
            return Err("Backoff would exceed max duration limit".to_owned());
        }
        Ok(Some((until, span)))
    }

    /// Returns the time beyond which no attempt may run (`maxDuration`).
    pub(super) fn retry_latest(&self, at: NodeIx, strategy: &RetryStrategy) -> Option<Time> {
        let span = duration::parse(&strategy.backoff.as_ref()?.max_duration.as_ref()?.0)?;
        let first = self.run.state.node(at).attempts().first().map(|first| self.run.state.node(*first));
        // An attempt that is still queued has not begun.
        let started = first.filter(|first| first.phase != Phase::Pending).map_or(self.now, |first| first.started);
        Some(started.saturating_add(span))
    }

    /// Returns the message if the policy, the limit or the expression forbids another attempt.
    fn refuses(&self, strategy: &RetryStrategy, at: NodeIx, last: NodeIx, count: u32) -> Option<String> {
        let failed = self.run.state.node(last);
        let message = failed.message.as_deref().unwrap_or_default();
        let default = if strategy.expression.is_some() { "Always" } else { "OnFailure" };
        let policy = strategy.retry_policy.as_deref().filter(|policy| !policy.is_empty()).unwrap_or(default);
        let retried = match policy {
            "Always" => true,
            "OnFailure" => failed.phase == Phase::Failed,
            "OnError" => failed.phase == Phase::Error,
            "OnTransientError" => is_transient(message),
            unknown => return Some(format!("{unknown} is not a valid RetryPolicy")),
        };
        if !retried {
            return Some(message.to_owned());
        }
        if let Some(limit) = &strategy.limit {
            match limit.0.trim().parse::<i64>() {
                Ok(limit) if i64::from(count) > limit => return Some("No more retries left".to_owned()),
                Ok(_) => {}
                Err(_) => return Some(format!("retryStrategy.limit is not a whole number: '{}'", limit.0)),
            }
        }
        let expression = strategy.expression.as_deref()?;
        match self.retry_expression(expression, at, last) {
            Ok(true) => None,
            Ok(false) => Some("retryStrategy.expression evaluated to false".to_owned()),
            Err(why) => Some(format!("retryStrategy.expression could not be evaluated: {why}")),
        }
    }

    fn retry_expression(&self, expression: &str, at: NodeIx, last: NodeIx) -> Result<bool, String> {
        let mut locals = vec![("retries", self.attempt_number(last).to_string())];
        locals.extend(self.retry_facts(last, "-1"));
        let node = self.run.state.node(at);
        let compiled = self.run.compiled_of(at);
        let scope = Scope {
            locals: &locals,
            inputs: node.inputs.as_deref(),
            template: Some(&compiled.template),
            ..Scope::new(self.run, self.now).about(&self.run.state.node(last).name)
        };
        let text = super::substitute::fill(expression, &scope, super::substitute::Missing::Refuse)
            .map_err(|error| error.to_string())?;
        let value = scope.meter.evaluate(&text, &scope).map_err(|error| error.to_string())?;
        value.as_bool().ok_or_else(|| format!("it gave {} where true or false was expected", value.to_json()))
    }

    fn attempt_number(&self, at: NodeIx) -> u32 {
        let Role::Attempt(number) = self.run.state.node(at).role else { return 0 };
        number
    }

    /// Returns the `lastRetry.*` variables of an attempt: how the previous attempt ended.
    pub(super) fn last_retry(&self, retry: NodeIx, attempt: NodeIx, no_code: &str) -> Vec<(&'static str, String)> {
        let Body::Retry { attempts } = &self.run.state.node(retry).body else { return Vec::new() };
        match attempts.iter().rev().find(|before| **before < attempt) {
            Some(before) => self.retry_facts(*before, no_code),
            None => vec![
                ("lastRetry.exitCode", no_code.to_owned()),
                ("lastRetry.status", String::new()),
                ("lastRetry.duration", "0".to_owned()),
                ("lastRetry.message", String::new()),
            ],
        }
    }

    fn retry_facts(&self, attempt: NodeIx, no_code: &str) -> Vec<(&'static str, String)> {
        let node = self.run.state.node(attempt);
        let code = node.outputs.as_deref().and_then(|outputs| outputs.exit_code.clone());
        let span = node.finished.unwrap_or(self.now).since(node.started);
        vec![
            ("lastRetry.exitCode", code.unwrap_or_else(|| no_code.to_owned())),
            ("lastRetry.status", node.phase.word().to_owned()),
            ("lastRetry.duration", span.as_secs_f64().to_string()),
            ("lastRetry.message", node.message.as_deref().unwrap_or_default().to_owned()),
        ]
    }
}

/// Computes the exponential backoff: base times factor to the power of the retries so far, limited by the cap and by a
/// century.
fn exponential(base: Duration, factor: Option<f64>, attempts: u32, cap: Option<Duration>) -> Duration {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let cap = cap.unwrap_or(LONGEST).min(LONGEST);
    let power = attempts.saturating_sub(1).min(10_000);
    let waited = base.as_secs_f64() * factor.filter(|factor| *factor > 0.0).unwrap_or(1.0).powi(power as i32);
    if waited.is_finite() && waited < cap.as_secs_f64() { Duration::from_secs_f64(waited) } else { cap }
}

/// Whether the message names an environment error that tends to pass.
fn is_transient(message: &str) -> bool {
    const SIGNS: [&str; 8] = [
        "transient",
        "timeout",
        "timed out",
        "connection refused",
        "connection reset",
        "temporarily unavailable",
        "too many requests",
        "no space left",
    ];
    let message = message.to_lowercase();
    SIGNS.iter().any(|sign| message.contains(sign))
}

/// Formats a duration, such as `4 seconds` or `1 minute 30 seconds`.
fn in_words(span: Duration) -> String {
    let total = span.as_secs();
    if total == 0 {
        return format!("{} milliseconds", span.as_millis());
    }
    let parts =
        [(total / 86_400, "day"), (total / 3600 % 24, "hour"), (total / 60 % 60, "minute"), (total % 60, "second")];
    let words = parts.iter().filter(|(count, _)| *count > 0).take(2);
    let words: Vec<String> =
        words.map(|(count, unit)| format!("{count} {unit}{}", if *count == 1 { "" } else { "s" })).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_by_the_factor_and_never_overflows() {
        let second = Duration::from_secs(1);
        assert_eq!(exponential(second, Some(2.0), 1, None), second);
        assert_eq!(exponential(second, Some(2.0), 3, None), Duration::from_secs(4));
        assert_eq!(exponential(second, Some(2.0), 9, Some(Duration::from_secs(5))), Duration::from_secs(5));
        assert_eq!(exponential(second, None, 9, None), second);
        assert!(exponential(second, Some(1e300), 4_000_000, None) > Duration::from_secs(1_000_000));
    }

    #[test]
    fn waits_are_told_in_words() {
        assert_eq!(in_words(Duration::from_secs(4)), "4 seconds");
        assert_eq!(in_words(Duration::from_secs(60)), "1 minute");
        assert_eq!(in_words(Duration::from_secs(3725)), "1 hour 2 minutes");
        assert_eq!(in_words(Duration::from_millis(250)), "250 milliseconds");
    }
}
