//! The rule for arrays named `command`: what was there stands at the end, whole; the new may only stand in front of it,
//! as elements before the first or as text before the last one.

use serde_json::Value;

/// Returns the elements if the value is an array of texts.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Reports whether `new` is `old` with something in front.
pub(super) fn prepended(old: &[&str], new: &[&str]) -> bool {
    let Some((old_script, old_head)) = old.split_last() else { return true };
    let Some(at) = new.len().checked_sub(old.len()) else { return false };
    let Some((new_script, new_head)) = new[at..].split_last() else { return false };
    old_head == new_head && text_before(old_script, new_script).is_some()
}

/// Returns what stands in front of the old text in the new one. It must end with something that separates commands.
pub(super) fn text_before<'a>(old: &str, new: &'a str) -> Option<&'a str> {
    let front = new.strip_suffix(old)?;
    let end = front.trim_end_matches([' ', '\t']);
    (end.is_empty() || [";", "&&", "\n"].iter().any(|separator| end.ends_with(separator))).then_some(front)
}
