//! Cases about channels.

use std::sync::Arc;

use proofhouse_store::Store;
use proofhouse_store::model::{
    ChannelFilter, ChannelRecord, ChannelState, ChannelUpdate, CloseReason, NewChannel, NewEvent,
    ReceiveOutcome, RepeatRule, TaskState,
};
use serde_json::json;

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, OVER, change, create, event, receive_one, refused, tool, two,
};

fn channel(id: &str, task: &str) -> NewChannel {
    NewChannel {
        id: id.to_owned(),
        callback: format!("at-{id}"),
        task: task.to_owned(),
        tool: tool(),
        event: "changed".to_owned(),
        expires_at: Some(LONG),
        replaces: None,
    }
}

fn to(id: &str, state: ChannelState) -> ChannelUpdate {
    ChannelUpdate {
        id: id.to_owned(),
        held: None,
        from: Vec::new(),
        to: Some(state),
        expires_at: None,
        renew_at: None,
        response: None,
        failures: None,
        last_error: None,
        release: false,
    }
}

async fn open(store: &Store, id: &str, task: &str, lease_ms: i64) -> ChannelRecord {
    store
        .open_channel(channel(id, task), "one", lease_ms)
        .await
        .unwrap()
        .channel
}

pub(crate) async fn a_channel_lives_and_is_replaced(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let opened = store
        .open_channel(channel("c1", "t1"), "one", LONG)
        .await
        .unwrap();
    assert_eq!(opened.channel.state, ChannelState::Subscribing);
    refused(
        store.open_channel(channel("c1", "t1"), "one", LONG).await,
        "conflict",
    );
    let active = store
        .update_channel(ChannelUpdate {
            held: Some(opened.lease.held()),
            from: vec![ChannelState::Subscribing],
            expires_at: Some(77),
            renew_at: Some(66),
            response: Some(json!({"resourceId": "r"})),
            release: true,
            ..to("c1", ChannelState::Active)
        })
        .await
        .unwrap();
    assert_eq!((active.expires_at, active.renew_at), (Some(77), Some(66)));
    assert_eq!(active.response, Some(json!({"resourceId": "r"})));
    // The new one is open before the old one is closed.
    let successor = NewChannel {
        replaces: Some("c1".to_owned()),
        ..channel("c2", "t1")
    };
    store.open_channel(successor, "one", LONG).await.unwrap();
    assert_eq!(
        store.channel("c1").await.unwrap().state,
        ChannelState::Active
    );
    store
        .update_channel(to("c2", ChannelState::Active))
        .await
        .unwrap();
    assert_eq!(
        store.channel("c1").await.unwrap().state,
        ChannelState::Replaced
    );
    let kept = store.channel("c1").await.unwrap();
    assert_eq!(
        kept.response,
        Some(json!({"resourceId": "r"})),
        "closing needs it"
    );
    let wrong = ChannelUpdate {
        from: vec![ChannelState::Active],
        ..to("c1", ChannelState::Closed)
    };
    refused(store.update_channel(wrong).await, "conflict");
    refused(
        store.update_channel(to("c9", ChannelState::Closed)).await,
        "not found",
    );
    let of = |state| ChannelFilter {
        task: Some("t1".to_owned()),
        state,
        limit: 10,
    };
    assert_eq!(store.channels(of(None)).await.unwrap().len(), 2);
    assert_eq!(
        store
            .channels(of(Some(ChannelState::Active)))
            .await
            .unwrap()[0]
            .id,
        "c2"
    );
}

