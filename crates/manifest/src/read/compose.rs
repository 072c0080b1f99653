//! Composes documents from events: types scalars, resolves keys, aliases and merge keys, and counts every limit before
//! memory is spent. Knows neither notation.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::event::{Anchor, Event, Style, Tag};
use super::tree::{Leaf, MERGE, NO_RANGE, REFUSED, Tree, number};
use crate::problem::{code, shorten};
use crate::scalar::{Scalar, resolve};
use crate::source_map::{Entry, HIDDEN, Range};
use crate::{Document, Limits, Path, Problem, Problems, Segment, Source, SourceMap, number_text};

/// Reading was aborted; the reason is among the problems.
#[derive(Debug)]
pub(super) struct Stop;

/// A collection that is not closed yet.
struct Open {
    node: u32,
    map: bool,
    /// The key or index being filled.
    step: u32,
    /// Range of a key whose value is still to come.
    key: Option<Range>,
    items: u32,
    merges: bool,
}

/// The target of an anchor: a value of the tree, or a scalar that was a key.
enum Anchored {
    Node(usize),
    Key(Leaf),
}

pub(super) struct Composer<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) limits: &'a Limits,
    pub(super) problems: Problems,
    pub(super) documents: Vec<Document>,
    pub(super) tree: Tree,
    pub(super) nodes: usize,
    pub(super) expanded: usize,
    pub(super) expanded_bytes: usize,
    started: usize,
    /// Number of problems before the current document.
    before: usize,
    open: Vec<Open>,
    anchors: HashMap<Anchor, Anchored>,
    /// Nesting inside a collection that stands in the place of a key and is skipped.
    skipped: usize,
    last_end: usize,
    blank: bool,
}

impl<'a> Composer<'a> {
    pub(super) fn new(source: &'a Arc<Source>, limits: &'a Limits) -> Self {
        Self {
            source,
            limits,
            problems: Problems::default(),
            documents: Vec::new(),
            tree: Tree::default(),
            nodes: 0,
            expanded: 0,
            expanded_bytes: 0,
            started: 0,
            before: 0,
            open: Vec::new(),
            anchors: HashMap::new(),
            skipped: 0,
            last_end: 0,
            blank: false,
        }
    }

    pub(super) fn event(&mut self, event: Event<'_>, start: usize, end: usize) -> Result<(), Stop> {
        let range = range(start, end);
        match event {
            Event::DocumentStart => return self.start_document(range),
            Event::DocumentEnd => {
                self.end_document();
                return Ok(());
            }
            _ if self.skipped > 0 => return self.skip(&event, range),
            Event::End(close) => return self.end(close),
            _ => {}
        }
        self.last_end = self.last_end.max(end);
        if self.open.last().is_some_and(|open| open.map && open.key.is_none()) {
            return self.key(event, range);
        }
        self.count_node(range)?;
        if let Some(list) = self.open.last_mut().filter(|open| !open.map) {
            list.step = list.items;
            list.items += 1;
        }
        match event {
            Event::MapStart(anchor, tag) => self.start(Leaf::Map, anchor, &tag, range),
            Event::ListStart(anchor, tag) => self.start(Leaf::List, anchor, &tag, range),
            Event::Scalar(text, style, anchor, tag) => {
                self.blank = text.is_empty() && style == Style::Plain && anchor == 0 && tag == Tag::None;
                let leaf = self.leaf(text, style, &tag, range)?;
                let node = self.add(leaf, range);
                self.anchor(anchor, Anchored::Node(node));
                self.go_on()
            }
            Event::Alias(anchor) => self.alias(anchor, range),
            Event::DocumentStart | Event::DocumentEnd | Event::End(_) => unreachable!("handled above"),
        }
    }

    fn start_document(&mut self, range: Range) -> Result<(), Stop> {
        self.started += 1;
        self.before = self.problems.len();
        self.tree = Tree::default();
        self.anchors.clear();
        self.blank = false;
        if self.started > self.limits.documents {
            let message = format!("more than {} documents in one text", self.limits.documents);
            return Err(self.limit(message, "split it into several files", range));
        }
        Ok(())
    }

