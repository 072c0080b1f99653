//! The items of a loop, as journals and runs keep them. Numbers are kept as the range they come from, so that a loop
//! over a million of them is one short fact and no list in memory. How a number is printed is up to the engine.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    /// Items of `withItems` and `withParam`, and of `withSequence` in journals written before ranges existed.
    List(Vec<Value>),
    /// Items of `withSequence`.
    Range(NumberRange),
}

/// Whole numbers one after another, up or down by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberRange {
    pub start: i64,
    pub count: u32,
    #[serde(default, skip_serializing_if = "is_false")]
    pub down: bool,
    /// The printf format of each number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Items {
    pub fn len(&self) -> usize {
        match self {
            Self::List(items) => items.len(),
            Self::Range(range) => range.count as usize,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl NumberRange {
    /// Returns the number at this index, if the range is that long.
    pub fn get(&self, index: usize) -> Option<i64> {
        let offset = i64::try_from(index).ok().filter(|offset| *offset < i64::from(self.count))?;
        Some(if self.down { self.start.saturating_sub(offset) } else { self.start.saturating_add(offset) })
    }
}

impl Serialize for Items {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::List(items) => items.serialize(serializer),
            Self::Range(range) => range.serialize(serializer),
        }
    }
}

/// Written by hand, because the error of an untagged enum would not name an unknown field.
impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of items, or a range of numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Items::List(items))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, fields: A) -> Result<Items, A::Error> {
                NumberRange::deserialize(MapAccessDeserializer::new(fields)).map(Items::Range)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_counts_up_and_down_and_ends() {
        let up = NumberRange { start: 7, count: 2, down: false, format: None };
        assert_eq!([up.get(0), up.get(1), up.get(2)], [Some(7), Some(8), None]);
        let down = NumberRange { start: 0, count: 3, down: true, format: None };
        assert_eq!(down.get(2), Some(-2));
        assert_eq!(NumberRange { start: i64::MAX, count: 2, down: false, format: None }.get(1), Some(i64::MAX));
    }

    #[test]
    fn an_unknown_field_of_a_range_is_named() {
        let error = serde_json::from_str::<Items>(r#"{"start":0,"count":1,"by":2}"#).unwrap_err();
        assert!(error.to_string().contains("`by`"), "{error}");
        assert!(serde_json::from_str::<Items>("7").is_err());
    }
}
