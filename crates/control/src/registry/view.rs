//! Views: kinds that are rendered and not stored. Pods and events are views of runs, nodes of this machine. A list
//! covers the newest runs and every open one, so that its cost is bounded however many runs there are.

use octoflow_engine::view::Pods;
pub(super) use octoflow_engine::view::uid;
use octoflow_model::Time;
use octoflow_store::{Cursor, Filter, LabelTest, Page, RunRow};
use serde_json::Value;

use super::{Fault, Kind, ListOptions, Listing, Registry, Selection, kinds, list::page, run::of_row};
use crate::clock;

mod node;
mod tracker;
mod wait;

pub(super) use node::{NodePart, is_node, rendered};
pub(super) use tracker::ViewTracker;

/// Number of newest runs that a list of views covers; beyond them only open ones.
const NEWEST_RUNS: usize = 1000;

/// Page size when reading runs from the index.
const PAGE: usize = 100;

/// Phases of open runs, of every kind.
fn open_phases() -> Vec<String> {
    let phases = kinds::of_runs().filter_map(Kind::dialect).flat_map(|dialect| dialect.phases);
    phases.filter(|phase| !phase.class.is_final()).map(|phase| phase.word.to_owned()).collect()
}

/// Views of a run at some time.
#[derive(Default)]
pub(super) struct Views {
    /// Objects, each with its sort key.
    pub items: Vec<(String, Value)>,
    /// Time at which a view disappears without any change to the run.
    pub until: Option<Time>,
}

