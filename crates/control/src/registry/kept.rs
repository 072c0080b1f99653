//! Lists of kept objects, read from the store page by page: whoever goes through one holds a page of it and no more.
//! What changes meanwhile is seen as it is when its page is read; a watch from the list's revision tells it again.

use std::collections::VecDeque;

use octoflow_model::Revision;
use octoflow_store::{Object, ObjectPage};
use serde_json::Value;

use super::{Fault, Kind, ListOptions, Listing, Registry, stored::with_identity};

/// What is read at a time: enough that a list of small objects is one or two reads.
const PAGE: ObjectPage = ObjectPage { rows: 500, bytes: 1 << 20 };

/// One list on its way.
pub struct KeptList {
    registry: Registry,
    kind: &'static Kind,
    options: ListOptions,
    revision: Revision,
    page: VecDeque<Object>,
    /// The place of the last object that was read; nothing once the end was read.
    read: Option<Place>,
    /// The place of the last object that was given.
    given: Option<Place>,
    left: usize,
}

/// Namespace and name.
type Place = (String, String);

impl Registry {
    /// The objects of a kept kind that the options select, from the place the options name on.
    pub fn kept(&self, kind: &'static Kind, options: &ListOptions) -> Result<KeptList, Fault> {
        let begin = options.after.as_deref().map(place).unwrap_or_default();
        let namespace = options.namespace.as_deref();
        let (revision, page) = self.read(|reader| {
            reader.snapshot(|reader| {
                let first = reader.objects_after(kind.key, namespace, Some((&begin.0, &begin.1)), PAGE)?;
                Ok((reader.revision()?, first))
            })
        })?;
        let (read, left) = (page.last().map(place_of), options.limit.unwrap_or(usize::MAX));
        let (registry, options, page) = (self.clone(), options.clone(), page.into());
        Ok(KeptList { registry, kind, options, revision, page, read, given: None, left })
    }

    /// All of it at once.
    pub(super) fn list_stored(&self, kind: &'static Kind, options: &ListOptions) -> Result<Listing, Fault> {
        let mut list = self.kept(kind, options)?;
        let mut items = Vec::new();
        while let Some(item) = list.next_item()? {
            items.push(item);
        }
        Ok(Listing { items, revision: list.revision(), next: list.next_place()? })
    }
}

impl KeptList {
    /// Everything up to here is in it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The next object, until there is none or as many were given as were asked for.
    pub fn next_item(&mut self) -> Result<Option<Value>, Fault> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some((at, object)) = self.find()? else { return Ok(None) };
        self.left -= 1;
        self.given = Some(at);
        Ok(Some(object))
    }

    /// Where a next list begins, if something is left. To be asked when there is no next object.
    pub fn next_place(&mut self) -> Result<Option<String>, Fault> {
        let Some((namespace, name)) = self.given.clone() else { return Ok(None) };
        Ok(self.find()?.map(|_| format!("{namespace}/{name}")))
    }

    /// The next object that is selected.
    fn find(&mut self) -> Result<Option<(Place, Value)>, Fault> {
        loop {
            if let Some(object) = self.page.pop_front() {
                let kept = with_identity(self.kind, &object)?.object;
                let kept = self.registry.with_status(self.kind, kept)?;
                if self.options.selection.matches(&kept) {
                    return Ok(Some((place_of(&object), kept)));
                }
                continue;
            }
            let Some((namespace, name)) = self.read.take() else { return Ok(None) };
            let (kind, within) = (self.kind.key, self.options.namespace.as_deref());
            let page = self
                .registry
                .read(|reader| Ok(reader.objects_after(kind, within, Some((&namespace, &name)), PAGE)?))?;
            self.read = page.last().map(place_of);
            self.page = page.into();
        }
    }
}

fn place_of(object: &Object) -> Place {
    (object.namespace.clone(), object.name.clone())
}

/// A place as it was told: names have no slash. Of what has none the list begins anew.
pub(super) fn place(text: &str) -> Place {
    text.split_once('/').map(|(namespace, name)| (namespace.to_owned(), name.to_owned())).unwrap_or_default()
}
