//! Completes mappings: detects duplicate keys and resolves merge keys. Copies of aliased values are made here, and
//! counted here.

use std::collections::HashSet;

use super::compose::{Composer, Stop, is_key};
use super::tree::{Leaf, MERGE};
use crate::Problem;
use crate::problem::{code, shorten};
use crate::source_map::{Entry, children};

impl Composer<'_> {
    /// Reports duplicate keys, at the second occurrence, naming the first.
    pub(super) fn check_keys(&mut self, map: usize) -> Result<(), Stop> {
        let entries = &self.tree.entries;
        let mut keys: Vec<(u32, usize)> = children(entries, map)
            .map(|child| (entries[child].step, child))
            .filter(|(step, _)| is_key(*step))
            .collect();
        keys.sort_unstable();
        let mut again: Vec<(usize, usize)> = Vec::new();
        let mut first = 0;
        for at in 1..keys.len() {
            if keys[at].0 == keys[first].0 {
                again.push((keys[at].1, keys[first].1));
            } else {
                first = at;
            }
        }
        again.sort_unstable();
        for (second, first) in again {
            let (second, first) = (self.tree.entries[second], self.tree.entries[first]);
            let here = self.source.span(second.key.offset as usize, second.key.length as usize);
            let there = self.source.span(first.key.offset as usize, 0);
            let key = self.tree.key(second.step).to_owned();
            let message = format!("duplicate key `{}`, first given at {}:{}", shorten(&key), there.line, there.column);
            let path = self.current_path().join(key);
            let problem = Problem::error(code::DUPLICATE_KEY, message).help("keep one of the two");
            self.problems.push(problem.at(self.source, here).path(path));
            if self.problems.len() >= self.limits.problems {
                return Err(Stop);
            }
        }
        Ok(())
    }

    /// Adds the entries of merge keys. Keys of the mapping itself win, wherever they stand; of several merged mappings
    /// the earlier wins.
    pub(super) fn merge(&mut self, map: usize, depth: usize) -> Result<(), Stop> {
        let entries = &self.tree.entries;
        let mut present: HashSet<u32> = HashSet::new();
        let mut merged: Vec<usize> = Vec::new();
        let mut wrong = None;
        for child in children(entries, map) {
            match (entries[child].step, &self.tree.leaves[child]) {
                (MERGE, Leaf::Map) => merged.push(child),
                (MERGE, Leaf::List) => {
                    for item in children(entries, child) {
                        match self.tree.leaves[item] {
                            Leaf::Map => merged.push(item),
                            _ => wrong = Some(item),
                        }
                    }
                }
                (MERGE, _) => wrong = Some(child),
                (step, _) => {
                    present.insert(step);
                }
            }
        }
        if let Some(node) = wrong {
            let problem = Problem::error(code::TAG_OR_ALIAS, "a merge key `<<` needs a mapping or a list of mappings");
            let value = self.tree.entries[node].value;
            self.report_here(problem.help("quote '<<' if it is meant as a key"), value);
        }
        let mut taken: Vec<usize> = Vec::new();
        for source in merged {
            for child in children(&self.tree.entries, source) {
                let step = self.tree.entries[child].step;
                if is_key(step) && present.insert(step) {
                    taken.push(child);
                }
            }
        }
        for child in taken {
            let parent = super::tree::number(map);
            let entry = Entry { parent, size: 0, ..self.tree.entries[child] };
            self.copy(child, entry, depth)?;
        }
        Ok(())
    }

    /// Copies a complete value under another parent. `entry` is the entry of the copy.
    pub(super) fn copy(&mut self, from: usize, entry: Entry, depth: usize) -> Result<(), Stop> {
        let size = self.tree.entries[from].size as usize;
        self.expanded += size;
        if self.expanded > self.limits.expanded {
            let message = format!("aliases expand to more than {} values", self.limits.expanded);
            return Err(self.limit(message, "write it out, or use templates and parameters", entry.value));
        }
        self.tree.shared = true;
        let to = self.tree.len();
        let base = self.tree.depths[from] as usize;
        for offset in 0..size {
            let leaf = self.tree.leaves[from + offset].clone();
            let old = self.tree.entries[from + offset];
            let depth = depth + self.tree.depths[from + offset] as usize - base;
            match &leaf {
                Leaf::Map | Leaf::List => self.check_depth(depth + 1, entry.value)?,
                Leaf::Text(text) => self.expanded_bytes += self.tree.texts[*text as usize].len(),
                Leaf::Null | Leaf::Bool(_) | Leaf::Number(_) => {}
            }
            if self.expanded_bytes > self.limits.bytes {
                let message = format!("aliases repeat more than {} bytes of text", self.limits.bytes);
                return Err(self.limit(message, "write it out, or use templates and parameters", entry.value));
            }
            self.count_node(entry.value)?;
            let new = if offset == 0 {
                Entry { size: old.size, ..entry }
            } else {
                let parent = super::tree::number(old.parent as usize - from + to);
                Entry { parent, ..old }
            };
            self.tree.push(new, leaf, depth);
        }
        Ok(())
    }
}
