//! A runtime that runs nothing: every attempt starts and succeeds at once. For benchmarks of everything but the
//! processes.

use std::{sync::mpsc, thread};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Collected, End, Exit, Order, Report},
    pod::MemberEnd,
    task::Task,
};

use crate::{
    clock::now,
    port::{Runtime, Sink},
};

/// Reports come from a separate thread, as from every real runtime.
pub struct NullRuntime {
    orders: mpsc::Sender<Vec<Order>>,
}

impl NullRuntime {
    pub fn new(sink: Sink) -> Self {
        let (orders, inbox) = mpsc::channel::<Vec<Order>>();
        thread::spawn(move || {
            while let Ok(first) = inbox.recv() {
                let more = inbox.try_iter().flatten();
                let reports: Vec<Report> = first.into_iter().chain(more).flat_map(answer).collect();
                if !reports.is_empty() {
                    sink(reports);
                }
            }
        });
        Self { orders }
    }
}

impl Runtime for NullRuntime {
    fn send(&mut self, orders: Vec<Order>) {
        // The thread lives as long as this value, unless the sink panicked; then there is no receiver anyway.
        let _ = self.orders.send(orders);
    }

    /// Starts every attempt: nothing survives a restart here, and nothing was lost.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, _: &[RunId]) {
        self.send(believed.into_iter().map(|(attempt, task)| Order::Start { attempt, task }).collect());
    }

    fn close(self: Box<Self>) {}
}

/// Returns the report for an order. A stop or kill always comes too late, since an attempt ends the moment it starts.
fn answer(order: Order) -> Option<Report> {
    match order {
        Order::Start { attempt, task } => {
            let at = now();
            let members = task.pod.iter().flat_map(|pod| &pod.members).map(|member| MemberEnd {
                name: member.container.name.clone(),
                started: Some(at),
                ended: Some(at),
                exit: Some(Exit::Code(0)),
            });
            let end = End {
                exit: Exit::Code(0),
                started: Some(at),
                collected: Collected::default(),
                log_truncated: false,
                log_bytes: 0,
                members: members.collect(),
            };
            Some(Report::Ended { attempt, at, end: Box::new(end) })
        }
        Order::Stop { .. } | Order::Kill { .. } | Order::Forget { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::ids::NodeIx;

    use super::*;

    #[test]
    fn every_start_ends_well_and_nothing_else_reports() {
        let (sender, reports) = mpsc::channel();
        let mut runtime = NullRuntime::new(Box::new(move |batch| sender.send(batch).unwrap()));
        let attempt = |task| AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 };
        let start = |task| Order::Start { attempt: attempt(task), task: Box::default() };
        runtime.send(vec![
            start(1),
            Order::Stop { attempt: attempt(1) },
            start(2),
            Order::Forget { attempt: attempt(1) },
        ]);
        runtime.adopt(vec![(attempt(3), Box::default())], &[]);
        drop(runtime);
        let ended: Vec<AttemptId> = reports.iter().flatten().map(|report| report.attempt()).collect();
        assert_eq!(ended, [attempt(1), attempt(2), attempt(3)]);
    }
}
