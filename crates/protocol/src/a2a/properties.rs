//! Properties of the translation: what both generations can say survives the way there and back,
//! and nothing that a peer sends makes it panic.

use proofhouse_test_support::a2a_values::{anything, text};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    A2aMethod, A2aShape, A2aTaskState, A2aVersion, card, translate_item, translate_params,
    translate_result,
};

fn metadata() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        text().prop_map(|text| json!({"role": text, "kind": "text", "state": "working"})),
    ]
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        text().prop_map(|text| json!({"kind": "text", "text": text})),
        (text(), metadata())
            .prop_map(|(text, meta)| json!({"kind": "data", "data": {"kind": text}, "metadata": meta})),
        (text(), text()).prop_map(
            |(bytes, name)| json!({"kind": "file", "file": {"bytes": bytes, "mimeType": "a/b", "name": name}})
        ),
        text().prop_map(|uri| json!({"kind": "file", "file": {"uri": uri}})),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    (
        prop_oneof![Just("user"), Just("agent")],
        prop::collection::vec(part(), 0..4),
        text(),
        metadata(),
    )
        .prop_map(|(role, parts, id, metadata)| {
            json!({"kind": "message", "messageId": id, "role": role, "parts": parts, "metadata": metadata})
        })
}

fn state() -> impl Strategy<Value = &'static str> {
    let names = A2aTaskState::ALL.iter();
    let names: Vec<&str> = names.map(|state| state.as_str(A2aVersion::V0_3)).collect();
    prop::sample::select(names)
}

fn artifact() -> impl Strategy<Value = Value> {
    (text(), prop::collection::vec(part(), 0..3))
        .prop_map(|(id, parts)| json!({"artifactId": id, "parts": parts}))
}

fn item() -> impl Strategy<Value = Value> {
    prop_oneof![
        message(),
        (state(), message(), prop::collection::vec(artifact(), 0..3), prop::collection::vec(message(), 0..2))
            .prop_map(|(state, message, artifacts, history)| json!({"kind": "task", "id": "t", "contextId": "c",
                "status": {"state": state, "message": message, "timestamp": "2026-01-02T03:04:05Z"},
                "artifacts": artifacts, "history": history})),
        state().prop_map(|state| json!({"kind": "status-update", "taskId": "t", "contextId": "c",
            "status": {"state": state}, "final": A2aTaskState::parse(state).is_some_and(A2aTaskState::is_terminal)})),
        (artifact(), any::<bool>()).prop_map(|(artifact, append)| json!({"kind": "artifact-update",
            "taskId": "t", "contextId": "c", "artifact": artifact, "append": append})),
    ]
}

proptest! {
    #[test]
    fn there_and_back_keeps_what_both_can_say(item in item()) {
        let modern = translate_item(&item, A2aVersion::V1_0);
        prop_assert_ne!(&modern, &item);
        prop_assert_eq!(translate_item(&modern, A2aVersion::V0_3), item);
        prop_assert_eq!(translate_item(&modern, A2aVersion::V1_0), modern);
    }

    #[test]
    fn nothing_makes_it_panic_and_twice_is_once(value in anything()) {
        for to in A2aVersion::ALL {
            for method in A2aMethod::ALL {
                let _ = translate_params(*method, &value, *to);
                let _ = translate_result(*method, &value, *to);
            }
        }
        let legacy = translate_item(&value, A2aVersion::V0_3);
        prop_assert_eq!(translate_item(&legacy, A2aVersion::V0_3), legacy);
        let _ = (A2aShape::recognise(&value), card::project(&value));
    }
}