    fn end_document(&mut self) {
        let tree = std::mem::take(&mut self.tree);
        let empty = tree.len() == 0 || (tree.len() == 1 && self.blank);
        if empty || self.problems.len() > self.before {
            return;
        }
        let (value, entries, keys) = tree.finish();
        let source_map = SourceMap::new(Arc::clone(self.source), entries, keys);
        let line = source_map.value(&Path::root()).line;
        self.documents.push(Document { source: Arc::clone(self.source), value, source_map, line });
    }

    fn start(&mut self, kind: Leaf, anchor: Anchor, tag: &Tag, range: Range) -> Result<(), Stop> {
        self.check_depth(self.open.len() + 1, range)?;
        let map = matches!(kind, Leaf::Map);
        match (tag, map) {
            (Tag::None, _) | (Tag::Map, true) | (Tag::List, false) => {}
            _ => self.bad_tag(tag, if map { "a mapping" } else { "a list" }, range),
        }
        let node = self.add(kind, range);
        self.anchor(anchor, Anchored::Node(node));
        self.open.push(Open { node: number(node), map, step: REFUSED, key: None, items: 0, merges: false });
        self.go_on()
    }

    fn end(&mut self, close: Option<usize>) -> Result<(), Stop> {
        let open = self.open.pop().expect("scanners close only what they opened");
        let node = open.node as usize;
        self.last_end = self.last_end.max(close.unwrap_or(0));
        let start = self.tree.entries[node].value.offset as usize;
        self.tree.entries[node].value = range(start, close.unwrap_or(self.last_end));
        self.close(node);
        if open.map {
            self.check_keys(node)?;
        }
        if open.merges {
            self.merge(node, self.open.len() + 1)?;
            self.close(node);
        }
        self.go_on()
    }

    fn close(&mut self, node: usize) {
        self.tree.entries[node].size = number(self.tree.len() - node);
    }

    /// Adds a value below the innermost open collection. Its size is that of a scalar; an open collection has size 0
    /// until it is closed, which is how an alias to itself is detected.
    fn add(&mut self, leaf: Leaf, range: Range) -> usize {
        let (parent, step, key) = match self.open.last_mut() {
            Some(open) => (open.node, open.step, open.key.take().unwrap_or(NO_RANGE)),
            None => (0, 0, NO_RANGE),
        };
        let size = u32::from(!matches!(leaf, Leaf::Map | Leaf::List));
        let depth = self.open.len();
        self.tree.push(Entry { parent, size, step, value: range, key }, leaf, depth)
    }

    fn anchor(&mut self, anchor: Anchor, anchored: Anchored) {
        if anchor != 0 {
            self.anchors.insert(anchor, anchored);
        }
    }

    fn alias(&mut self, anchor: Anchor, range: Range) -> Result<(), Stop> {
        match self.anchors.get(&anchor) {
            Some(&Anchored::Node(node)) if self.tree.entries[node].size > 0 => {
                let (step, key) = match self.open.last_mut() {
                    Some(open) => (open.step, open.key.take().unwrap_or(NO_RANGE)),
                    None => (0, NO_RANGE),
                };
                let parent = self.open.last().map_or(0, |open| open.node);
                self.copy(node, Entry { parent, size: 0, step, value: range, key }, self.open.len())?;
            }
            Some(Anchored::Key(leaf)) => {
                let leaf = leaf.clone();
                self.tree.shared = true;
                self.add(leaf, range);
            }
            known => {
                let problem = if known.is_some() {
                    Problem::error(
                        code::TAG_OR_ALIAS,
                        format!("alias `{}` stands inside the value it names", shorten(self.slice(range))),
                    )
                } else {
                    Problem::error(
                        code::TAG_OR_ALIAS,
                        format!("alias `{}` names an anchor of another document", shorten(self.slice(range))),
                    )
                    .help("anchors end with their document; repeat it in this one")
                };
                self.report_here(problem, range);
                self.add(Leaf::Null, range);
            }
        }
        self.go_on()
    }

