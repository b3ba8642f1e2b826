//! Random operations do the same on both engines: what one shows, the other shows.

use std::collections::HashMap;
use std::sync::Arc;

use proofhouse_store::model::{
    AppendTurns, ChannelState, ChannelUpdate, DeliveryDecision, EventClaim, EventFilter, HeldLease,
    NewChannel, NewPoll, PollCommit, ReceiveOutcome, Retention, ScheduleTick, TaskFilter,
    TaskState, TriggerKey, TriggerKind, WakeRules,
};
use proofhouse_store::{Result, Store};
use proofhouse_test_support::postgres::Postgres;
use serde_json::{Value, json};

use crate::contract::place::Place;
use crate::contract::support::{
    LONG, OVER, allow, append, change, delivery, event, interest, kind, message, routing, task,
    tool,
};

/// How many operations a run has, and how many runs there are.
const OPERATIONS: usize = 250;
const RUNS: u64 = 4;

/// Numbers that look random and are the same in every run with the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // The generator of Knuth's MMIX; its upper bits are good enough for this.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }

    fn task(&mut self) -> String {
        format!("t{}", self.roll(5))
    }
}

/// A store with what was got from it. Ids differ between engines, so they are called by the order they came in.
struct Side {
    store: Arc<Store>,
    claims: Vec<EventClaim>,
    events: Vec<i64>,
    deliveries: Vec<i64>,
    leases: Vec<HeldLease>,
    polls: Vec<HeldLease>,
}

impl Side {
    async fn new(place: &Place) -> Self {
        Self {
            store: place.open().await,
            claims: Vec::new(),
            events: Vec::new(),
            deliveries: Vec::new(),
            leases: Vec::new(),
            polls: Vec::new(),
        }
    }

    /// Does one operation and says what came of it, without ids and times.
    async fn act(&mut self, dice: &mut Dice) -> String {
        let store = Arc::clone(&self.store);
        match dice.roll(16) {
            0 => {
                let mut new = task(&dice.task());
                new.interests = vec![interest("opened")];
                new.sealed = vec![allow("repo", json!(dice.roll(2)), true)];
                new.polls = vec![NewPoll {
                    tool: tool(),
                    event: "changed".to_owned(),
                    due_in_ms: 0,
                }];
                new.first = (dice.roll(2) == 0).then(|| message("begin"));
                told(
                    store
                        .create_task(new)
                        .await
                        .map(|task| json!([task.state, task.next_seq])),
                )
            }
            1 | 2 => {
                let events: Arc<[_]> = (0..=dice.roll(3))
                    .map(|_| event(Some(&format!("k{}", dice.roll(12)))))
                    .collect();
                let outcome = store.receive(events).await;
                told(outcome.map(|received| {
                    let named = received.into_iter().map(|received| {
                        let index = index(&mut self.events, received.id());
                        json!([matches!(received, ReceiveOutcome::Stored(_)), index])
                    });
                    Value::Array(named.collect())
                }))
            }
            3 => {
                let lease = if dice.roll(3) == 0 { OVER } else { LONG };
                let outcome = store.claim_events("one", lease, 1 + dice.roll(2)).await;
                told(outcome.map(|claimed| {
                    self.claims
                        .extend(claimed.iter().map(|claimed| claimed.claim));
                    let named = claimed.iter().map(|claimed| {
                        json!([
                            index(&mut self.events, claimed.claim.event),
                            claimed.claim.attempt,
                            claimed.claim.fence
                        ])
                    });
                    Value::Array(named.collect())
                }))
            }
            4 | 5 => {
                let Some(claim) = pick(&self.claims, dice) else {
                    return "no claim".to_owned();
                };
                let deliveries = (0..dice.roll(4))
                    .map(|_| {
                        let mut new = delivery(&dice.task(), ["opened", "closed"][dice.roll(2)]);
                        if dice.roll(4) == 0 {
                            new.decision = DeliveryDecision::Discard("no".to_owned());
                        }
                        new
                    })
                    .collect();
                let outcome = store.route(routing(claim, deliveries)).await;
                told(outcome.map(|ids| {
                    let named = ids
                        .into_iter()
                        .map(|id| json!(index(&mut self.deliveries, id)));
                    Value::Array(named.collect())
                }))
            }
            6 => {
                let Some(id) = pick(&self.events, dice) else {
                    return "no event".to_owned();
                };
                told(store.replay(id).await.map(Value::from))
            }
            7 => {
                let mut new = message("hello");
                new.key = (dice.roll(2) == 0).then(|| format!("m{}", dice.roll(3)));
                let outcome = store.deliver(&dice.task(), new).await;
                told(outcome.map(|received| {
                    json!([
                        matches!(received, ReceiveOutcome::Stored(_)),
                        index(&mut self.deliveries, received.id())
                    ])
                }))
            }
            8 => {
                let wake = WakeRules {
                    waiting: dice.roll(2) == 0,
                    interrupted: dice.roll(2) == 0,
                };
                let lease = if dice.roll(2) == 0 { OVER } else { LONG };
                let outcome = store.claim_tasks("one", lease, wake, 10).await;
                told(outcome.map(|mut claimed| {
                    // Those whose last activity is in the same millisecond have no order.
                    claimed.sort_by(|one, other| one.task.id.cmp(&other.task.id));
                    self.leases
                        .extend(claimed.iter().map(|claimed| claimed.lease.held()));
                    let named = claimed.iter().map(|claimed| {
                        let next = claimed
                            .next
                            .as_ref()
                            .map(|next| index(&mut self.deliveries, next.id));
                        json!([
                            claimed.task.id,
                            claimed.task.state,
                            claimed.lease.fence,
                            next
                        ])
                    });
                    Value::Array(named.collect())
                }))
            }
            9..=11 => {
                let Some(held) = pick(&self.leases, dice) else {
                    return "no lease".to_owned();
                };
                let seq = store.task(&held.name).await.map_or(0, |task| task.next_seq);
                let pending = store
                    .pending(&held.name, 1)
                    .await
                    .ok()
                    .and_then(|pending| pending.first().map(|next| next.id));
                let step = AppendTurns {
                    delivered: pending.filter(|_| dice.roll(3) > 0),
                    allow: vec![allow(
                        ["repo", "owner"][dice.roll(2)],
                        json!(dice.roll(4)),
                        dice.roll(5) == 0,
                    )],
                    state: (dice.roll(2) == 0).then(|| (TaskState::ALL[dice.roll(5)], None)),
                    ..append(
                        &held.name.clone(),
                        held,
                        seq - i64::from(dice.roll(8) == 0),
                        1 + dice.roll(2),
                    )
                };
                told(
                    store
                        .append(step)
                        .await
                        .map(|appended| json!(appended.next_seq)),
                )
            }
            12 => {
                let to = TaskState::ALL[dice.roll(4)];
                told(
                    store
                        .change_state(change(&dice.task(), to))
                        .await
                        .map(|task| json!(task.state)),
                )
            }
            13 => {
                let outcome = store
                    .claim_polls("one", if dice.roll(2) == 0 { OVER } else { LONG }, 10, 100)
                    .await;
                told(outcome.map(|mut claimed| {
                    claimed.sort_by(|one, other| one.poll.task.cmp(&other.poll.task));
                    self.polls
                        .extend(claimed.iter().map(|claimed| claimed.lease.held()));
                    let named = claimed
                        .iter()
                        .map(|claimed| json!([claimed.poll.task, claimed.lease.fence]));
                    Value::Array(named.collect())
                }))
            }
            14 => {
                let Some(held) = pick(&self.polls, dice) else {
                    return "no poll".to_owned();
                };
                let commit = PollCommit {
                    held,
                    cursor: Some(json!(dice.roll(100))),
                    seen: vec![dice.roll(100).to_string()],
                    due_in_ms: 0,
                    failures: 0,
                    last_error: None,
                    events: vec![event(Some(&format!("p{}", dice.roll(20))))],
                };
                told(store.commit_poll(commit).await.map(|received| {
                    json!([
                        matches!(received[0], ReceiveOutcome::Stored(_)),
                        index(&mut self.events, received[0].id())
                    ])
                }))
            }
            _ => self.act_rarely(dice).await,
        }
    }

