//! Resolves variables at a place of the manifest, before the run.
//! Names that are only known at run time are accepted; names that can never exist are reported with the nearest name.

mod frame;
mod globals;

use std::{cell::OnceCell, collections::HashSet};

use octoflow_model::argo::Call;
use serde_json::Value;

use self::globals::WORKFLOW;
pub(super) use self::{frame::Frame, globals::Globals};
use super::{
    index::{CallPosition, TemplateEntry, TemplateType},
    name,
};

const LAST_RETRY: [&str; 4] = ["exitCode", "status", "duration", "message"];

/// Result of resolving a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The name will have a value.
    Known,
    /// The name belongs to this task of the DAG, which must be an ancestor.
    Task(usize),
    /// The name can have no value. [`StaticScope::help`] may suggest one.
    Unknown,
    /// The name has no value, and Argo leaves the text as it is; with the reason.
    Unfilled(&'static str),
    /// The name is no variable of this dialect.
    Foreign,
}

/// The calls that can be referred to.
#[derive(Clone, Copy)]
pub(super) enum VisibleCalls<'a> {
    None,
    /// From a template's outputs: all calls.
    All(&'a Frame<'a>),
    /// From a call: earlier groups, or other tasks. `ended` is true if the call itself has ended, as for its exit
    /// handler.
    From {
        frame: &'a Frame<'a>,
        site: CallPosition,
        ended: bool,
    },
}

/// The item of a loop.
pub(super) enum LoopItem<'a> {
    No,
    /// Known at run time only, or another call of the template has a loop.
    Any,
    Number,
    Listed {
        items: &'a [Value],
        keys: OnceCell<HashSet<String>>,
    },
}

pub(super) struct StaticScope<'a> {
    pub(super) globals: &'a Globals<'a>,
    /// The template; `None` for fields of the workflow itself.
    pub(super) entry: Option<&'a TemplateEntry<'a>>,
    /// Scope of the call around an inline template.
    pub(super) outer: Option<&'a StaticScope<'a>>,
    pub(super) view: VisibleCalls<'a>,
    pub(super) item: &'a LoopItem<'a>,
}

impl<'a> LoopItem<'a> {
    pub(super) fn of(call: &'a Call) -> Self {
        match call {
            Call { with_items: Some(items), .. } => Self::Listed { items, keys: OnceCell::new() },
            Call { with_param: Some(_), .. } => Self::Any,
            Call { with_sequence: Some(_), .. } => Self::Number,
            _ => Self::No,
        }
    }

    fn has(&self, field: &str) -> bool {
        match self {
            Self::Any => true,
            Self::No | Self::Number => false,
            Self::Listed { .. } => self.keys().is_some_and(|keys| keys.contains(field)),
        }
    }

    /// Returns the keys of listed items.
    fn keys(&self) -> Option<&HashSet<String>> {
        let Self::Listed { items, keys } = self else { return None };
        Some(keys.get_or_init(|| {
            let mut keys = HashSet::new();
            for item in *items {
                match item {
                    Value::Object(fields) => keys.extend(fields.keys().cloned()),
                    Value::Array(list) => keys.extend((0..list.len()).map(|index| format!("[{index}]"))),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
                }
            }
            keys
        }))
    }
}

