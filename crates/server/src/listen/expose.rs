//! Renders the metrics in the Prometheus text format. Names are stable; Argo's where the meaning is the same.

use std::fmt::Write;

use octoflow_control::{
    gauge::{Gauges, Histogram, PhaseEntry, PreemptionKind, Quantities, QueueReport},
    hooks::registry::HookSummary,
};
use octoflow_model::Revision;

use crate::app::App;

/// Argo's metrics cover this kind only.
const WORKFLOW: &str = "Workflow";

/// Data of the controller for one scrape.
pub(crate) struct Scrape {
    pub gauges: Gauges,
    /// Counts by kind and phase.
    pub phases: Vec<(&'static str, &'static str, u64)>,
    pub revision: Revision,
    /// Custom metrics of runs, already rendered.
    pub custom: String,
    /// Life hooks with their deliveries.
    pub hooks: Vec<HookSummary>,
}

pub(crate) fn text(app: &App, scrape: &Scrape) -> String {
    let mut page = Page::default();
    of_runs(&mut page, scrape);
    of_queues(&mut page, scrape);
    of_scheduling(&mut page, scrape);
    of_store(&mut page, app, scrape);
    of_server(&mut page, app);
    of_hooks(&mut page, scrape);
    page.0.push_str(&scrape.custom);
    page.0
}

/// A number of a life hook: its name, its type, what it says, and its value.
type HookNumber = (&'static str, &'static str, &'static str, fn(&HookSummary) -> u64);

fn of_hooks(page: &mut Page, scrape: &Scrape) {
    let numbers: [HookNumber; 5] = [
        ("octoflow_hook_pending", "gauge", "Events that a life hook has not acknowledged.", |hook| hook.pending),
        ("octoflow_hook_dead", "gauge", "Events that were given up for a life hook and are kept.", |hook| hook.dead),
        ("octoflow_hook_delivered_total", "counter", "Events acknowledged since the server started.", |hook| {
            hook.totals.delivered
        }),
        ("octoflow_hook_retried_total", "counter", "Deliveries to be repeated since the server started.", |hook| {
            hook.totals.retried
        }),
        ("octoflow_hook_given_up_total", "counter", "Events given up since the server started.", |hook| {
            hook.totals.dead
        }),
    ];
    for (name, kind, about, value) in numbers {
        page.head(name, kind, about);
        for hook in &scrape.hooks {
            page.row(name, &[("plugin", &hook.plugin)], value(hook) as f64);
        }
    }
}

fn of_runs(page: &mut Page, scrape: &Scrape) {
    let gauges = &scrape.gauges;
    page.head("argo_workflows_gauge", "gauge", "Workflows by the phase they are in.");
    for (_, phase, count) in scrape.phases.iter().filter(|(kind, ..)| *kind == WORKFLOW) {
        page.row("argo_workflows_gauge", &[("phase", phase)], *count as f64);
    }
    page.head("argo_workflows_total_count", "counter", "Workflows that entered a phase since the server started.");
    for (PhaseEntry { namespace, phase, .. }, count) in gauges.entered.iter().filter(|(one, _)| one.kind == WORKFLOW) {
        page.row("argo_workflows_total_count", &[("namespace", namespace), ("phase", phase)], *count as f64);
    }
    page.head("octoflow_runs", "gauge", "Runs by their kind and the phase they are in.");
    for (kind, phase, count) in &scrape.phases {
        page.row("octoflow_runs", &[("kind", kind), ("phase", phase)], *count as f64);
    }
    page.head("octoflow_runs_entered_total", "counter", "Runs that entered a phase since the server started.");
    for (PhaseEntry { kind, namespace, phase }, count) in &gauges.entered {
        let labels = [("kind", *kind), ("namespace", namespace), ("phase", phase)];
        page.row("octoflow_runs_entered_total", &labels, *count as f64);
    }
    page.head("argo_workflows_pods_gauge", "gauge", "Tasks that have a place, and tasks that wait for one.");
    page.row("argo_workflows_pods_gauge", &[("phase", "Running")], gauges.slots_used as f64);
    page.row("argo_workflows_pods_gauge", &[("phase", "Pending")], gauges.tasks_waiting as f64);
    let duration = "argo_workflows_operation_duration_seconds";
    page.head(duration, "histogram", "How long one turn of the engine took, with handing over what it decided.");
    page.buckets(duration, &[], &gauges.turns, gauges.turns_seconds);
    page.one("argo_workflows_is_leader", "gauge", "This server decides.", 1.0);
    page.one("octoflow_runs_open", "gauge", "Runs that are not over.", gauges.runs_open as f64);
    page.one("octoflow_slots", "gauge", "Tasks that may run at the same time.", gauges.slots as f64);
    page.one("octoflow_slots_used", "gauge", "Tasks that run.", gauges.slots_used as f64);
    let free = gauges.slots.saturating_sub(gauges.slots_used);
    page.one("octoflow_slots_free", "gauge", "Room for further tasks.", free as f64);
    page.one("octoflow_locks_held", "gauge", "Mutexes and semaphores in use, by holder.", gauges.locks_held as f64);
    page.one("octoflow_lock_waiters", "gauge", "Those who wait for a lock.", gauges.lock_waiters as f64);
    let unexamined = gauges.lock_waiters_unexamined as f64;
    let what = "Those who wait for a lock while they are too many to find circles of waiting among them.";
    page.one("octoflow_lock_waiters_unexamined", "gauge", what, unexamined);
}

/// A gauge of a queue: its name, what it says, and its value.
type QueueGauge<'g> = (&'g str, &'g str, &'g dyn Fn(&QueueReport) -> f64);

