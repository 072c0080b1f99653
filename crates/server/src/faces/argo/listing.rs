//! Lists of this face, sent piece by piece while their items are read, so that no list is in memory as a whole. One that
//! fits into the first piece is answered at once. It knows nothing of what is in them.

use octoflow_control::registry::Fault as RegistryFault;
use octoflow_model::Revision;
use serde_json::{Value, json};

use super::mask::Mask;
use crate::answer::{pieces::Pieces, stream::Piece};

/// Where the items of a list come from. Both calls wait for the disk and the engine.
pub(super) trait Items: Send + 'static {
    fn next_item(&mut self) -> Result<Option<Value>, RegistryFault>;

    /// The revision of the list, and where the next page begins. Asked when there is no next item.
    fn end(&mut self) -> Result<(Revision, Option<String>), RegistryFault>;
}

/// List that is being sent.
pub(super) struct List<I> {
    kind: String,
    items: I,
    mask: Mask,
    begun: bool,
    /// An item was sent.
    told: bool,
}

impl<I: Items> List<I> {
    pub(super) fn new(kind: String, items: I, mask: Mask) -> Self {
        Self { kind, items, mask, begun: false, told: false }
    }

    /// Writes one item, unless the mask leaves out all of them.
    fn write(&mut self, item: Value, to: &mut Vec<u8>) {
        let mut list = json!({"items": [item]});
        self.mask.apply(&mut list);
        let Some(item) = list.get("items").and_then(|items| items.get(0)) else { return };
        let before: &[u8] = if std::mem::replace(&mut self.told, true) { b"," } else { b"\"items\":[" };
        to.extend_from_slice(before);
        serde_json::to_writer(to, item).expect("a value can always be written to memory");
    }

    /// Writes what comes after the items. Clients expect `null` for a list without any.
    fn finish(&mut self, to: &mut Vec<u8>) -> Result<(), RegistryFault> {
        let (revision, next) = self.items.end()?;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if let Some(next) = next {
            metadata["continue"] = json!(next);
        }
        let mut rest = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": self.kind, "metadata": metadata, "items": null,
        });
        self.mask.apply(&mut rest);
        if self.told {
            to.push(b']');
            if let Some(fields) = rest.as_object_mut() {
                fields.remove("items");
            }
        }
        let rest = rest.to_string();
        if self.told && rest != "{}" {
            to.push(b',');
        }
        to.extend_from_slice(rest.trim_start_matches('{').as_bytes());
        Ok(())
    }
}

impl<I: Items> Pieces for List<I> {
    fn piece(&mut self) -> Result<(Vec<u8>, bool), RegistryFault> {
        let mut piece = if self.begun { Piece::new() } else { Piece::first() };
        if !std::mem::replace(&mut self.begun, true) {
            piece.bytes.push(b'{');
        }
        while let Some(item) = self.items.next_item()? {
            self.write(item, &mut piece.bytes);
            if piece.is_full() {
                return Ok((piece.bytes, true));
            }
        }
        self.finish(&mut piece.bytes)?;
        Ok((piece.bytes, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbered items of so many bytes.
    struct Counted {
        left: usize,
        bytes: usize,
    }

    impl Items for Counted {
        fn next_item(&mut self) -> Result<Option<Value>, RegistryFault> {
            let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
            self.left = left;
            Ok(Some(json!({"metadata": {"name": format!("n-{left}")}, "text": "x".repeat(self.bytes)})))
        }

        fn end(&mut self) -> Result<(Revision, Option<String>), RegistryFault> {
            Ok((Revision(7), Some("9".to_owned())))
        }
    }

    /// The list as its reader sees it, and the size of its largest piece.
    fn read(left: usize, bytes: usize, fields: &str) -> (Value, usize) {
        let mut list = List::new("XList".to_owned(), Counted { left, bytes }, Mask::parse(fields));
        let (mut text, mut largest) = (Vec::new(), 0);
        loop {
            let (piece, more) = list.piece().unwrap();
            largest = largest.max(piece.len());
            text.extend(piece);
            if !more {
                return (serde_json::from_slice(&text).unwrap(), largest);
            }
        }
    }

    #[test]
    fn a_list_is_the_same_in_one_piece_and_in_many() {
        let head = json!({"resourceVersion": "7", "continue": "9"});
        let empty = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "XList", "metadata": head, "items": null});
        assert_eq!(read(0, 1, "").0, empty);
        for (count, bytes) in [(1, 1), (3, 10), (100, 10_000)] {
            let (list, largest) = read(count, bytes, "");
            assert_eq!(list["items"].as_array().unwrap().len(), count);
            assert_eq!((&list["metadata"], &list["kind"]), (&head, &json!("XList")));
            assert!(largest < 100_000, "{largest}");
        }
    }

    #[test]
    fn a_mask_selects_parts_of_the_items_or_of_what_is_around_them() {
        let names = json!([{"metadata": {"name": "n-1"}}, {"metadata": {"name": "n-0"}}]);
        assert_eq!(read(2, 1, "items.metadata.name").0, json!({ "items": names }));
        assert_eq!(read(2, 1, "metadata.resourceVersion").0, json!({"metadata": {"resourceVersion": "7"}}));
        assert_eq!(read(2, 1, "-items,metadata,kind").0, json!({"apiVersion": "argoproj.io/v1alpha1"}));
        assert_eq!(read(2, 1, "none").0, json!({}));
        assert_eq!(read(0, 1, "items.metadata.name").0, json!({"items": null}));
    }
}