impl StaticScope<'_> {
    /// Resolves the name in a tag, trimmed.
    pub(super) fn find(&self, name: &str) -> Found {
        let Some((root, rest)) = name.split_once('.') else {
            return match name {
                "item" if self.item_is_none() => Found::Unfilled("there is no loop here"),
                "retries" if !self.retried() => Found::Unfilled("the template has no retryStrategy"),
                "item" | "retries" => Found::Known,
                _ => Found::Foreign,
            };
        };
        match root {
            "workflow" => self.globals.find(rest),
            "inputs" => self.input(rest),
            "outputs" if self.output(rest) => Found::Known,
            "outputs" => Found::Unfilled("the template has no such output"),
            "item" => self.item_field(rest),
            "pod"
                if rest == "name"
                    && self.entry.is_some_and(|entry| {
                        entry.kind.leaf()
                            || matches!(entry.kind, TemplateType::Resource | TemplateType::Data | TemplateType::Unclear)
                    }) =>
            {
                Found::Known
            }
            "pod" => Found::Unknown,
            "steps" | "tasks" if rest == "name" || rest.starts_with("name.") => Found::Known,
            "steps" | "tasks" => self.call(root, rest),
            "lastRetry" if !self.retried() => Found::Unfilled("the template has no retryStrategy"),
            "lastRetry" if LAST_RETRY.contains(&rest) => Found::Known,
            "lastRetry" => Found::Unfilled("known are lastRetry.exitCode, .status, .duration and .message"),
            _ => Found::Foreign,
        }
    }

    /// Resolves a path of an expression. Paths that cannot be decided are accepted.
    pub(super) fn find_path(&self, path: &[String]) -> Found {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["inputs", "parameters" | "artifacts", _, ..] => self.input(&format!("{}.{}", words[1], words[2])),
            ["workflow", "parameters", name, ..] if !self.globals.parameter(name) => {
                self.globals.find(&format!("parameters.{name}"))
            }
            ["workflow", field, ..] if *field != "outputs" && !WORKFLOW.contains(field) => self.globals.find(field),
            ["workflow", "outputs", kind @ ("parameters" | "artifacts"), name, ..] => {
                self.globals.find(&format!("outputs.{kind}.{name}"))
            }
            ["workflow", "creationTimestamp", part, ..] => self.globals.find(&format!("creationTimestamp.{part}")),
            ["item", ..] if self.item_is_none() => Found::Unfilled("there is no loop here"),
            ["item", field, ..] => self.item_path(field),
            ["retries" | "lastRetry", ..] if !self.retried() => Found::Unfilled("the template has no retryStrategy"),
            ["lastRetry", field, ..] if !LAST_RETRY.contains(field) => {
                Found::Unfilled("known are lastRetry.exitCode, .status, .duration and .message")
            }
            ["steps" | "tasks", "name", ..] | ["steps" | "tasks"] => Found::Known,
            [root @ ("steps" | "tasks"), call, "outputs", kind @ ("parameters" | "artifacts"), name, ..] => {
                self.call(root, &format!("{call}.outputs.{kind}.{name}"))
            }
            [root @ ("steps" | "tasks"), call, "outputs", "result", ..] => {
                self.call(root, &format!("{call}.outputs.result"))
            }
            // A field that every call has is checked as a reference to the call itself.
            [root @ ("steps" | "tasks"), call, ..] => self.call(root, &format!("{call}.status")),
            _ => Found::Known,
        }
    }

    fn item_is_none(&self) -> bool {
        matches!(self.item, LoopItem::No) && self.outer.is_none_or(StaticScope::item_is_none)
    }

    fn item_field(&self, field: &str) -> Found {
        let known = self.item.has(field) || self.outer.is_some_and(|outer| outer.item_field(field) == Found::Known);
        if known { Found::Known } else { Found::Unknown }
    }

    /// Resolves a field of the item in an expression. Only a list of maps, whose keys are all known, proves a field
    /// missing.
    fn item_path(&self, field: &str) -> Found {
        match self.item {
            LoopItem::Listed { items, .. } if items.iter().all(Value::is_object) => self.item_field(field),
            LoopItem::Listed { .. } | LoopItem::No | LoopItem::Any | LoopItem::Number => Found::Known,
        }
    }

    fn retried(&self) -> bool {
        self.globals.retries
            || self.entry.is_some_and(|entry| entry.template.retry_strategy.is_some())
            || self.outer.is_some_and(StaticScope::retried)
    }

    fn input(&self, rest: &str) -> Found {
        let known = self.entry.is_some_and(|entry| {
            let inputs = &entry.inputs;
            entry.broken
                || match rest.split_once('.') {
                    None => rest == "parameters" && !inputs.parameters.is_empty(),
                    Some(("parameters", name)) => inputs.parameter(name),
                    Some(("artifacts", name)) => inputs.artifact(name.strip_suffix(".path").unwrap_or(name)),
                    Some(_) => false,
                }
        });
        match self.outer {
            _ if known => Found::Known,
            Some(outer) => outer.input(rest),
            None => Found::Unknown,
        }
    }

    fn output(&self, rest: &str) -> bool {
        let Some(outputs) = self.entry.map(|entry| &entry.outputs) else { return false };
        let (kind, name) = rest.split_once('.').unwrap_or((rest, ""));
        let name = name.strip_suffix(".path").unwrap_or(name);
        match kind {
            "parameters" => outputs.parameter(name),
            "artifacts" => outputs.artifact(name),
            _ => matches!(rest, "result" | "exitCode"),
        }
    }

    fn frame(&self, root: &str) -> Option<&Frame<'_>> {
        match self.view {
            VisibleCalls::All(frame) | VisibleCalls::From { frame, .. } => {
                Some(frame).filter(|frame| frame.root() == root)
            }
            VisibleCalls::None => None,
        }
    }

    fn call(&self, root: &str, rest: &str) -> Found {
        let Some(frame) = self.frame(root) else {
            return self.outer.map_or(Found::Unknown, |outer| outer.call(root, rest));
        };
        let (name, field) = rest.split_once('.').unwrap_or((rest, ""));
        let Some((position, site, call)) = frame.index.get(name) else {
            return self.outer.map_or(Found::Unknown, |outer| outer.call(root, rest));
        };
        let visibility = self.visibility(*site, field);
        if visibility == Visibility::No || !frame.has(*position, call, field) {
            return Found::Unknown;
        }
        match visibility {
            Visibility::Task(task) => Found::Task(task),
            Visibility::Yes | Visibility::No => Found::Known,
        }
    }

    /// Decides whether the call of this scope can refer to another call of its template.
    fn visibility(&self, to: CallPosition, field: &str) -> Visibility {
        let VisibleCalls::From { site: from, ended, .. } = self.view else { return Visibility::Yes };
        match (from, to) {
            _ if from == to && ended => Visibility::Yes,
            (CallPosition::Step { group: own, .. }, CallPosition::Step { group, .. })
                if group < own || group == own && field == "status" =>
            {
                Visibility::Yes
            }
            (CallPosition::Task(_), CallPosition::Task(task)) => Visibility::Task(task),
            (CallPosition::Step { .. }, CallPosition::Step { .. } | CallPosition::Task(_))
            | (CallPosition::Task(_), CallPosition::Step { .. }) => Visibility::No,
        }
    }

    /// Suggests what an unknown name may have meant.
    pub(super) fn help(&self, name: &str) -> Option<String> {
        let (root, rest) = name.split_once('.')?;
        match root {
            "workflow" => near(name, self.globals.names()),
            "pod" => (rest != "name").then(|| "did you mean `pod.name`?".to_owned()),
            "inputs" => {
                let inputs = &self.entry?.inputs;
                let parameters = inputs.parameters.iter().map(|name| format!("inputs.parameters.{name}"));
                let artifacts = inputs.artifacts.iter().map(|name| format!("inputs.artifacts.{name}.path"));
                near(name, parameters.chain(artifacts)).or_else(|| {
                    let declared = inputs.parameters.is_empty() && inputs.artifacts.is_empty();
                    declared.then(|| "the template declares no inputs; list it under `inputs`".to_owned())
                })
            }
            "steps" | "tasks" => self.help_call(root, rest),
            "item" => self.item.keys().and_then(|keys| near(name, keys.iter().map(|key| format!("item.{key}")))),
            _ => None,
        }
    }

    fn help_call(&self, root: &str, rest: &str) -> Option<String> {
        let word = format!("{root}.{rest}");
        let Some(frame) = self.frame(root) else {
            return match self.view {
                VisibleCalls::None => Some("pass it as an argument; a template sees only its own inputs".to_owned()),
                VisibleCalls::All(frame) | VisibleCalls::From { frame, .. } => {
                    Some(format!("in this template it is `{}.{rest}`", frame.root()))
                }
            };
        };
        let (name, field) = rest.split_once('.').unwrap_or((rest, ""));
        let Some((position, site, _)) = frame.index.get(name) else {
            return near(&word, frame.index.keys().map(|name| format!("{root}.{name}.{field}")));
        };
        if self.visibility(*site, field) == Visibility::No {
            return Some(format!(
                "`{name}` does not end before this step begins; only steps of earlier groups can be referred to"
            ));
        }
        near(&word, frame.fields(*position, name).into_iter())
    }
}

#[derive(PartialEq, Eq)]
enum Visibility {
    Yes,
    No,
    /// Reachable if this task is an ancestor.
    Task(usize),
}

fn near(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.take(1_000).collect();
    name::suggest(word, names.iter().map(String::as_str))
}
