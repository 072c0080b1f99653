//! Several runtimes as one: each task goes to the runtime that can execute it, and later orders follow it there. Only
//! knows which runtime has which attempt.

use std::collections::HashMap;

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::Order,
    request::Request,
    task::Task,
};

use crate::port::{Health, Runtime};

/// Runtime of a task that is a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OtherRuntime {
    Calls,
    Objects,
}

pub struct Router {
    /// Runtime of everything that runs as a process or a container.
    tasks: Box<dyn Runtime>,
    calls: Box<dyn Runtime>,
    objects: Box<dyn Runtime>,
    /// Attempts that are not with `tasks`, until they are forgotten.
    others: HashMap<AttemptId, OtherRuntime>,
}

impl Router {
    pub fn new(tasks: Box<dyn Runtime>, calls: Box<dyn Runtime>, objects: Box<dyn Runtime>) -> Self {
        Self { tasks, calls, objects, others: HashMap::new() }
    }

    fn sort<T>(&mut self, items: Vec<T>, mut place: impl FnMut(&mut Self, &T) -> Option<OtherRuntime>) -> [Vec<T>; 3] {
        let [mut tasks, mut calls, mut objects] = [Vec::new(), Vec::new(), Vec::new()];
        for item in items {
            match place(self, &item) {
                None => tasks.push(item),
                Some(OtherRuntime::Calls) => calls.push(item),
                Some(OtherRuntime::Objects) => objects.push(item),
            }
        }
        [tasks, calls, objects]
    }

    fn take(&mut self, attempt: AttemptId, task: &Task) -> Option<OtherRuntime> {
        let others = match task.call.as_deref()? {
            Request::Http(_) | Request::Probe(_) => OtherRuntime::Calls,
            Request::Object(_)
            | Request::Listing(_)
            | Request::Make(_)
            | Request::Remove(_)
            | Request::Submit(_)
            | Request::Builtin(_) => OtherRuntime::Objects,
        };
        self.others.insert(attempt, others);
        Some(others)
    }
}

impl Runtime for Router {
    fn send(&mut self, orders: Vec<Order>) {
        let [tasks, calls, objects] = self.sort(orders, |router, order| match order {
            Order::Start { attempt, task } => router.take(*attempt, task),
            Order::Stop { attempt } | Order::Kill { attempt } => router.others.get(attempt).copied(),
            Order::Forget { attempt } => router.others.remove(attempt),
        });
        for (place, orders) in [(&mut self.tasks, tasks), (&mut self.calls, calls), (&mut self.objects, objects)] {
            if !orders.is_empty() {
                place.send(orders);
            }
        }
    }

    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]) {
        let [tasks, calls, objects] = self.sort(believed, |router, (attempt, task)| router.take(*attempt, task));
        // The process runtime must be told even that nothing is believed to run.
        self.tasks.adopt(tasks, leave);
        self.calls.adopt(calls, leave);
        self.objects.adopt(objects, leave);
    }

    /// Returns the health of the process runtime; the other two are threads of this process.
    fn health(&self) -> Health {
        self.tasks.health()
    }

    fn close(self: Box<Self>) {
        self.calls.close();
        self.objects.close();
        self.tasks.close();
    }
}