/// Amounts of a queue: their name, what they say, and where they are.
type QueueAmounts = (&'static str, &'static str, fn(&QueueReport) -> &Quantities);

/// Queues, under Volcano's names.
fn of_queues(page: &mut Page, scrape: &Scrape) {
    let amount = |amounts: &Quantities, name: &str| amounts.get(name).copied().unwrap_or(0) as f64;
    let gauges: [QueueGauge<'_>; 9] = [
        ("allocated_milli_cpu", "Thousandths of a core in use.", &|queue| amount(&queue.allocated, "cpu")),
        ("allocated_memory_bytes", "Memory in use.", &|queue| amount(&queue.allocated, "memory")),
        ("deserved_milli_cpu", "Thousandths of a core it deserves.", &|queue| amount(&queue.deserved, "cpu")),
        ("deserved_memory_bytes", "Memory it deserves.", &|queue| amount(&queue.deserved, "memory")),
        ("share", "The largest part in use of what it deserves.", &|queue| queue.share),
        ("weight", "Its weight among its siblings.", &|queue| f64::from(queue.spec.weight)),
        ("overused", "Whether it uses more than it deserves.", &|queue| f64::from(u8::from(queue.share > 1.0))),
        ("pod_group_running_count", "Tasks that run.", &|queue| queue.running as f64),
        ("pod_group_pending_count", "Tasks that wait.", &|queue| queue.pending as f64),
    ];
    for (name, about, value) in gauges {
        let name = format!("volcano_queue_{name}");
        page.head(&name, "gauge", about);
        for queue in &scrape.gauges.queues {
            page.row(&name, &[("queue_name", &queue.spec.name)], value(queue));
        }
    }
    let parts: [QueueAmounts; 2] = [
        ("allocated", "Other resources in use.", |queue| &queue.allocated),
        ("deserved", "Other resources it deserves.", |queue| &queue.deserved),
    ];
    for (part, about, of) in parts {
        let name = format!("volcano_queue_{part}_scalar_resources");
        page.head(&name, "gauge", about);
        for queue in &scrape.gauges.queues {
            let others = of(queue).iter().filter(|(resource, _)| !matches!(resource.as_str(), "cpu" | "memory"));
            for (resource, amount) in others {
                page.row(&name, &[("queue_name", &queue.spec.name), ("resource", resource)], *amount as f64);
            }
        }
    }
}

