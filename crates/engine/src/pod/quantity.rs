//! Resource quantities (cpu, memory, storage) as manifests write them.

use std::collections::BTreeMap;

use octoflow_model::{podspec::Container, task::Resources};

/// Returns the request of a pod: the sum over the containers that run at the same time, and at least the request of
/// each init container.
pub(crate) fn together<'c>(
    before: impl Iterator<Item = &'c Container>,
    beside: impl Iterator<Item = &'c Container>,
) -> Resources {
    let mut all = Resources::default();
    for own in beside.map(asked) {
        all.cpu_milli = all.cpu_milli.saturating_add(own.cpu_milli);
        all.memory_bytes = all.memory_bytes.saturating_add(own.memory_bytes);
        for (name, amount) in own.others {
            let all = all.others.entry(name).or_default();
            *all = all.saturating_add(amount);
        }
    }
    for own in before.map(asked) {
        all.cpu_milli = all.cpu_milli.max(own.cpu_milli);
        all.memory_bytes = all.memory_bytes.max(own.memory_bytes);
        for (name, amount) in own.others {
            let all = all.others.entry(name).or_default();
            *all = (*all).max(amount);
        }
    }
    all
}

/// Returns the request of one container. A limit without a request counts as the request.
fn asked(container: &Container) -> Resources {
    let asked = |name: &str| container.resources.requests.get(name).or_else(|| container.resources.limits.get(name));
    Resources {
        cpu_milli: asked("cpu").and_then(|text| thousandths(&text.0)).unwrap_or(0),
        memory_bytes: asked("memory").and_then(|text| thousandths(&text.0)).map_or(0, |amount| amount / 1000),
        others: others(container),
    }
}

/// Returns the request of every resource but cpu and memory, in units or bytes.
fn others(container: &Container) -> BTreeMap<String, u64> {
    let (requests, limits) = (&container.resources.requests, &container.resources.limits);
    let names = requests.keys().chain(limits.keys()).filter(|name| !matches!(name.as_str(), "cpu" | "memory"));
    names
        .filter_map(|name| {
            let text = requests.get(name).or_else(|| limits.get(name))?;
            let units = thousandths(&text.0)?.div_ceil(1000);
            (units > 0).then(|| (name.clone(), units))
        })
        .collect()
}

/// Returns the memory limit of one container in bytes; a limit of zero is none. `Err` is a sentence for the user.
pub(super) fn memory_limit(container: &Container) -> Result<Option<u64>, String> {
    limit(container, "memory")
}

/// Returns the limit of bytes that one container may write to its own file system; as above.
pub(super) fn storage_limit(container: &Container) -> Result<Option<u64>, String> {
    limit(container, "ephemeral-storage")
}

fn limit(container: &Container, name: &str) -> Result<Option<u64>, String> {
    let Some(text) = container.resources.limits.get(name) else { return Ok(None) };
    let bytes = amount(&text.0)
        .ok_or_else(|| format!("resources.limits.{name} '{}' is not an amount of bytes such as 512Mi or 2G", text.0))?;
    // The cast saturates: larger values are as good as the largest number.
    Ok(Some(bytes.ceil() as u64).filter(|bytes| *bytes > 0))
}

/// Parses a quantity in thousandths of its unit: `100m` → 100, `2` → 2000, `1Ki` → 1 024 000.
pub(crate) fn thousandths(text: &str) -> Option<u64> {
    let amount = amount(text)? * 1000.0;
    (amount < u64::MAX as f64).then_some(amount.ceil() as u64)
}

/// Renders an amount as Kubernetes does: thousandths of cpu as `500m`, bytes as `16Gi` where that is exact.
pub fn render(resource: &str, amount: u64) -> String {
    if resource == "cpu" {
        return if amount.is_multiple_of(1000) { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    let bytes = resource == "memory" || resource.ends_with("storage") || resource.starts_with("hugepages-");
    let units = [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let exact = units.into_iter().find(|(_, bits)| bytes && amount > 0 && amount.is_multiple_of(1 << bits));
    exact.map_or_else(|| amount.to_string(), |(unit, bits)| format!("{}{unit}", amount >> bits))
}

/// Parses a quantity, which is never negative.
fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        exponent => 10f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number * unit).filter(|amount| amount.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_all_their_spellings() {
        assert_eq!(thousandths("100m"), Some(100));
        assert_eq!(thousandths("0.5"), Some(500));
        assert_eq!(thousandths("2"), Some(2000));
        assert_eq!(thousandths("1Ki"), Some(1_024_000));
        assert_eq!(thousandths("1e3"), Some(1_000_000));
        assert_eq!(thousandths("-1"), None);
        assert_eq!(thousandths("many"), None);
        assert_eq!(thousandths("+2u"), Some(1));
        assert_eq!(thousandths("1E"), None, "more than can be counted");
    }

    #[test]
    fn what_is_rendered_is_exact_and_reads_as_the_same_amount() {
        for (resource, amount, text) in [
            ("cpu", 1500, "1500m"),
            ("cpu", 2000, "2"),
            ("memory", 16 << 30, "16Gi"),
            ("memory", 1536 << 20, "1536Mi"),
            ("memory", 1_500_000_000, "1500000000"),
            ("ephemeral-storage", 3 << 40, "3Ti"),
            ("pods", 1024, "1024"),
            ("memory", 0, "0"),
        ] {
            assert_eq!(render(resource, amount), text);
            let unit = if resource == "cpu" { 1 } else { 1000 };
            assert_eq!(thousandths(text).map(|read| read / unit), Some(amount));
        }
    }

    #[test]
    fn a_limit_of_memory_is_bytes_and_zero_is_none() {
        let limit = |text: &str| {
            let mut container = Container::default();
            container.resources.limits.insert("memory".to_owned(), octoflow_model::scalar::Text(text.to_owned()));
            memory_limit(&container)
        };
        assert_eq!(memory_limit(&Container::default()), Ok(None));
        assert_eq!(limit("50Mi"), Ok(Some(50 << 20)));
        assert_eq!(limit("1500m"), Ok(Some(2)));
        assert_eq!(limit("2Ei"), Ok(Some(2 << 60)));
        assert_eq!(limit("100Ei"), Ok(Some(u64::MAX)));
        assert_eq!(limit("0"), Ok(None));
        for wrong in ["-1", "much", ""] {
            assert!(limit(wrong).unwrap_err().contains(&format!("'{wrong}'")));
        }
    }
}
