//! Expands loops into the items of a call.

use octoflow_model::{
    NodeIx,
    argo::{Call, Items},
};
use serde_json::Value;

use super::{
    program::CallSite,
    room,
    scope::Scope,
    sequence,
    substitute::{Missing, fill, fill_value},
    turn::Turn,
};

/// Maximum number of items of one loop. A million small items take some hundred megabytes; beyond that a mistake is
/// likelier than a wish.
pub(crate) const MAX_ITEMS: usize = 1_000_000;

pub(super) enum Loop {
    /// The call is not a loop.
    None,
    /// The loop is skipped, for this reason.
    Skip(String),
    Items(Items),
    Wrong(String),
}

impl Turn<'_> {
    pub(super) fn expand(&mut self, frame: NodeIx, place: CallSite) -> Loop {
        let instance = match self.instance(frame) {
            Ok(instance) => instance,
            Err(why) => return Loop::Wrong(why),
        };
        let call = instance.call(place);
        if !call.looped() {
            return Loop::None;
        }
        if let Some(why) = room::full(self.run.state.nodes.len(), self.world.max_nodes) {
            return Loop::Wrong(why);
        }
        match items(call, &self.view().frame_scope(frame, &instance).about(&call.name)) {
            Ok(items) if items.is_empty() => Loop::Skip("Skipped, empty params".to_owned()),
            Ok(items) if items.len() > MAX_ITEMS => {
                Loop::Wrong(format!("the loop has {} items; at most {MAX_ITEMS} are allowed", items.len()))
            }
            Ok(items) => match room::refuse(self.run.state.weight, room::of_items(&items), self.world.max_bytes) {
                Some(why) => Loop::Wrong(why),
                None => Loop::Items(items),
            },
            // A call that is skipped need not have a list.
            Err(message) => self.view().skips_whole(frame, &instance, call).map_or(Loop::Wrong(message), Loop::Skip),
        }
    }
}

/// Returns the item at this index.
pub(super) fn nth(items: &Items, index: usize) -> Option<Value> {
    match items {
        Items::List(items) => items.get(index).cloned(),
        Items::Range(range) => sequence::nth(range, index),
    }
}

fn items(call: &Call, scope: &Scope<'_>) -> Result<Items, String> {
    if let Some(items) = &call.with_items {
        let items = items.iter().enumerate();
        let filled = items.map(|(place, item)| fill_value(item, &scope.nth(place), Missing::Refuse));
        return filled.collect::<Result<_, _>>().map(Items::List).map_err(|error| error.to_string());
    }
    if let Some(text) = &call.with_param {
        let text = fill(&text.0, scope, Missing::Refuse).map_err(|error| error.to_string())?;
        return serde_json::from_str::<Vec<Value>>(&text).map(Items::List).map_err(|error| {
            format!("withParam value could not be parsed as a JSON list: {}: {error}", shortened(&text))
        });
    }
    match &call.with_sequence {
        Some(sequence) => sequence::range_of(sequence, scope).map(Items::Range),
        None => Ok(Items::List(Vec::new())),
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
