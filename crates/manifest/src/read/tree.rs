//! A document under construction: values in reading order, each with its range. Converted into a value and its source
//! map at the end. The caller bounds the depth.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use crate::source_map::{Entry, HIDDEN, NO_KEY, Range, children};

/// The step of a merge key.
pub(super) const MERGE: u32 = HIDDEN;

/// The step of a key that was refused.
pub(super) const REFUSED: u32 = HIDDEN + 1;

pub(super) const NO_RANGE: Range = Range { offset: NO_KEY, length: 0 };

#[derive(Debug, Clone)]
pub(super) enum Leaf {
    Null,
    Bool(bool),
    Number(Number),
    /// Index into the texts.
    Text(u32),
    List,
    Map,
}

#[derive(Default)]
pub(super) struct Tree {
    pub(super) entries: Vec<Entry>,
    pub(super) leaves: Vec<Leaf>,
    /// Nesting depth of each value.
    pub(super) depths: Vec<u16>,
    pub(super) texts: Vec<String>,
    /// True if two values may share the same text.
    pub(super) shared: bool,
    keys: Vec<Arc<str>>,
    key_numbers: HashMap<Arc<str>, u32>,
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn text(&mut self, text: String) -> Leaf {
        self.texts.push(text);
        Leaf::Text(number(self.texts.len() - 1))
    }

    pub(super) fn key_number(&mut self, key: &str) -> u32 {
        if let Some(&number) = self.key_numbers.get(key) {
            return number;
        }
        let key: Arc<str> = key.into();
        let number = number(self.keys.len());
        self.keys.push(Arc::clone(&key));
        self.key_numbers.insert(key, number);
        number
    }

    pub(super) fn key(&self, number: u32) -> &str {
        match number {
            MERGE => "<<",
            REFUSED => "?",
            _ => &self.keys[number as usize],
        }
    }

    pub(super) fn push(&mut self, entry: Entry, leaf: Leaf, depth: usize) -> usize {
        self.entries.push(entry);
        self.leaves.push(leaf);
        self.depths.push(u16::try_from(depth).unwrap_or(u16::MAX));
        self.entries.len() - 1
    }

    /// Returns the value, the entries of its source map and the table of their keys.
    pub(super) fn finish(mut self) -> (Value, Vec<Entry>, Vec<Arc<str>>) {
        let value = self.value(0);
        (value, self.entries, self.keys)
    }

    fn value(&mut self, node: usize) -> Value {
        match self.leaves[node].clone() {
            Leaf::Null => Value::Null,
            Leaf::Bool(bool) => Value::Bool(bool),
            Leaf::Number(number) => Value::Number(number),
            Leaf::Text(text) if self.shared => Value::String(self.texts[text as usize].clone()),
            Leaf::Text(text) => Value::String(std::mem::take(&mut self.texts[text as usize])),
            Leaf::List => {
                let nodes: Vec<usize> = children(&self.entries, node).collect();
                nodes.into_iter().map(|child| self.value(child)).collect()
            }
            Leaf::Map => {
                let nodes: Vec<usize> = children(&self.entries, node).collect();
                let mut map = Map::new();
                for child in nodes {
                    let step = self.entries[child].step;
                    if step < HIDDEN {
                        let key = self.keys[step as usize].to_string();
                        map.insert(key, self.value(child));
                    }
                }
                Value::Object(map)
            }
        }
    }
}

/// Converts a count to 32 bits. Every count is below the number of bytes of the text, which was checked to fit.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("the size of the text was checked to fit 32 bits")
}
