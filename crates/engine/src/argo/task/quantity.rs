//! Amounts of cpu and memory as manifests write them.

use octoflow_model::{
    argo::{Container, Template},
    task::Resources,
};

/// What a template's containers ask for: those that run side by side together, and at least what each that runs
/// before them does.
pub(crate) fn resources(template: &Template) -> Resources {
    let main = template.container.as_ref().or(template.script.as_ref().map(|script| &script.container));
    let set = template.container_set.iter().flat_map(|set| &set.containers).map(|container| &container.container);
    let beside = template.sidecars.iter().map(|sidecar| &sidecar.container);
    let mut all = Resources::default();
    for container in main.into_iter().chain(set).chain(beside) {
        let own = asked(container);
        all.cpu_milli = all.cpu_milli.saturating_add(own.cpu_milli);
        all.memory_bytes = all.memory_bytes.saturating_add(own.memory_bytes);
    }
    for own in template.init_containers.iter().map(|init| asked(&init.container)) {
        all.cpu_milli = all.cpu_milli.max(own.cpu_milli);
        all.memory_bytes = all.memory_bytes.max(own.memory_bytes);
    }
    all
}

/// What one container asks for. A limit without a request counts as the request.
fn asked(container: &Container) -> Resources {
    let asked = |name: &str| container.resources.requests.get(name).or_else(|| container.resources.limits.get(name));
    Resources {
        cpu_milli: asked("cpu").and_then(|text| thousandths(&text.0)).unwrap_or(0),
        memory_bytes: asked("memory").and_then(|text| thousandths(&text.0)).map_or(0, |amount| amount / 1000),
    }
}

/// A quantity in thousandths of its unit: `100m` → 100, `2` → 2000, `1Ki` → 1 024 000.
pub(crate) fn thousandths(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        exponent => 10f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    let amount = number * unit * 1000.0;
    (amount.is_finite() && amount >= 0.0 && amount < u64::MAX as f64).then_some(amount.ceil() as u64)
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
    }
}