    async fn act_rarely(&mut self, dice: &mut Dice) -> String {
        let store = Arc::clone(&self.store);
        match dice.roll(6) {
            0 => told(store.delete_task(&dice.task()).await.map(|()| Value::Null)),
            1 => {
                let fire = ScheduleTick {
                    key: TriggerKey {
                        kind: TriggerKind::Schedule,
                        namespace: "acme".to_owned(),
                        name: "nightly".to_owned(),
                    },
                    held: None,
                    tick: i64::try_from(dice.roll(50)).unwrap_or(0),
                    next_at: None,
                    task: Some(task(&dice.task())),
                };
                told(store.fire_schedule(fire).await.map(|fired| json!(fired)))
            }
            2 => {
                let Some(held) = pick(&self.leases, dice) else {
                    return "no lease".to_owned();
                };
                told(store.release(held).await.map(|()| Value::Null))
            }
            3 => {
                let id = format!("c{}", dice.roll(3));
                let new = NewChannel {
                    callback: format!("at-{id}"),
                    id,
                    task: dice.task(),
                    tool: tool(),
                    event: "changed".to_owned(),
                    expires_at: None,
                    replaces: Some(format!("c{}", dice.roll(3))),
                };
                told(
                    store
                        .open_channel(new, "one", OVER)
                        .await
                        .map(|opened| json!(opened.lease.fence)),
                )
            }
            4 => {
                let update = ChannelUpdate {
                    id: format!("c{}", dice.roll(3)),
                    held: None,
                    from: vec![
                        ChannelState::ALL[dice.roll(6)],
                        ChannelState::ALL[dice.roll(6)],
                    ],
                    to: Some(ChannelState::ALL[dice.roll(6)]),
                    expires_at: None,
                    renew_at: None,
                    response: None,
                    failures: None,
                    last_error: None,
                    release: false,
                };
                told(
                    store
                        .update_channel(update)
                        .await
                        .map(|channel| json!(channel.state)),
                )
            }
            _ => {
                let retention = Retention {
                    dedupe_ms: 0,
                    events_ms: Some(0),
                    ended_tasks_ms: None,
                    channels_ms: Some(0),
                    batch: 100,
                    ..Retention::default()
                };
                told(store.sweep(retention).await.map(|swept| json!(swept)))
            }
        }
    }

