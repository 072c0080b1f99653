//! Kept objects in pages: complete, in order, bounded.

use super::*;
use crate::ObjectPage;

const ALL: ObjectPage = ObjectPage { rows: usize::MAX, bytes: usize::MAX };

fn put_in(namespace: &str, name: &str, body: &str) -> Change {
    let (kind, uid) = ("ConfigMap".to_owned(), format!("uid-{namespace}-{name}"));
    Change::PutObject { kind, namespace: namespace.to_owned(), name: name.to_owned(), uid, body: body.into() }
}

fn places(objects: &[Object]) -> Vec<(&str, &str)> {
    objects.iter().map(|object| (object.namespace.as_str(), object.name.as_str())).collect()
}

#[test]
fn pages_bring_every_object_once_in_order() {
    let (_dir, store) = store();
    // The first is before the second by namespace, and behind it as a text with a slash.
    let kept = [("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "a"), ("b", "b")];
    let puts = kept.iter().rev().map(|(namespace, name)| put_in(namespace, name, "{}"));
    store.commit_wait(Batch::from_iter(puts.chain([put("other", "{}")]))).unwrap();
    let reader = store.reader().unwrap();
    for rows in 1..=kept.len() + 1 {
        let (mut all, mut names) = (Vec::new(), Vec::new());
        let mut after: Option<(String, String)> = None;
        loop {
            let place = after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
            let page = reader.objects_after("ConfigMap", None, place, ObjectPage { rows, ..ALL }).unwrap();
            names.extend(reader.object_names_after("ConfigMap", None, place, rows).unwrap());
            assert!(page.len() <= rows);
            let Some(last) = page.last() else { break };
            after = Some((last.namespace.clone(), last.name.clone()));
            all.extend(page);
        }
        assert_eq!(places(&all), kept, "{rows} at a time");
        assert_eq!(names.len(), kept.len());
    }
    let within = reader.objects_after("ConfigMap", Some("b"), Some(("b", "a")), ALL).unwrap();
    assert_eq!(places(&within), [("b", "b")]);
    assert!(reader.objects_after("Job", None, None, ALL).unwrap().is_empty());
}

#[test]
fn a_page_ends_with_the_object_that_has_its_bytes() {
    let (_dir, store) = store();
    let body = "x".repeat(1_000);
    store.commit_wait(Batch::from_iter(["a", "b", "c"].map(|name| put_in("default", name, &body)))).unwrap();
    let reader = store.reader().unwrap();
    let page = |bytes| reader.objects_after("ConfigMap", None, None, ObjectPage { bytes, ..ALL }).unwrap().len();
    assert_eq!([page(1), page(1_000), page(1_001), page(2_001), page(100_000)], [1, 1, 2, 3, 3]);
}