pub(crate) async fn a_channel_is_renewed_in_time(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&one, "t1").await;
    let now = one.now().await.unwrap();
    for (id, renew_at) in [
        ("due", Some(now - 1)),
        ("later", Some(now + LONG)),
        ("never", None),
    ] {
        open(&one, id, "t1", OVER).await;
        let update = ChannelUpdate {
            renew_at,
            ..to(id, ChannelState::Active)
        };
        one.update_channel(update).await.unwrap();
    }
    let claimed = one.claim_renewals("one", OVER, 10).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].channel.id, "due");
    // The process went away in the middle of it.
    let again = other.claim_renewals("other", LONG, 10).await.unwrap();
    assert_eq!(again[0].channel.id, "due");
    assert!(
        one.claim_renewals("one", LONG, 10)
            .await
            .unwrap()
            .is_empty()
    );
    one.release(again[0].lease.held()).await.unwrap();
    one.change_state(change("t1", TaskState::Interrupted))
        .await
        .unwrap();
    assert!(
        one.claim_renewals("one", LONG, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

pub(crate) async fn strays_are_swept(place: Arc<Place>) {
    let store = place.open().await;
    for task in ["lives", "ends", "pauses", "vanishes"] {
        create(&store, task).await;
        open(&store, &format!("of {task}"), task, OVER).await;
        store
            .update_channel(to(&format!("of {task}"), ChannelState::Active))
            .await
            .unwrap();
    }
    open(&store, "half open", "lives", OVER).await;
    open(&store, "being opened", "lives", LONG).await;
    for (id, state) in [
        ("closing", ChannelState::Closing),
        ("replaced", ChannelState::Replaced),
        ("closed", ChannelState::Closed),
        ("lost", ChannelState::Lost),
    ] {
        open(&store, id, "lives", OVER).await;
        store.update_channel(to(id, state)).await.unwrap();
    }
    store
        .change_state(change("ends", TaskState::Ended))
        .await
        .unwrap();
    store
        .change_state(change("pauses", TaskState::Interrupted))
        .await
        .unwrap();
    store.delete_task("vanishes").await.unwrap();
    let swept = store.claim_sweeps("one", OVER, 100).await.unwrap();
    let mut found: Vec<_> = swept
        .iter()
        .map(|swept| (swept.channel.id.as_str(), swept.reason))
        .collect();
    found.sort_by_key(|(id, _)| *id);
    assert_eq!(
        found,
        [
            ("closing", CloseReason::Closing),
            ("half open", CloseReason::Abandoned),
            ("of ends", CloseReason::TaskEnded),
            ("of pauses", CloseReason::TaskInterrupted),
            ("of vanishes", CloseReason::TaskEnded),
            ("replaced", CloseReason::Replaced),
        ]
    );
    // Closing failed: it is tried again later, not at once.
    let later = ChannelUpdate {
        renew_at: Some(store.now().await.unwrap() + LONG),
        failures: Some(1),
        last_error: Some("the platform answers 500".to_owned()),
        ..to("closing", ChannelState::Closing)
    };
    store.update_channel(later).await.unwrap();
    for id in [
        "half open",
        "of ends",
        "of pauses",
        "of vanishes",
        "replaced",
    ] {
        store
            .update_channel(to(id, ChannelState::Closed))
            .await
            .unwrap();
    }
    assert!(
        store
            .claim_sweeps("one", LONG, 100)
            .await
            .unwrap()
            .is_empty()
    );
    let again = ChannelUpdate {
        renew_at: Some(0),
        ..to("closing", ChannelState::Closing)
    };
    store.update_channel(again).await.unwrap();
    assert_eq!(store.claim_sweeps("one", LONG, 100).await.unwrap().len(), 1);
}

pub(crate) async fn an_old_owner_cannot_change_a_channel(place: Arc<Place>) {
    let [one, other] = two(&place).await;
    create(&one, "t1").await;
    let old = one
        .open_channel(channel("c1", "t1"), "one", OVER)
        .await
        .unwrap()
        .lease;
    let new = other
        .claim_sweeps("other", LONG, 10)
        .await
        .unwrap()
        .remove(0)
        .lease;
    let late = ChannelUpdate {
        held: Some(old.held()),
        ..to("c1", ChannelState::Active)
    };
    refused(one.update_channel(late).await, "fenced");
    let close = ChannelUpdate {
        held: Some(new.held()),
        release: true,
        ..to("c1", ChannelState::Closed)
    };
    assert_eq!(
        other.update_channel(close.clone()).await.unwrap().state,
        ChannelState::Closed
    );
    refused(other.update_channel(close).await, "fenced");
}

pub(crate) async fn overlapping_channels_tell_of_an_event_once(place: Arc<Place>) {
    let store = place.open().await;
    create(&store, "t1").await;
    let through = async |channel: &str, digest: &str| {
        let new = NewEvent {
            source: format!("channel:{channel}"),
            repeats: RepeatRule::AcrossChannels {
                channel: channel.to_owned(),
                digest: digest.to_owned(),
            },
            ..event(None)
        };
        matches!(receive_one(&store, new).await, ReceiveOutcome::Stored(_))
    };
    open(&store, "c1", "t1", OVER).await;
    store
        .update_channel(to("c1", ChannelState::Active))
        .await
        .unwrap();
    // Alone, a channel suppresses nothing.
    assert!(through("c1", "aa").await && through("c1", "aa").await);
    let successor = NewChannel {
        replaces: Some("c1".to_owned()),
        ..channel("c2", "t1")
    };
    store.open_channel(successor, "one", LONG).await.unwrap();
    // Both tell of two equal events and of one that is different, in whatever order.
    assert!(through("c1", "aa").await && through("c1", "aa").await);
    assert!(!through("c2", "aa").await && !through("c2", "aa").await);
    assert!(through("c2", "aa").await, "a third one");
    assert!(through("c2", "bb").await && !through("c1", "bb").await);
    assert!(!through("c1", "aa").await);
    // Others are not concerned.
    open(&store, "c3", "t1", LONG).await;
    assert!(through("c3", "bb").await && through("c3", "bb").await);
    let found = store.channel_at("at-c2").await.unwrap();
    assert_eq!(
        (found.id.as_str(), found.replaces.as_deref()),
        ("c2", Some("c1"))
    );
    refused(store.channel_at("at-").await, "not found");
}
