//! Parses every message in `fixtures/aws/events` and compares the outcome. Also tests what must hold for any message.

mod outcomes;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use outcomes::OUTCOMES;
use poolwright_provider_aws_model::events::{
    Event, EventDetail, MAX_BYTES, Message, Scope, Unreadable, read,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/aws/events")
}

fn scope() -> Scope {
    Scope { account: "123456789012".parse().unwrap(), region: "us-east-1".parse().unwrap() }
}

fn body(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Describes a result in one line.
fn outcome(result: &Result<Message, Unreadable>) -> String {
    match result {
        Err(error) => format!("error: {error}"),
        Ok(Message::Ignored(ignored)) => format!("ignored: {ignored}"),
        Ok(Message::Event(event)) => what(event),
    }
}

fn what(event: &Event) -> String {
    match &event.detail {
        EventDetail::CapacityBlockEnds { reservation, end } => format!("{reservation} ends {end}"),
        EventDetail::Instances(affected) => {
            let mut line = String::new();
            for one in affected {
                let by = one.deadline.map(|deadline| format!(" by {deadline}")).unwrap_or_default();
                let _ = write!(
                    line,
                    "{}{} {:?}{by}",
                    if line.is_empty() { "" } else { "; " },
                    one.instance,
                    one.kind
                );
            }
            line
        }
    }
}

#[test]
fn every_message_in_the_folder_means_what_the_table_says() {
    let mut wrong = String::new();
    for (name, expected) in OUTCOMES {
        let found = outcome(&read(&body(name), &scope()));
        if !found.starts_with(expected) || (!expected.starts_with("error: ") && found != *expected) {
            let _ = write!(wrong, "\n{name}\n  expected {expected}\n  found    {found}");
        }
    }
    let present: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed: BTreeSet<String> = OUTCOMES.iter().map(|(name, _)| (*name).to_owned()).collect();
    for name in present.symmetric_difference(&listed) {
        let _ = write!(
            wrong,
            "\n{name} is in the table or in the folder alone: {}",
            if present.contains(name) { outcome(&read(&body(name), &scope())) } else { String::new() }
        );
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_event_has_an_account_a_region_and_a_time() {
    let Ok(Message::Event(event)) = read(&body("spot-terminate.json"), &scope()) else { panic!("an event") };
    assert_eq!(event.id, "1e5527d7-bb36-4607-3370-4164db56a40e");
    assert_eq!(event.at.to_string(), "2026-08-21T12:00:00Z");
    assert_eq!((event.account.as_str(), event.region.as_str()), ("123456789012", "us-east-1"));
}

#[test]
fn errors_are_one_short_line_of_plain_characters_whatever_the_message_is() {
    for (name, _) in OUTCOMES {
        let line = outcome(&read(&body(name), &scope()));
        if line.starts_with("error: ") || line.starts_with("ignored: ") {
            assert!(line.len() < 420 && line.chars().all(|c| (' '..='~').contains(&c)), "{name}: {line:?}");
        }
    }
}

#[test]
fn a_message_is_as_large_as_a_queue_takes_and_no_larger() {
    let mut message: Value = serde_json::from_slice(&body("health-retirement.json")).unwrap();
    let entities: Vec<Value> = (0..25_000).map(|i| json!({"entityValue": format!("i-{i:017x}")})).collect();
    message["detail"]["affectedEntities"] = entities.into();
    let text = serde_json::to_vec(&message).unwrap();
    assert!(text.len() < MAX_BYTES);
    let Ok(Message::Event(Event { detail: EventDetail::Instances(affected), .. })) = read(&text, &scope())
    else {
        panic!("an event")
    };
    assert_eq!(affected.len(), 25_000);

    let mut padded = body("spot-terminate.json");
    padded.resize(MAX_BYTES, b' ');
    assert!(matches!(read(&padded, &scope()), Ok(Message::Event(_))));
    padded.push(b' ');
    assert_eq!(read(&padded, &scope()), Err(Unreadable::TooLarge { bytes: MAX_BYTES + 1 }));
}

/// Returns the files that are events.
fn events() -> Vec<(&'static str, Value, String)> {
    let files =
        OUTCOMES.iter().filter(|(_, outcome)| outcome.starts_with("i-") || outcome.starts_with("cr-"));
    files
        .filter_map(|(name, outcome)| {
            Some((*name, serde_json::from_slice(&body(name)).ok()?, (*outcome).to_owned()))
        })
        .collect()
}

/// Collects the paths of all values in a message.
fn places(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, value)| (i.to_string(), value)).collect(),
        _ => return,
    };
    for (key, value) in inner {
        path.push(key);
        found.push(path.clone());
        places(value, path, found);
        path.pop();
    }
}

