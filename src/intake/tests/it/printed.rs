//! Tests that what a server printed is never refused whole: what is broken in it is named and left out.

use poolwright_intake::manifest::{objects, parse};
use serde_json::{Value, json};

use crate::json_kit::{object, stored};

fn written() -> Value {
    object("v1", "Pod", "mine", json!({"containers": [{"name": "a", "image": "x"}]}))
}

fn good() -> Value {
    stored(object("v1", "Pod", "good", json!({"containers": [{"name": "a", "image": "x"}]})), None)
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The values as the documents of a file.
fn file(documents: &[Value]) -> String {
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn beside_objects_of_a_server_what_is_broken_is_named_left_out_and_counts_as_not_read() {
    let place = "document 1, item 1 of all.json";
    let cases = [
        (json!("junk"), place, "not an object"),
        (json!({"kind": "Pod"}), place, "apiVersion or kind is missing"),
        (
            json!({"apiVersion": "v1", "metadata": {"name": "a", "uid": "u"}}),
            place,
            "apiVersion or kind is missing",
        ),
        (json!({"apiVersion": "v1", "kind": "List", "items": 5}), place, "items: it is no list"),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": null}),
            "Pod (document 1, item 1)",
            "metadata.name: missing",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {}}),
            "Pod (document 1, item 1)",
            "metadata.name: missing",
        ),
    ];
    for (broken, name, cause) in cases {
        let text = list(&[broken, good()]);
        let manifest = parse("all.json", &text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        assert_eq!((manifest.pods.len(), &manifest.unread[..]), (1, &[name.to_owned()][..]));
        assert!(manifest.left_out.contains(name), "{:?}", manifest.left_out);
        let told = format!("{name}: {cause}; ");
        assert!(manifest.notes.iter().any(|note| note.starts_with(&told)), "{told}: {:?}", manifest.notes);
        assert_eq!(objects("all.json", &text).map(|all| all.len()), Ok(1));
    }
}

#[test]
fn a_list_in_a_list_of_a_server_is_printed_too() {
    let inner = json!({"apiVersion": "v1", "kind": "PodList", "items": [{"spec": {}}, 3]});
    let manifest = parse("all.json", &list(&[inner, good()])).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(manifest.pods.len(), 1);
    assert_eq!(
        manifest.unread,
        ["document 1, item 1, item 2 of all.json", "Pod (document 1, item 1, item 1)"]
    );
}

#[test]
fn a_file_with_documents_of_a_server_only_is_printed_and_one_with_a_written_object_is_not() {
    let broken = json!({"kind": "Pod"});
    let manifest =
        parse("all.yaml", &file(&[good(), broken.clone()])).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!((manifest.pods.len(), manifest.unread.len()), (1, 1));
    for text in [
        list(&[broken.clone(), written()]),
        file(&[good(), written(), broken.clone()]),
        // Nothing else is there to plan for.
        file(&[json!({"metadata": {"name": "a", "uid": "u"}})]),
    ] {
        let errors = parse("all.yaml", &text).expect_err("its author corrects it");
        assert!(errors[0].to_string().contains("apiVersion or kind is missing; write both"), "{errors:?}");
    }
}

#[test]
fn an_empty_list_of_a_server_is_no_object() {
    let empty =
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": ""}, "items": null});
    let manifest = parse("all.yaml", &file(&[empty, good()])).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!((manifest.pods.len(), manifest.notes.len()), (1, 0), "{:?}", manifest.notes);
}
