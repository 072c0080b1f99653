//! A list of nodes as facts and runs keep it. The nodes of a loop are made one after the other, so their indexes are kept as
//! runs of equal distance: the list of a million items is a few bytes on disk and in memory. It never reorders.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, SeqAccess, Visitor, value::MapAccessDeserializer},
    ser::SerializeSeq,
};

use crate::ids::NodeIx;

/// Runs that are shorter than this are written as their indexes, as journals from before there were runs have them.
const LISTED: u32 = 8;

/// Nodes in an order that matters. Two lists of the same nodes in the same order are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeList {
    runs: Vec<Run>,
    len: usize,
}

/// Indexes that grow by the same distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    from: u32,
    count: u32,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    by: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(by: &u32) -> bool {
    *by == 1
}

impl NodeList {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn push(&mut self, node: NodeIx) {
        self.len += 1;
        let Some(last) = self.runs.last_mut() else { return self.runs.push(Run::single(node)) };
        if last.takes(node.0) {
            last.count += 1;
            return;
        }
        let second = last.from.checked_add(last.by).filter(|_| last.count == 2);
        match node.0.checked_sub(last.from).filter(|by| last.count == 1 && *by > 0) {
            Some(by) => (last.count, last.by) = (2, by),
            None => {
                // Two indexes are at some distance always; the second may as well begin what comes now.
                if let Some((second, by)) = second.and_then(|second| Some((second, node.0.checked_sub(second)?)))
                    && by > 0
                {
                    (last.count, last.by) = (1, 1);
                    self.runs.push(Run { from: second, count: 2, by });
                } else {
                    self.runs.push(Run::single(node));
                }
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = NodeIx> + '_ {
        self.runs.iter().flat_map(|run| run.indexes())
    }
}

impl Run {
    fn single(node: NodeIx) -> Self {
        Self { from: node.0, count: 1, by: 1 }
    }

    /// Whether this index is the next one.
    fn takes(self, index: u32) -> bool {
        self.count > 1 && u64::from(self.from) + u64::from(self.by) * u64::from(self.count) == u64::from(index)
    }

    fn indexes(self) -> impl Iterator<Item = NodeIx> {
        (0..self.count).map(move |place| NodeIx(self.from + place * self.by))
    }

    /// All of its indexes are indexes.
    fn fits(self) -> bool {
        let last = u64::from(self.from) + u64::from(self.by) * u64::from(self.count.saturating_sub(1));
        self.by > 0 && u32::try_from(last).is_ok()
    }
}

impl From<NodeIx> for NodeList {
    fn from(node: NodeIx) -> Self {
        Self::from_iter([node])
    }
}

impl FromIterator<NodeIx> for NodeList {
    fn from_iter<I: IntoIterator<Item = NodeIx>>(nodes: I) -> Self {
        let mut list = Self::default();
        list.extend(nodes);
        list
    }
}

impl Extend<NodeIx> for NodeList {
    fn extend<I: IntoIterator<Item = NodeIx>>(&mut self, nodes: I) {
        nodes.into_iter().for_each(|node| self.push(node));
    }
}

impl Serialize for NodeList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for run in &self.runs {
            if run.count < LISTED {
                run.indexes().try_for_each(|node| list.serialize_element(&node))?;
            } else {
                list.serialize_element(run)?;
            }
        }
        list.end()
    }
}

/// By hand, because an untagged enum would not say which field it does not know.
enum Element {
    One(NodeIx),
    Run(Run),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Element;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the index of a node, or a run of them")
            }

            fn visit_u64<E: Error>(self, index: u64) -> Result<Element, E> {
                let index = u32::try_from(index).map_err(|_| E::custom("the index of a node is too large"))?;
                Ok(Element::One(NodeIx(index)))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, fields: A) -> Result<Element, A::Error> {
                let run = Run::deserialize(MapAccessDeserializer::new(fields))?;
                if run.fits() { Ok(Element::Run(run)) } else { Err(A::Error::custom("a run of nodes has no end")) }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for NodeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = NodeList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of nodes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NodeList, A::Error> {
                let mut nodes = NodeList::default();
                while let Some(element) = list.next_element()? {
                    match element {
                        Element::One(node) => nodes.push(node),
                        Element::Run(run) => nodes.extend(run.indexes()),
                    }
                }
                Ok(nodes)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(indexes: &[u32]) -> NodeList {
        indexes.iter().copied().map(NodeIx).collect()
    }

    #[test]
    fn a_list_gives_back_what_it_was_given_and_so_does_its_text() {
        let long: Vec<u32> = (7..30).chain([3, 3]).chain((100..200).step_by(9)).chain([4, 2, 9, 10, 12]).collect();
        for indexes in [&[][..], &[5], &[5, 5], &[9, 4], &[1, 5, 6, 7], &[0, u32::MAX, 1], &long] {
            let made = list(indexes);
            assert_eq!(made.iter().map(|node| node.0).collect::<Vec<_>>(), indexes);
            assert_eq!(made.len(), indexes.len());
            let text = serde_json::to_string(&made).unwrap();
            assert_eq!(serde_json::from_str::<NodeList>(&text).unwrap(), made, "{text}");
            let listed = serde_json::to_string(indexes).unwrap();
            assert_eq!(serde_json::from_str::<NodeList>(&listed).unwrap(), made, "as journals had it before");
        }
    }

    #[test]
    fn a_short_list_is_written_as_it_always_was_and_a_long_one_is_short() {
        assert_eq!(serde_json::to_string(&list(&[4, 5, 6, 9])).unwrap(), "[4,5,6,9]");
        let million: NodeList = (2..1_000_002).map(NodeIx).collect();
        assert_eq!(serde_json::to_string(&million).unwrap(), r#"[{"from":2,"count":1000000}]"#);
        let every_third: NodeList = (0..100).map(|place| NodeIx(3 * place)).collect();
        assert_eq!(serde_json::to_string(&every_third).unwrap(), r#"[{"from":0,"count":100,"by":3}]"#);
    }

    #[test]
    fn what_no_list_can_be_is_refused_and_an_unknown_field_is_named() {
        for text in
            ["[-1]", "[4294967296]", r#"[{"from":4294967295,"count":2}]"#, r#"[{"from":1,"count":2,"by":0}]"#, "7"]
        {
            assert!(serde_json::from_str::<NodeList>(text).is_err(), "{text}");
        }
        let error = serde_json::from_str::<NodeList>(r#"[{"from":0,"count":9,"step":2}]"#).unwrap_err();
        assert!(error.to_string().contains("`step`"), "{error}");
    }
}