    /// Everything that can be seen, without ids and times.
    async fn state(&mut self, place: &Place) -> Value {
        let store = Arc::clone(&self.store);
        let mut tasks = Vec::new();
        let filter = TaskFilter {
            limit: 100,
            ..TaskFilter::default()
        };
        for task in store.tasks(filter).await.unwrap() {
            let turns = store.turns(&task.id, 0, 1000).await.unwrap();
            let deliveries = store.deliveries(&task.id, None, 1000).await.unwrap();
            let deliveries: Vec<_> = deliveries
                .iter()
                .map(|one| {
                    let event = one.event.map(|event| index(&mut self.events, event));
                    json!([
                        index(&mut self.deliveries, one.id),
                        event,
                        one.attempt,
                        one.name,
                        one.state,
                        one.turn_seq,
                        one.reason
                    ])
                })
                .collect();
            let polls = store.polls(&task.id).await.unwrap();
            tasks.push(json!({
                "id": task.id, "state": task.state, "next": task.next_seq,
                "turns": turns.iter().map(|turn| json!([turn.seq, turn.body])).collect::<Vec<_>>(),
                "deliveries": deliveries,
                "allow": store.allow_list(&task.id).await.unwrap(),
                "interests": store.interests(&task.id).await.unwrap(),
                "polls": polls.iter().map(|poll| json!([poll.cursor, poll.seen, poll.failures])).collect::<Vec<_>>(),
            }));
        }
        let filter = EventFilter {
            limit: 1000,
            ..EventFilter::default()
        };
        let mut events: HashMap<String, Value> = HashMap::new();
        for event in store.events(filter).await.unwrap() {
            let index = index(&mut self.events, event.id);
            let shown = json!([
                event.dedupe_key,
                event.state,
                event.attempt,
                event.matched,
                event.outcome
            ]);
            events.insert(index.to_string(), shown);
        }
        let channels = store
            .channels(proofhouse_store::model::ChannelFilter {
                limit: 100,
                ..Default::default()
            })
            .await
            .unwrap();
        let leases = place.texts(
            "SELECT name || ' ' || CAST(fence AS TEXT) || ' ' || owner FROM leases \
             WHERE kind = 'task' AND owner IS NOT NULL ORDER BY name",
        );
        let starts = store.triggers().await.unwrap();
        let mut events: Vec<_> = events.into_iter().collect();
        events.sort_by(|one, other| one.0.cmp(&other.0));
        json!({
            "tasks": tasks,
            "events": events,
            "channels": channels.iter().map(|channel| json!([channel.id, channel.task, channel.state])).collect::<Vec<_>>(),
            "leases": leases.await,
            "starts": starts,
            "stats": store.stats().await.unwrap(),
        })
    }
}

fn index(ids: &mut Vec<i64>, id: i64) -> usize {
    ids.iter()
        .position(|known| *known == id)
        .unwrap_or_else(|| {
            ids.push(id);
            ids.len() - 1
        })
}

fn pick<T: Clone>(from: &[T], dice: &mut Dice) -> Option<T> {
    let roll = dice.roll(from.len().max(1));
    // The latest are the most interesting.
    let at = (from.len().saturating_sub(1)).checked_sub(roll / 2)?;
    from.get(at).cloned()
}

fn told(outcome: Result<Value>) -> String {
    match outcome {
        Ok(value) => value.to_string(),
        Err(error) => kind(&error).to_owned(),
    }
}

#[test]
fn both_engines_do_the_same() {
    let Some(url) = Postgres::shared("both_engines_do_the_same") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for seed in 1..=RUNS {
            let places = [Place::sqlite(), Place::postgres(url.clone())];
            let mut one = Side::new(&places[0]).await;
            let mut other = Side::new(&places[1]).await;
            let mut history = Vec::new();
            for number in 0..OPERATIONS {
                let state = seed * 1_000_003 + u64::try_from(number).unwrap() * 7_919;
                let done = one.act(&mut Dice(state)).await;
                let also = other.act(&mut Dice(state)).await;
                history.push(done.clone());
                assert_eq!(
                    done, also,
                    "seed {seed}, operation {number}, after {history:?}"
                );
                if number % 25 == 24 {
                    assert_eq!(
                        one.state(&places[0]).await,
                        other.state(&places[1]).await,
                        "seed {seed}, operation {number}"
                    );
                }
            }
            // A run in which nothing works shows nothing.
            let worked = history
                .iter()
                .filter(|told| told.starts_with(['[', '{', '"']))
                .count();
            assert!(
                worked > OPERATIONS / 4,
                "only {worked} operations worked: {history:?}"
            );
            for (side, place) in [(one, &places[0]), (other, &places[1])] {
                side.store.close().await;
                place.remove().await;
            }
        }
    });
}