impl Registry {
    pub(super) fn view(&self, kind: &'static Kind, namespace: &str, name: &str) -> Result<Option<Value>, Fault> {
        if kind.name == "Node" {
            return Ok(Some(self.node()?).filter(|node| node["metadata"]["name"] == name));
        }
        for row in self.candidates(kind, namespace, name)? {
            let found = self.views_of(kind, &row)?.into_iter().map(|(_, item)| item);
            if let Some(mut item) = found.into_iter().find(|item| item["metadata"]["name"] == name) {
                if *kind == kinds::core::POD {
                    self.explain_wait(&row, &mut item);
                }
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    pub(super) fn list_view(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing, Fault> {
        let revision = self.revision()?;
        let selection = &options.selection;
        if kind.name == "Node" {
            let node = self.node()?;
            let items = if selection.matches(&node) { vec![(String::new(), node)] } else { Vec::new() };
            return Ok(page(items, revision, &ListOptions { after: None, ..options.clone() }));
        }
        if let Some(event) = self.event_of_pod(kind, options)? {
            let items = if selection.matches(&event) { vec![event] } else { Vec::new() };
            return Ok(Listing { items, revision, next: None });
        }
        let mut runs = RunCursor::begin(self, kind, options)?;
        let limit = options.limit.unwrap_or(usize::MAX);
        let mut items: Vec<Value> = Vec::new();
        while let Some((row, from)) = runs.next(self)? {
            for (key, item) in self.views_of(kind, &row)? {
                if from.as_ref().is_some_and(|from| key <= *from) || !selection.matches(&item) {
                    continue;
                }
                if items.len() == limit {
                    return Ok(Listing { items, revision, next: Some(runs.place()) });
                }
                items.push(item);
                runs.listed_up_to(key);
            }
        }
        Ok(Listing { items, revision, next: None })
    }

    /// Returns the runs that a list of views covers.
    pub(super) fn runs_in_view(&self, kind: &'static Kind, options: &ListOptions) -> Result<Vec<RunRow>, Fault> {
        let mut runs = RunCursor::begin(self, kind, options)?;
        let mut rows = Vec::new();
        while let Some((row, _)) = runs.next(self)? {
            rows.push(row);
        }
        Ok(rows)
    }

    /// Returns the nodes.
    pub(super) fn view_all(&self, kind: &'static Kind) -> Result<Vec<Value>, Fault> {
        Ok(self.list_view(kind, &ListOptions::default())?.items)
    }

    /// Renders the views of this kind of a run now, each with its sort key.
    fn views_of(&self, kind: &Kind, row: &RunRow) -> Result<Vec<(String, Value)>, Fault> {
        Ok(self.render_views(kind, row, clock::now())?.items)
    }

    /// Renders the views of a run's current state as of the time `now`.
    pub(super) fn render_views(&self, kind: &Kind, row: &RunRow, now: Time) -> Result<Views, Fault> {
        let drawn = match kind.name {
            "Pod" => self.run_with_pods(row),
            // Of a run that is too large to render, only events about the run as a whole are shown.
            _ => self.listed_run(row),
        };
        let object = match drawn {
            // It was deleted meanwhile.
            Err(Fault::NotFound { .. }) => return Ok(Views::default()),
            object => object?,
        };
        // Runs of kinds unknown to this version have no views.
        let Some(view) = of_row(row).dialect().map(|dialect| dialect.view) else { return Ok(Views::default()) };
        let mut views = match *kind == kinds::core::POD {
            true => {
                let Pods { items, until } = view.pods(&object, now, self.handle().host.as_deref());
                Views { items, until }
            }
            false => Views { items: view.events(&object), until: None },
        };
        views.items.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(views)
    }

    /// Returns the run that a pod belongs or belonged to.
    pub(super) fn run_of_pod(&self, namespace: &str, pod: &str) -> Result<super::FoundRun, Fault> {
        let kind = &kinds::core::POD;
        for row in self.candidates(kind, namespace, pod)? {
            let Some(view) = of_row(&row).dialect().map(|dialect| dialect.view) else { continue };
            if view.has_pod(&self.run_with_pods(&row)?, &self.handle().attempts(row.run)?, pod) {
                return Ok(super::FoundRun { run: row.run, row });
            }
        }
        Err(Fault::NotFound { kind, name: pod.to_owned() })
    }

    /// Returns the runs that an object of that name could belong to: its name begins with theirs.
    fn candidates(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Vec<RunRow>, Fault> {
        let mut rows = Vec::new();
        let mark = if kind.name == "Event" { '.' } else { '-' };
        let ends = name.match_indices(mark).map(|(end, _)| end).chain([name.len()]);
        self.read(|reader| {
            for end in ends {
                for of in kinds::of_runs() {
                    rows.extend(reader.run_by_name(namespace, Some(of.key), &name[..end])?);
                }
            }
            // Pod names are cut if the run's name is very long.
            if rows.is_empty() && kind.name == "Pod" && name.len() > CUT_NAME_LENGTH {
                let prefix = name.get(..CUT_NAME_LENGTH).map(str::to_owned);
                let filter = Filter { namespace: Some(namespace.to_owned()), name_prefix: prefix, ..Filter::default() };
                rows.extend(reader.list(&filter, Page { limit: PAGE, after: None })?.0);
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Pod names of this length may have been cut.
const CUT_NAME_LENGTH: usize = 230;

/// Iterates over the runs that a list of views covers.
struct RunCursor {
    filter: Filter,
    /// Rows read from the index and not yet visited; the next one is last.
    rows: Vec<RunRow>,
    after: Option<Cursor>,
    seen: usize,
    more: bool,
    /// Key in the first run after which to continue.
    from: Option<String>,
    place: String,
}

impl RunCursor {
    fn begin(registry: &Registry, kind: &Kind, options: &ListOptions) -> Result<Self, Fault> {
        let filter = Filter { namespace: options.namespace.clone(), ..Filter::default() };
        let mut runs =
            Self { filter, rows: Vec::new(), after: None, seen: 0, more: true, from: None, place: String::new() };
        if let Some(name) = run_named(kind, &options.selection) {
            runs.more = false;
            runs.rows = match (&options.namespace, name) {
                (Some(namespace), Only::Run(of, name)) => registry.read(|reader| {
                    let kinds = kinds::of_runs().filter(|kind| of.is_none_or(|of| *kind == of));
                    let mut rows = Vec::new();
                    for kind in kinds {
                        rows.extend(reader.run_by_name(namespace, Some(kind.key), &name)?);
                    }
                    Ok(rows)
                })?,
                (Some(namespace), Only::Item(name)) => registry.candidates(kind, namespace, &name)?,
                (None, Only::Run(_, name) | Only::Item(name)) => {
                    let name_prefix = Some(name.get(..name.len().min(CUT_NAME_LENGTH)).unwrap_or(&name).to_owned());
                    let filter = Filter { name_prefix, ..runs.filter.clone() };
                    let rows = registry
                        .read(|reader| Ok(reader.list(&filter, Page { limit: NEWEST_RUNS, after: None })?.0))?;
                    if rows.is_empty() {
                        // An item's name is longer than its run's, so every run is visited.
                        runs.more = true;
                    }
                    rows
                }
            };
            runs.rows.reverse();
        }
        if let Some(token) = &options.after {
            runs.go_on(registry, token)?;
        }
        Ok(runs)
    }

    fn go_on(&mut self, registry: &Registry, token: &str) -> Result<(), Fault> {
        let bad = || Fault::BadRequest("the continuation is none that an earlier answer gave".to_owned());
        let mut parts = token.splitn(3, '/');
        let cursor: Cursor = parts.next().and_then(|text| text.parse().ok()).ok_or_else(bad)?;
        self.seen = parts.next().and_then(|text| text.parse().ok()).ok_or_else(bad)?;
        self.from = Some(parts.next().ok_or_else(bad)?.to_owned());
        if self.more {
            self.after = Some(cursor);
            self.rows.extend(registry.read(|reader| Ok(reader.run(cursor.run)?))?);
        } else {
            while self.rows.last().is_some_and(|row| row.run != cursor.run) {
                self.rows.pop();
            }
        }
        Ok(())
    }

    /// Returns the next run, and the key in it after which to continue.
    fn next(&mut self, registry: &Registry) -> Result<Option<(RunRow, Option<String>)>, Fault> {
        while self.rows.is_empty() && self.more {
            if self.seen >= NEWEST_RUNS {
                self.filter.phases = open_phases();
            }
            let limit = if self.seen >= NEWEST_RUNS { PAGE } else { PAGE.min(NEWEST_RUNS - self.seen) };
            let page = Page { limit, after: self.after };
            let (rows, next) = registry.read(|reader| Ok(reader.list(&self.filter, page)?))?;
            self.seen += rows.len();
            self.more = next.is_some();
            self.after = rows.last().map(|row| Cursor { created: row.created, run: row.run }).or(self.after);
            self.rows = rows;
            self.rows.reverse();
        }
        let Some(row) = self.rows.pop() else { return Ok(None) };
        let seen = self.seen.saturating_sub(self.rows.len());
        self.place = format!("{}/{seen}/", Cursor { created: row.created, run: row.run });
        Ok(Some((row, self.from.take())))
    }

    /// Records the key up to which the current run is listed, for the continuation token.
    fn listed_up_to(&mut self, key: String) {
        let end = self.place.match_indices('/').nth(1).map_or(self.place.len(), |(at, _)| at + 1);
        self.place.truncate(end);
        self.place.push_str(&key);
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

/// Returns whether a list or watch with this selection can match anything of the run.
pub(super) fn may_want(kind: &Kind, selection: &Selection, row: &RunRow) -> bool {
    match run_named(kind, selection) {
        Some(Only::Run(of, name)) => row.name == name && of.is_none_or(|of| row.kind == of.key),
        Some(Only::Item(name)) => name.len() > CUT_NAME_LENGTH || name.starts_with(&row.name),
        None => true,
    }
}

/// What alone can match a selection.
enum Only {
    /// Run of this kind, or of any kind.
    Run(Option<&'static Kind>, String),
    Item(String),
}

fn run_named(kind: &Kind, selection: &Selection) -> Option<Only> {
    let labels = selection.labels.0.iter().find_map(|test| {
        let LabelTest::Equals { key, value } = test else { return None };
        let of = kinds::of_runs().find(|kind| kind.dialect().is_some_and(|dialect| dialect.pod_label == key))?;
        Some(Only::Run(Some(of), value.clone()))
    });
    let field = |name: &str| {
        let test = selection.fields.0.iter().find(|test| test.equal && test.field == name);
        test.map(|test| test.value.clone())
    };
    let run =
        if kind.name == "Event" { field("involvedObject.name").map(|name| Only::Run(None, name)) } else { labels };
    run.or_else(|| field("metadata.name").map(Only::Item))
}
