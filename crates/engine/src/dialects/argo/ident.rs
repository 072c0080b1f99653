//! Builds names and ids of nodes, exactly as Argo and its tools compute them.
//! Names are built here and nowhere else.

use serde_json::Value;

use crate::expr::jq::plain;

/// Returns a node's id: the run's name for the root, else the run's name with the FNV-1a hash of the node's name.
pub fn node_id(run: &str, node: &str) -> String {
    if run == node {
        return run.to_owned();
    }
    let mut id = String::with_capacity(run.len() + 1 + MAX_HASH_DIGITS);
    id.push_str(run);
    push_hash(&mut id, node);
    id
}

/// Returns the name of the pod that a node runs as; it includes the template's name.
pub fn pod_name(run: &str, node: &str, template: &str) -> String {
    if run == node {
        return run.to_owned();
    }
    // A pod's name has at most 253 characters, and the hash with its dash takes up to 11.
    const PREFIX: usize = 242;
    // An inline template has no name to show.
    let bare = super::refer::bare(template);
    let mut prefix = if bare.is_empty() || template.contains('#') { run.to_owned() } else { format!("{run}-{bare}") };
    if prefix.len() > PREFIX {
        let cut = (0..=PREFIX).rev().find(|at| prefix.is_char_boundary(*at)).unwrap_or(0);
        prefix.truncate(cut);
    }
    push_hash(&mut prefix, node);
    prefix
}

/// Number of digits of the largest hash.
const MAX_HASH_DIGITS: usize = 10;

/// Appends a dash and the hash of a node's name. Every node of a record has its id in it several times, so this is done
/// without a formatter.
fn push_hash(to: &mut String, node: &str) {
    let mut digits = [0; MAX_HASH_DIGITS];
    let mut first = MAX_HASH_DIGITS;
    let mut left = fnv1a(node);
    loop {
        first -= 1;
        digits[first] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    to.push('-');
    to.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

/// Returns the display name: the name without that of its boundary.
pub fn display_name<'a>(node: &'a str, boundary: Option<&str>) -> &'a str {
    let Some(rest) = boundary.and_then(|boundary| node.strip_prefix(boundary)) else { return node };
    if let Some(rest) = rest.strip_prefix('.') {
        return rest;
    }
    match rest.find("].") {
        Some(end) if rest.starts_with('[') && rest[1..end].bytes().all(|byte| byte.is_ascii_digit()) => {
            &rest[end + 2..]
        }
        _ => rest,
    }
}

/// Returns the suffix of a loop item's name: its index and a short description of the item.
pub fn item_suffix(index: usize, item: &Value) -> String {
    let mut suffix = format!("({index}:");
    suffix.extend(describe(item).chars().filter(|c| !matches!(c, '(' | ')')));
    suffix.push(')');
    suffix
}

fn describe(item: &Value) -> String {
    match item {
        Value::String(text) => escaped(text),
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", in_map(value))).collect();
            pairs.sort_unstable();
            pairs.join(",")
        }
        Value::Array(list) => {
            let words: Vec<_> = list.iter().map(plain).collect();
            format!("[{}]", words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => item.to_string(),
    }
}

fn in_map(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), escaped)
}

/// Escapes a text as JSON does, without the quotes, so that a newline shows as `
/// `.
fn escaped(text: &str) -> String {
    let quoted = Value::String(text.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_the_ones_existing_tools_compute() {
        assert_eq!(
            node_id("appr-promotion-ffsv4", "appr-promotion-ffsv4.app1.wait-approval"),
            "appr-promotion-ffsv4-3235686597"
        );
        assert_eq!(node_id("w", "w"), "w");
    }

    #[test]
    fn a_pod_of_an_inline_template_is_named_without_one() {
        assert_eq!(pod_name("w", "w.a", "main#0"), node_id("w", "w.a"));
        assert_eq!(pod_name("w", "w.a", ""), node_id("w", "w.a"));
        assert_eq!(pod_name("w", "w", "main"), "w");
    }

    #[test]
    fn a_display_name_is_the_name_inside_its_boundary() {
        assert_eq!(display_name("w[0]", Some("w")), "[0]");
        assert_eq!(display_name("w[0].a(0:foo)", Some("w")), "a(0:foo)");
        assert_eq!(display_name("w.A", Some("w")), "A");
        assert_eq!(display_name("w.A(0)", Some("w")), "A(0)");
        assert_eq!(display_name("w[0].fan(0:1)(0)[1].leaf", Some("w[0].fan(0:1)(0)")), "leaf");
        assert_eq!(display_name("w.onExit", None), "w.onExit");
    }

    #[test]
    fn items_are_described_in_the_name() {
        assert_eq!(item_suffix(0, &json!("alpha\nbeta")), "(0:alpha\\nbeta)");
        assert_eq!(item_suffix(0, &json!([1, "two", 3])), "(0:[1 two 3])");
        assert_eq!(item_suffix(1, &json!("f(x)")), "(1:fx)");
        assert_eq!(item_suffix(2, &json!(true)), "(2:true)");
        let map = json!({"number": 2, "string": "foo", "list": [0, "1"], "json": {"number": 2, "string": "foo", "list": [0, "1"]}});
        assert_eq!(
            item_suffix(0, &map),
            "(0:json:{\"list\":[0,\"1\"],\"number\":2,\"string\":\"foo\"},list:[0,\"1\"],number:2,string:foo)"
        );
    }
}