/// What the scheduler counts, under Volcano's names where the meaning is the same.
fn of_scheduling(page: &mut Page, scrape: &Scrape) {
    let counters = &scrape.gauges.scheduling;
    let latency = "volcano_e2e_scheduling_latency_milliseconds";
    page.head(latency, "histogram", "How long tasks waited until they were started.");
    page.buckets(latency, &[], &counters.latency.below(), counters.latency.sum_millis());
    let attempts = "volcano_total_preemption_attempts";
    page.one(attempts, "counter", "How often victims were looked for.", counters.preemption_attempts as f64);
    let ended = "octoflow_preemptions_total";
    page.head(ended, "counter", "Tasks that were ended and wait again, by the reason.");
    let kinds =
        [PreemptionKind::Reclaimed, PreemptionKind::LowerClass, PreemptionKind::Drained, PreemptionKind::Tainted];
    for kind in kinds {
        let count = counters.preemptions.get(&kind).copied().unwrap_or(0);
        page.row(ended, &[("reason", kind.word())], count as f64);
    }
    let done = "volcano_queue_pod_group_completed_count";
    page.head(done, "counter", "Tasks that have ended since the server started.");
    for queue in &scrape.gauges.queues {
        page.row(done, &[("queue_name", &queue.spec.name)], queue.completed as f64);
    }
}

fn of_store(page: &mut Page, app: &App, scrape: &Scrape) {
    let store = app.registry.controller().store();
    let stats = store.stats();
    let depth = "argo_workflows_queue_depth_gauge";
    page.head(depth, "gauge", "What waits: tasks for room, decisions for the disk.");
    page.row(depth, &[("queue_name", "task_queue")], scrape.gauges.tasks_waiting as f64);
    page.row(depth, &[("queue_name", "store_queue")], store.queued() as f64);
    let seconds = "octoflow_store_commit_seconds";
    page.head(seconds, "histogram", "How long a transaction took, with its sync.");
    page.tally(seconds, &[], &stats.seconds);
    let batches = "octoflow_store_commit_batches";
    page.head(batches, "histogram", "How many decisions went into one transaction.");
    page.tally(batches, &[], &stats.batches);
    let bytes = stats.bytes.load(std::sync::atomic::Ordering::Relaxed);
    page.one("octoflow_store_bytes_total", "counter", "Bytes handed to the store.", bytes as f64);
    page.one("octoflow_journal_revision", "gauge", "The last commit.", scrape.revision.0 as f64);
}

fn of_server(page: &mut Page, app: &App) {
    let requests = "octoflow_http_requests_total";
    page.head(requests, "counter", "Requests by face, method and status.");
    for ((face, method, status), count) in app.meter.requests() {
        page.row(requests, &[("face", face), ("method", method), ("code", &status.to_string())], count as f64);
    }
    let seconds = "octoflow_http_request_seconds";
    page.head(seconds, "histogram", "How long until an answer began, by face.");
    for (face, tally) in app.meter.seconds() {
        page.tally(seconds, &[("face", face)], tally);
    }
    page.one("octoflow_http_connections", "gauge", "Open connections.", app.meter.connections() as f64);
    let away = app.meter.connections_refused() as f64;
    page.one("octoflow_http_connections_refused_total", "counter", "Connections there was no room for.", away);
    page.one("octoflow_watches", "gauge", "Open watches and followed logs.", app.streams.open() as f64);
    let unsent = app.streams.unsent() as f64;
    page.one("octoflow_stream_unsent_bytes", "gauge", "Bytes of streams that clients have not taken yet.", unsent);
    let up = app.started.elapsed().as_secs_f64();
    page.one("octoflow_uptime_seconds", "gauge", "Since the server started.", up);
    page.head("octoflow_build_info", "gauge", "The version of this server.");
    page.row("octoflow_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.row(name, &[], value);
    }

    fn row(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let inside: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if inside.is_empty() { String::new() } else { format!("{{{}}}", inside.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn tally(&mut self, name: &str, labels: &[(&str, &str)], tally: &Histogram) {
        self.buckets(name, labels, &tally.below(), tally.sum());
    }

    fn buckets(&mut self, name: &str, labels: &[(&str, &str)], below: &[(f64, u64)], sum: f64) {
        let mut count = 0;
        for (bound, total) in below {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.row(&format!("{name}_bucket"), &labels, *total as f64);
            count = *total;
        }
        self.row(&format!("{name}_sum"), labels, sum);
        self.row(&format!("{name}_count"), labels, count as f64);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
