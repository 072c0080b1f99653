//! `sprig.semver` and `sprig.semverCompare`: versions such as `v1.2.3-rc.1+build`, and constraints such as
//! `>=1.2, <2 || ~3.1`.

use std::cmp::Ordering;

use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::work::{CallResult, EvalFault};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", 1, 1, |a, _| semver(a)),
    Function::new("semverCompare", 2, 2, |a, _| {
        let version = version(a, a.text(1)?)?;
        Ok(Value::Bool(satisfies(a, a.text(0)?, &version)?))
    }),
];

#[derive(Debug, Clone, PartialEq)]
struct Version {
    /// Major, minor, patch; `None` where it was left out or written as `x` or `*`.
    numbers: [Option<u64>; 3],
    prerelease: String,
    metadata: String,
}

fn semver(a: &Arguments<'_>) -> CallResult {
    let text = a.text(0)?;
    let version = version(a, text)?;
    let number = |index: usize| Value::Int(i64::try_from(version.at(index)).unwrap_or(i64::MAX));
    Ok([
        ("Major", number(0)),
        ("Minor", number(1)),
        ("Patch", number(2)),
        ("Prerelease", Value::from(version.prerelease.as_str())),
        ("Metadata", Value::from(version.metadata.as_str())),
        ("Original", Value::from(text)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect())
}

fn version(a: &Arguments<'_>, text: &str) -> Result<Version, EvalFault> {
    Version::parse(text).ok_or_else(|| a.fault(format!("'{text}' is not a version such as 1.2.3")))
}

fn satisfies(a: &Arguments<'_>, constraint: &str, version: &Version) -> Result<bool, EvalFault> {
    for choice in constraint.split("||") {
        let mut all = true;
        for part in parts(choice) {
            all &= holds(&part, version)
                .ok_or_else(|| a.fault(format!("'{part}' is not a constraint such as >=1.2.3")))?;
        }
        if all {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Splits constraints at commas or blanks; an operator may stand apart from its version; `1.2 - 1.4` is a range.
fn parts(choice: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let words: Vec<&str> = choice.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let mut index = 0;
    while index < words.len() {
        let bare = words[index].trim_matches(['<', '>', '=', '!', '~', '^']).is_empty();
        if bare && index + 1 < words.len() {
            parts.push(format!("{}{}", words[index], words[index + 1]));
            index += 2;
        } else if words.get(index + 1) == Some(&"-") && index + 2 < words.len() {
            parts.push(format!(">={}", words[index]));
            parts.push(format!("<={}", words[index + 2]));
            index += 3;
        } else {
            parts.push(words[index].to_owned());
            index += 1;
        }
    }
    parts
}

fn holds(part: &str, version: &Version) -> Option<bool> {
    let digits = part.find(|c: char| !"<>=!~^".contains(c)).unwrap_or(part.len());
    let (sign, text) = part.split_at(digits);
    let bound = Version::parse(text)?;
    // A prerelease version matches only a constraint that names one.
    if !version.prerelease.is_empty() && bound.prerelease.is_empty() {
        return Some(false);
    }
    let order = version.order(&bound);
    // The first omitted number decides how far the version may differ: 1.x allows any minor.
    let open = bound.numbers.iter().position(Option::is_none);
    let within = |fixed: usize| order.is_ge() && (0..fixed).all(|index| version.at(index) == bound.at(index));
    Some(match sign {
        "" | "=" | "==" => open.map_or(order.is_eq(), within),
        "!=" => !open.map_or(order.is_eq(), within),
        ">" => open.map_or(order.is_gt(), |fixed| order.is_gt() && !within(fixed)),
        ">=" | "=>" => order.is_ge(),
        "<" => order.is_lt(),
        "<=" | "=<" => order.is_le() || open.is_some_and(within),
        "~" | "~>" => within(open.unwrap_or(2).min(2)),
        "^" => {
            let leading = (0..3).position(|index| bound.at(index) != 0).unwrap_or(2);
            within(open.unwrap_or(3).min(leading + 1))
        }
        _ => return None,
    })
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, metadata) = text.split_once('+').unwrap_or((text, ""));
        let (text, prerelease) = text.split_once('-').unwrap_or((text, ""));
        let mut numbers = [None; 3];
        for (index, part) in text.split('.').enumerate() {
            let number = numbers.get_mut(index)?;
            *number = match part {
                "x" | "X" | "*" => None,
                digits => Some(digits.parse().ok()?),
            };
        }
        Some(Self { numbers, prerelease: prerelease.to_owned(), metadata: metadata.to_owned() })
    }

    fn at(&self, index: usize) -> u64 {
        self.numbers[index].unwrap_or(0)
    }

    fn order(&self, other: &Self) -> Ordering {
        let numbers = (0..3).map(|index| self.at(index).cmp(&other.at(index)));
        let released = match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => identifiers(&self.prerelease, &other.prerelease),
        };
        numbers.fold(Ordering::Equal, Ordering::then).then(released)
    }
}

/// Compares prerelease identifiers: `rc.2` before `rc.10`, numbers before words.
fn identifiers(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let (a, b) = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => (a, b),
        };
        let order = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order.is_ne() {
            return order;
        }
    }
}