    fn key(&mut self, event: Event<'_>, range: Range) -> Result<(), Stop> {
        if let Some(open) = self.open.last_mut() {
            open.step = REFUSED;
        }
        let step = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let merge = tag == Tag::Merge || (tag == Tag::None && style == Style::Plain && text == "<<");
                if merge {
                    MERGE
                } else {
                    let leaf = self.leaf(text, style, &tag, range)?;
                    let step = self.key_step(&leaf, range);
                    if anchor != 0 {
                        self.anchor(anchor, Anchored::Key(leaf));
                    } else if let Leaf::Text(_) = leaf {
                        self.tree.texts.pop();
                    }
                    step
                }
            }
            Event::Alias(anchor) => {
                let leaf = match self.anchors.get(&anchor) {
                    Some(Anchored::Node(node)) => self.tree.leaves[*node].clone(),
                    Some(Anchored::Key(leaf)) => leaf.clone(),
                    None => Leaf::Map,
                };
                self.key_step(&leaf, range)
            }
            _ => {
                self.skipped = 1;
                self.key_step(&Leaf::Map, range)
            }
        };
        let open = self.open.last_mut().expect("a key stands in a mapping");
        open.step = step;
        open.key = Some(range);
        open.merges |= step == MERGE;
        self.go_on()
    }

    /// Returns the key number of a scalar. Numbers and booleans become text keys, as in Kubernetes.
    fn key_step(&mut self, leaf: &Leaf, range: Range) -> u32 {
        match leaf {
            Leaf::Text(number) => {
                let text = std::mem::take(&mut self.tree.texts[*number as usize]);
                let step = self.tree.key_number(&text);
                self.tree.texts[*number as usize] = text;
                step
            }
            Leaf::Number(number) => self.tree.key_number(&number_text(number)),
            Leaf::Bool(bool) => self.tree.key_number(if *bool { "true" } else { "false" }),
            Leaf::Null => self.refuse_key(
                "a key is missing or null",
                "write the key before the `:`, in quotes if it is the text null",
                range,
            ),
            Leaf::List | Leaf::Map => {
                let help = if self.slice(range).starts_with("{")
                    && self.source.text()[..range.offset as usize].ends_with('{')
                {
                    "a template expression must be quoted: '{{…}}'"
                } else {
                    "only text, numbers and booleans can be keys"
                };
                self.refuse_key("a mapping or a list cannot be a key", help, range)
            }
        }
    }

    fn refuse_key(&mut self, message: &str, help: &str, range: Range) -> u32 {
        let path = self.current_path();
        let span = self.source.span(range.offset as usize, range.length as usize);
        self.problems.push(Problem::error(code::SYNTAX, message).help(help).at(self.source, span).path(path));
        REFUSED
    }

    fn skip(&mut self, event: &Event<'_>, range: Range) -> Result<(), Stop> {
        match event {
            Event::MapStart(..) | Event::ListStart(..) => {
                self.skipped += 1;
                self.check_depth(self.open.len() + self.skipped, range)?;
            }
            Event::End(_) => self.skipped -= 1,
            _ => {}
        }
        self.count_node(range)
    }

    fn leaf(&mut self, text: Cow<'_, str>, style: Style, tag: &Tag, range: Range) -> Result<Leaf, Stop> {
        if text.len() > self.limits.scalar {
            let message = format!("a value is longer than {} bytes", self.limits.scalar);
            return Err(self.limit(message, "large data belongs into a file or an artifact", range));
        }
        let scalar = match (tag, style) {
            (Tag::Text, _) | (Tag::None, Style::Text) => Scalar::Text,
            (Tag::None, Style::Plain) => resolve(&text),
            (Tag::None, Style::Number) => match resolve(&text) {
                Scalar::Text => Scalar::NotJson,
                scalar => scalar,
            },
            _ => match (tag, resolve(&text)) {
                (Tag::Integer, Scalar::Number(number)) if number.is_i64() || number.is_u64() => Scalar::Number(number),
                (Tag::Float, scalar @ (Scalar::Number(_) | Scalar::NotJson)) => scalar,
                (Tag::Bool, scalar @ Scalar::Bool(_)) | (Tag::Null, scalar @ Scalar::Null) => scalar,
                _ => {
                    self.bad_tag(tag, "this value", range);
                    Scalar::Null
                }
            },
        };
        Ok(match scalar {
            Scalar::Null => Leaf::Null,
            Scalar::Bool(bool) => Leaf::Bool(bool),
            Scalar::Number(number) => Leaf::Number(number),
            Scalar::Text => self.tree.text(text.into_owned()),
            Scalar::NotJson => {
                let problem =
                    Problem::error(code::NOT_JSON, format!("`{}` is a number that JSON cannot hold", shorten(&text)));
                self.report_here(problem.help("quote it if it is meant as text"), range);
                Leaf::Null
            }
        })
    }

    fn bad_tag(&mut self, tag: &Tag, what: &str, range: Range) {
        let (name, help) = match tag {
            Tag::Other(name) => (
                &*shorten(name),
                "remove the tag; known ones are !!str, !!int, !!float, !!bool, !!null, !!map and !!seq",
            ),
            Tag::Text => ("!!str", "remove the tag or quote the value"),
            Tag::Integer => ("!!int", "remove the tag or write an integer"),
            Tag::Float => ("!!float", "remove the tag or write a number"),
            Tag::Bool => ("!!bool", "remove the tag or write true or false"),
            Tag::Null => ("!!null", "remove the tag or the value"),
            Tag::Map => ("!!map", "remove the tag"),
            Tag::List => ("!!seq", "remove the tag"),
            Tag::Merge => ("!!merge", "it belongs to the key <<"),
            Tag::None => unreachable!("no tag is never wrong"),
        };
        let problem = Problem::error(code::TAG_OR_ALIAS, format!("tag `{name}` does not fit {what}")).help(help);
        self.report_here(problem, range);
    }

    pub(super) fn count_node(&mut self, range: Range) -> Result<(), Stop> {
        self.nodes += 1;
        if self.nodes > self.limits.nodes {
            let message = format!("more than {} values", self.limits.nodes);
            return Err(self.limit(message, "split it into several manifests", range));
        }
        Ok(())
    }

    pub(super) fn check_depth(&mut self, depth: usize, range: Range) -> Result<(), Stop> {
        if depth > self.limits.depth {
            let message = format!("nested deeper than {} levels", self.limits.depth);
            return Err(self.limit(message, "flatten it", range));
        }
        Ok(())
    }

    pub(super) fn limit(&mut self, message: String, help: &str, place: Range) -> Stop {
        let span = self.source.span(place.offset as usize, place.length.min(1) as usize);
        self.problems.push(Problem::error(code::LIMIT, message).help(help).at(self.source, span));
        Stop
    }

    /// Reports a problem of the current value.
    pub(super) fn report_here(&mut self, problem: Problem, range: Range) {
        let path = self.current_path();
        let span = self.source.span(range.offset as usize, range.length as usize);
        self.problems.push(problem.at(self.source, span).path(path));
    }

    /// Returns the path of the current value, or of the mapping while a key is read.
    pub(super) fn current_path(&self) -> Path {
        let known = self.open.iter().take_while(|open| open.step != REFUSED);
        let steps = known.map(|open| match open.map {
            true => Segment::Key(self.tree.key(open.step).to_owned()),
            false => Segment::Index(open.step as usize),
        });
        Path(steps.collect())
    }

    fn slice(&self, range: Range) -> &str {
        let start = range.offset as usize;
        self.source.text().get(start..start + range.length as usize).unwrap_or_default()
    }

    fn go_on(&self) -> Result<(), Stop> {
        if self.problems.len() < self.limits.problems { Ok(()) } else { Err(Stop) }
    }
}

pub(super) fn range(start: usize, end: usize) -> Range {
    Range { offset: number(start), length: number(end.saturating_sub(start)) }
}

/// Reports whether a step is a key of the resulting document.
pub(super) fn is_key(step: u32) -> bool {
    step < HIDDEN
}