fn at<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(fields) => fields.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Checks a message with a part missing or changed: it must mean what it meant before, or less, and never anything else.
fn same_or_less(name: &str, was: &str, now: &Result<Message, Unreadable>) {
    let Ok(Message::Event(event)) = now else { return };
    let (was, now): (BTreeSet<_>, String) = (was.split("; ").collect(), what(event));
    for part in now.split("; ") {
        let known = was.iter().any(|whole| *whole == part || whole.starts_with(&format!("{part} by ")));
        // A warning without its time counts as two minutes' notice.
        let two_minutes = name.starts_with("reservation") && part.ends_with("by 2026-08-21T12:02:00Z");
        assert!(known || two_minutes, "{name} meant {was:?} and now means {part}");
    }
}

#[test]
fn a_message_with_any_part_left_out_or_of_another_type_means_the_same_or_less() {
    let mut tried = 0;
    for (name, message, outcome) in events() {
        let mut paths = Vec::new();
        places(&message, &mut Vec::new(), &mut paths);
        // Without a status, an instance counts as affected although its change is over: one report too many does less harm.
        for path in paths.iter().filter(|path| path.last().is_some_and(|key| key != "status")) {
            let (last, parent) = path.split_last().unwrap();
            let mut without = message.clone();
            match at(&mut without, parent) {
                Some(Value::Object(fields)) => drop(fields.remove(last)),
                Some(Value::Array(items)) => drop(items.remove(last.parse().unwrap())),
                _ => unreachable!("the path is of this message"),
            }
            same_or_less(name, &outcome, &read(without.to_string().as_bytes(), &scope()));
            for other in [
                Value::Null,
                true.into(),
                7.into(),
                "".into(),
                "\u{0}".into(),
                json!([]),
                json!({}),
                json!([[{}]]),
            ] {
                let mut changed = message.clone();
                *at(&mut changed, path).unwrap() = other;
                same_or_less(name, &outcome, &read(changed.to_string().as_bytes(), &scope()));
                tried += 1;
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn a_key_that_is_there_twice_is_refused_wherever_it_is() {
    for (name, message, _) in events() {
        let text = message.to_string();
        let keys: BTreeSet<&str> = text
            .split('"')
            .zip(text.split('"').skip(1))
            .filter(|(key, next)| next.starts_with(':') && !key.contains('\\'))
            .map(|(key, _)| key)
            .collect();
        for key in keys {
            let twice = text.replacen(&format!("\"{key}\":"), &format!("\"{key}\":null,\"{key}\":"), 1);
            if twice != text {
                let found = read(twice.as_bytes(), &scope());
                assert!(
                    matches!(&found, Err(Unreadable::NotJson { cause, .. }) if cause.contains("twice")),
                    "{name} {key}: {found:?}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, &scope());
    }

    #[test]
    fn unknown_and_reordered_fields_change_nothing(
        which in any::<prop::sample::Index>(),
        key in "[a-z]{1,12}X",
        text in ".{0,40}",
        blanks in "[ \t\r\n]{0,20}",
    ) {
        let all = events();
        let (name, mut message, outcome_before) = all[which.index(all.len())].clone();
        let fields = message.as_object_mut().unwrap();
        fields.insert(key.clone(), json!({ "anything": text.clone() }));
        if let Some(Value::Object(detail)) = fields.get_mut("detail") {
            detail.insert(key, text.into());
        }
        // The fields in reverse order.
        let turned: Vec<String> = message.as_object().unwrap().iter().rev().map(|(k, v)| format!("{}{blanks}:{v}", Value::from(k.as_str()))).collect();
        let body = format!("{blanks}{{{}}}{blanks}", turned.join(","));
        prop_assert_eq!(outcome(&read(body.as_bytes(), &scope())), outcome_before, "{}", name);
    }

    #[test]
    fn a_message_with_broken_bytes_is_never_about_another_account_or_region(
        which in any::<prop::sample::Index>(),
        breaks in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (name, _) = OUTCOMES[which.index(OUTCOMES.len())];
        let mut bytes = body(name);
        if !bytes.is_empty() {
            for (place, byte) in breaks {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        if let Ok(Message::Event(event)) = read(&bytes, &scope()) {
            prop_assert_eq!((event.account, event.region), (scope().account, scope().region));
        }
    }
}
