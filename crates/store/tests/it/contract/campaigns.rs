//! Campaigns: runs are handed out in order, each is counted once, and nothing is spent beyond its cap.

use std::sync::Arc;

use proofhouse_store::model::{
    CampaignBlob, CampaignFilter, CampaignPulse, CampaignRow, CampaignState, ClaimedRun,
    FinishedRun, LanePrice, NewCampaign, NewLane, NewRun, PlannedKind, RequestPermit, RunClaim,
    RunCounted, RunGate,
};
use proofhouse_store::{Store, StoreError};

use super::place::Place;
use super::support::{LONG, OVER};

fn campaign(name: &str, lane: NewLane) -> NewCampaign {
    NewCampaign {
        name: name.to_owned(),
        format: 1,
        program: "1.0".to_owned(),
        plan: "plan".to_owned(),
        traces: Some("here".to_owned()),
        namespace: String::new(),
        lanes: vec![lane],
        blobs: vec![CampaignBlob {
            digest: "plan".to_owned(),
            body: b"{}".to_vec(),
        }],
    }
}

fn run(place: i64, kind: PlannedKind, document: i64, gate: RunGate) -> NewRun {
    NewRun {
        place,
        kind,
        document,
        subject: 0,
        repeat: 1,
        lane: 0,
        gate,
    }
}

/// Every campaign.
fn all() -> CampaignFilter {
    CampaignFilter {
        limit: 10,
        ..CampaignFilter::default()
    }
}

/// A campaign with this many attacks that nothing holds up.
async fn begun(store: &Store, lane: NewLane, attacks: i64) -> CampaignRow {
    let row = store.plan_campaign(campaign("c", lane)).await.unwrap();
    let attack = |place| run(place, PlannedKind::Attack, place, RunGate::Open);
    let runs = (0..attacks).map(attack).collect();
    store.add_runs(row.id, runs).await.unwrap();
    store.begin_campaign(row.id, attacks).await.unwrap();
    store.campaign(row.id).await.unwrap()
}

fn claim(campaign: &CampaignRow, owner: &str, lease_ms: i64, limit: usize) -> RunClaim {
    RunClaim {
        campaign: campaign.id,
        owner: owner.to_owned(),
        lease_ms,
        limit,
        is_idle: true,
        has_lost: false,
    }
}

fn finished(run: &ClaimedRun, tokens: i64) -> FinishedRun {
    FinishedRun {
        place: run.place,
        fence: run.fence,
        outcome: "resisted".to_owned(),
        reason: String::new(),
        tokens,
        milliseconds: 5,
        record: format!("{{\"place\":{}}}", run.place),
        trace: Some("t".to_owned()),
        stops: false,
    }
}

pub(crate) async fn runs_are_handed_out_and_counted_once(place: Arc<Place>) {
    let (one, other) = (place.open().await, place.open().await);
    let row = begun(&one, NewLane::default(), 100).await;
    let mut tasks = Vec::new();
    for (number, store) in [one.clone(), other.clone(), one.clone(), other.clone()]
        .into_iter()
        .enumerate()
    {
        let row = row.clone();
        tasks.push(tokio::spawn(async move {
            let mut counted = 0;
            loop {
                let owner = format!("w{number}");
                let handed = store
                    .claim_runs(claim(&row, &owner, LONG, 7))
                    .await
                    .unwrap();
                if handed.is_empty() {
                    return counted;
                }
                let done: Vec<_> = handed.iter().map(|run| finished(run, 2)).collect();
                let first = store.finish_runs(row.id, done.clone()).await.unwrap();
                assert!(first.iter().all(|one| *one == RunCounted::Now));
                // The answer was lost, so it is said again.
                let again = store.finish_runs(row.id, done).await.unwrap();
                assert!(again.iter().all(|one| *one == RunCounted::Before));
                counted += handed.len();
            }
        }));
    }
    let mut all = 0;
    for task in tasks {
        all += task.await.unwrap();
    }
    assert_eq!(all, 100);
    let counts = one.campaign_counts(row.id).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.runs).sum::<i64>(), 100);
    assert_eq!(counts.iter().map(|count| count.tokens).sum::<i64>(), 200);
    assert_eq!(
        one.campaign_lanes(row.id).await.unwrap()[0].used_tokens,
        200
    );
    let results = one.campaign_results(row.id, -1, 1000).await.unwrap();
    let places: Vec<i64> = results.iter().map(|result| result.place).collect();
    assert_eq!(places, (0..100).collect::<Vec<_>>());
    let state = other.settle_campaign(row.id).await.unwrap();
    assert_eq!(state, CampaignState::Finished);
    assert!(one.campaign(row.id).await.unwrap().ended_at.is_some());
}

pub(crate) async fn a_lost_run_is_handed_out_again(place: Arc<Place>) {
    let store = place.open().await;
    let row = begun(&store, NewLane::default(), 1).await;
    let lost = store
        .claim_runs(claim(&row, "dead", OVER, 5))
        .await
        .unwrap();
    assert_eq!((lost.len(), lost[0].losses), (1, 0));
    // Nobody has it until it is taken back.
    let none = store.claim_runs(claim(&row, "b", LONG, 5)).await.unwrap();
    assert!(none.is_empty());
    assert_eq!(store.take_back_runs(row.id, LONG).await.unwrap(), 1);
    assert_eq!(store.take_back_runs(row.id, LONG).await.unwrap(), 0);
    let again = store.claim_runs(claim(&row, "b", LONG, 5)).await.unwrap();
    assert_eq!(again[0].losses, 1);
    assert!(again[0].fence > lost[0].fence);
    // The dead one was only slow. What it says does not count.
    let late = store.finish_runs(row.id, vec![finished(&lost[0], 1)]).await;
    assert_eq!(late.unwrap(), [RunCounted::Fenced]);
    let kept = store.renew_runs(row.id, "b", LONG).await.unwrap();
    assert_eq!(kept, [(0, again[0].fence)]);
    assert!(
        store
            .renew_runs(row.id, "dead", LONG)
            .await
            .unwrap()
            .is_empty()
    );
    let done = store
        .finish_runs(row.id, vec![finished(&again[0], 1)])
        .await;
    assert_eq!(done.unwrap(), [RunCounted::Now]);
    store.settle_campaign(row.id).await.unwrap();
    // What a worker gives back itself is no loss, and what came to nothing waits.
    let row = begun(&store, NewLane::default(), 2).await;
    let held = store.claim_runs(claim(&row, "c", LONG, 2)).await.unwrap();
    let back = (held[0].place, held[0].fence);
    assert!(store.put_back_run(row.id, back, LONG, 0).await.unwrap());
    assert!(!store.put_back_run(row.id, back, LONG, 0).await.unwrap());
    assert_eq!(store.release_runs(row.id, "c").await.unwrap(), 1);
    let next = store.claim_runs(claim(&row, "c", LONG, 2)).await.unwrap();
    let next: Vec<_> = next.iter().map(|run| (run.place, run.losses)).collect();
    assert_eq!(next, [(1, 0)]);
    let runs = store.campaign_progress(row.id).await.unwrap();
    assert!(runs.due_in_ms.is_some_and(|due| due > 0), "{runs:?}");
}

pub(crate) async fn probes_come_before_controls_and_controls_before_attacks(place: Arc<Place>) {
    let store = place.open().await;
    let new = campaign("c", NewLane::default());
    let row = store.plan_campaign(new).await.unwrap();
    let runs = vec![
        run(0, PlannedKind::Probe, 0, RunGate::Open),
        run(1, PlannedKind::Probe, 1, RunGate::Open),
        run(2, PlannedKind::Control, 7, RunGate::Probes),
        run(3, PlannedKind::Attack, 7, RunGate::Control),
        run(4, PlannedKind::Attack, 8, RunGate::Probes),
        run(5, PlannedKind::Attack, 7, RunGate::Control),
    ];
    store.add_runs(row.id, runs.clone()).await.unwrap();
    // Before it is planned to its end, nothing is handed out; repeating a part of it is safe.
    let early = store.claim_runs(claim(&row, "w", LONG, 9)).await.unwrap();
    assert!(early.is_empty());
    store.add_runs(row.id, runs).await.unwrap();
    store.begin_campaign(row.id, 6).await.unwrap();
    let mut order = Vec::new();
    loop {
        let handed = store.claim_runs(claim(&row, "w", LONG, 9)).await.unwrap();
        if handed.is_empty() {
            break;
        }
        order.push(handed.iter().map(|run| run.place).collect::<Vec<_>>());
        for run in &handed {
            let done = store.finish_runs(row.id, vec![finished(run, 0)]).await;
            assert_eq!(done.unwrap(), [RunCounted::Now]);
        }
    }
    assert_eq!(order, [vec![0, 1], vec![2, 4], vec![3, 5]]);
    assert_eq!(store.campaign_probes(row.id).await.unwrap().len(), 2);
    let control = store.campaign_control(row.id, 7, 0).await.unwrap();
    assert_eq!(control.unwrap().place, 2);
    assert_eq!(store.campaign_control(row.id, 8, 0).await.unwrap(), None);
}

pub(crate) async fn caps_hold_for_all_workers(place: Arc<Place>) {
    let store = place.open().await;
    let lane = NewLane {
        max_tokens: Some(10),
        max_concurrent: Some(3),
        ..NewLane::default()
    };
    let row = begun(&store, lane, 20).await;
    let first = store.claim_runs(claim(&row, "a", LONG, 2)).await.unwrap();
    let second = store.claim_runs(claim(&row, "b", LONG, 9)).await.unwrap();
    assert_eq!(
        (first.len(), second.len()),
        (2, 1),
        "three at a time in all"
    );
    let done = first.iter().map(|run| finished(run, 4)).collect();
    store.finish_runs(row.id, done).await.unwrap();
    let third = store.claim_runs(claim(&row, "b", LONG, 9)).await.unwrap();
    assert_eq!(third.len(), 2, "eight of ten tokens are used");
    let done = third.iter().map(|run| finished(run, 4)).collect();
    store.finish_runs(row.id, done).await.unwrap();
    let none = store.claim_runs(claim(&row, "a", LONG, 9)).await.unwrap();
    assert!(none.is_empty(), "the tokens are spent");
    // Exceeded by what was under way, and no more.
    let state = store.settle_campaign(row.id).await.unwrap();
    assert_eq!(state, CampaignState::Running, "one run is under way");
    store
        .finish_runs(row.id, vec![finished(&second[0], 4)])
        .await
        .unwrap();
    assert_eq!(
        store.campaign_lanes(row.id).await.unwrap()[0].used_tokens,
        20
    );
    let state = store.settle_campaign(row.id).await.unwrap();
    assert_eq!(state, CampaignState::Capped);
    let remark = store.campaign(row.id).await.unwrap().remark.unwrap();
    assert!(remark.contains("15 runs were not made"), "{remark}");
}

pub(crate) async fn requests_are_spread_and_slowed_for_all(place: Arc<Place>) {
    let store = place.open().await;
    let lane = NewLane {
        requests_per_minute: Some(60),
        ..NewLane::default()
    };
    let row = begun(&store, lane, 2).await;
    let mut granted = 0;
    while store.permit_request(row.id, 0).await.unwrap() == RequestPermit::Granted {
        granted += 1;
        assert!(granted < 10, "sixty a minute is one a second");
    }
    assert!(granted >= 1);
    store.slow_down(row.id, 0, LONG).await.unwrap();
    // A shorter pause does not end a longer one.
    store.slow_down(row.id, 0, 1).await.unwrap();
    let RequestPermit::Wait(pause) = store.permit_request(row.id, 0).await.unwrap() else {
        panic!("everybody waits");
    };
    assert!(pause > LONG / 2, "{pause}");
    let none = store.claim_runs(claim(&row, "w", LONG, 2)).await.unwrap();
    assert!(none.is_empty());
    let lane = store.campaign_lanes(row.id).await.unwrap().remove(0);
    assert_eq!((lane.slowed, lane.used_requests), (2, granted));
}

pub(crate) async fn a_slow_run_is_made_twice_and_counted_once(place: Arc<Place>) {
    let store = place.open().await;
    let row = begun(&store, NewLane::default(), 2).await;
    let slow = store
        .claim_runs(claim(&row, "slow", LONG, 2))
        .await
        .unwrap();
    let early = store.steal_run(claim(&row, "quick", LONG, 1), LONG).await;
    assert_eq!(early.unwrap(), None, "it has not been long");
    let own = store.steal_run(claim(&row, "slow", LONG, 1), OVER).await;
    assert_eq!(own.unwrap(), None, "nobody steals from oneself");
    let stolen = store.steal_run(claim(&row, "quick", LONG, 1), OVER).await;
    let stolen = stolen.unwrap().unwrap();
    assert_eq!(stolen.place, slow[0].place);
    assert!(stolen.fence > slow[0].fence);
    let kept = store.renew_runs(row.id, "quick", LONG).await.unwrap();
    assert_eq!(kept, [(stolen.place, stolen.fence)]);
    let quick = store.finish_runs(row.id, vec![finished(&stolen, 1)]).await;
    assert_eq!(quick.unwrap(), [RunCounted::Now]);
    let late = store.finish_runs(row.id, vec![finished(&slow[0], 1)]).await;
    assert_eq!(late.unwrap(), [RunCounted::Fenced]);
    // The other way round, the first is quicker.
    let stolen = store.steal_run(claim(&row, "quick", LONG, 1), OVER).await;
    let stolen = stolen.unwrap().unwrap();
    let first = store.finish_runs(row.id, vec![finished(&slow[1], 1)]).await;
    assert_eq!(first.unwrap(), [RunCounted::Now]);
    let second = store.finish_runs(row.id, vec![finished(&stolen, 1)]).await;
    assert_eq!(second.unwrap(), [RunCounted::Fenced]);
    let counts = store.campaign_counts(row.id).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.runs).sum::<i64>(), 2);
}

pub(crate) async fn a_second_copy_that_is_given_up_costs_nobody_a_run(place: Arc<Place>) {
    let store = place.open().await;
    let stolen = async |row: &CampaignRow, owner: &str| {
        let stolen = store.steal_run(claim(row, owner, LONG, 1), OVER).await;
        stolen.unwrap().unwrap()
    };
    let counted = async |row: &CampaignRow, run: &ClaimedRun| {
        let counted = store.finish_runs(row.id, vec![finished(run, 1)]).await;
        counted.unwrap()[0]
    };
    // The second worker leaves, another takes its place, and leaves, too.
    let row = begun(&store, NewLane::default(), 2).await;
    let first = store.claim_runs(claim(&row, "a", LONG, 2)).await.unwrap();
    let second = stolen(&row, "b").await;
    assert_eq!(store.release_runs(row.id, "b").await.unwrap(), 0);
    let third = stolen(&row, "c").await;
    assert_eq!((second.place, third.place), (0, 0));
    assert!(third.fence > second.fence, "{third:?} {second:?}");
    assert_eq!(counted(&row, &second).await, RunCounted::Fenced);
    assert_eq!(store.release_runs(row.id, "c").await.unwrap(), 0);
    let kept = store.renew_runs(row.id, "a", LONG).await.unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(counted(&row, &first[0]).await, RunCounted::Now);
    // The first leaves: who makes it a second time goes on.
    let second = stolen(&row, "b").await;
    assert_eq!(second.place, 1);
    assert_eq!(store.release_runs(row.id, "a").await.unwrap(), 0);
    let none = store.claim_runs(claim(&row, "d", LONG, 2)).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
    let kept = store.renew_runs(row.id, "b", LONG).await.unwrap();
    assert_eq!(kept, [(1, second.fence)]);
    assert_eq!(counted(&row, &first[1]).await, RunCounted::Fenced);
    assert_eq!(counted(&row, &second).await, RunCounted::Now);
}

pub(crate) async fn a_second_copy_counts_against_its_cap(place: Arc<Place>) {
    let store = place.open().await;
    let lane = NewLane {
        max_concurrent: Some(3),
        ..NewLane::default()
    };
    let row = begun(&store, lane, 2).await;
    let slow = store
        .claim_runs(claim(&row, "slow", LONG, 2))
        .await
        .unwrap();
    assert_eq!(slow.len(), 2);
    let early = store.steal_run(claim(&row, "quick", LONG, 1), LONG).await;
    assert_eq!(early.unwrap(), None, "it has not been long");
    let stolen = store.steal_run(claim(&row, "quick", LONG, 1), OVER).await;
    let stolen = stolen.unwrap().unwrap();
    assert_eq!(stolen.place, slow[0].place);
    let full = store.steal_run(claim(&row, "other", LONG, 1), OVER).await;
    assert_eq!(full.unwrap(), None, "three are made at a time");
    let quick = store.finish_runs(row.id, vec![finished(&stolen, 1)]).await;
    assert_eq!(quick.unwrap(), [RunCounted::Now]);
    let free = store.steal_run(claim(&row, "other", LONG, 1), OVER).await;
    assert_eq!(free.unwrap().unwrap().place, slow[1].place);
}

pub(crate) async fn a_lost_run_is_handed_out_in_order_and_then_alone(place: Arc<Place>) {
    let store = place.open().await;
    let capped = NewLane {
        max_concurrent: Some(100),
        ..NewLane::default()
    };
    for lane in [NewLane::default(), capped] {
        let row = begun(&store, lane, 24).await;
        let places = async |claim: RunClaim| {
            let handed = store.claim_runs(claim).await.unwrap();
            handed.iter().map(|run| run.place).collect::<Vec<_>>()
        };
        let busy = |owner: &str, has_lost| RunClaim {
            is_idle: false,
            has_lost,
            ..claim(&row, owner, LONG, 30)
        };
        assert_eq!(places(claim(&row, "dead", OVER, 4)).await, [0, 1, 2, 3]);
        assert_eq!(store.take_back_runs(row.id, LONG).await.unwrap(), 4);
        // One of them goes along with others, and no second one while that is under way.
        assert_eq!(places(claim(&row, "b", LONG, 4)).await, [0, 4, 5, 6]);
        assert_eq!(places(busy("b", true)).await, (7..24).collect::<Vec<_>>());
        assert_eq!(places(busy("b", true)).await, [0; 0]);
        assert_eq!(places(busy("slow", false)).await, [1]);
        // One that takes two workers with it waits for a worker that has nothing else, and others do not wait for it.
        assert_eq!(places(claim(&row, "dead", OVER, 9)).await, [2]);
        assert_eq!(store.take_back_runs(row.id, LONG).await.unwrap(), 1);
        assert_eq!(places(claim(&row, "c", LONG, 9)).await, [3]);
        assert_eq!(places(busy("d", false)).await, [0; 0]);
        assert_eq!(places(claim(&row, "d", LONG, 9)).await, [2]);
        // So it is when it is made a second time.
        for owner in ["b", "c", "slow"] {
            let held = store.renew_runs(row.id, owner, LONG).await.unwrap();
            let done = held.iter().map(|(place, fence)| {
                let run = ClaimedRun {
                    place: *place,
                    fence: *fence,
                    kind: PlannedKind::Attack,
                    document: 0,
                    subject: 0,
                    repeat: 1,
                    losses: 0,
                    retries: 0,
                };
                finished(&run, 1)
            });
            let done = store.finish_runs(row.id, done.collect()).await.unwrap();
            assert!(done.iter().all(|one| *one == RunCounted::Now));
        }
        let again = store.steal_run(busy("e", false), OVER).await.unwrap();
        assert_eq!(again, None);
        let again = store.steal_run(claim(&row, "e", LONG, 1), OVER).await;
        assert_eq!(again.unwrap().unwrap().losses, 2);
        store.cancel_campaign(row.id, "").await.unwrap();
    }
}

pub(crate) async fn tokens_of_runs_that_do_not_count_are_spent(place: Arc<Place>) {
    let store = place.open().await;
    let row = begun(&store, NewLane::default(), 1).await;
    let used = async || store.campaign_lanes(row.id).await.unwrap()[0].used_tokens;
    let late = store.claim_runs(claim(&row, "a", OVER, 1)).await.unwrap();
    store.take_back_runs(row.id, LONG).await.unwrap();
    let held = store.claim_runs(claim(&row, "b", LONG, 1)).await.unwrap();
    let fenced = store.finish_runs(row.id, vec![finished(&late[0], 3)]).await;
    assert_eq!(fenced.unwrap(), [RunCounted::Fenced]);
    assert_eq!(used().await, 3);
    // One that is made again has used what it used, however often that is said.
    let back = (held[0].place, held[0].fence);
    assert!(store.put_back_run(row.id, back, 0, 5).await.unwrap());
    assert!(!store.put_back_run(row.id, back, 0, 5).await.unwrap());
    assert_eq!(used().await, 8);
    let last = store.claim_runs(claim(&row, "c", LONG, 1)).await.unwrap();
    // So has one that somebody else has by now.
    let lost = (late[0].place, late[0].fence);
    assert!(!store.put_back_run(row.id, lost, 0, 4).await.unwrap());
    assert_eq!(used().await, 12);
    for counted in [RunCounted::Now, RunCounted::Before] {
        let done = store.finish_runs(row.id, vec![finished(&last[0], 2)]).await;
        assert_eq!(done.unwrap(), [counted]);
        assert_eq!(used().await, 14);
    }
    let counts = store.campaign_counts(row.id).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.tokens).sum::<i64>(), 2);
}

pub(crate) async fn a_name_goes_on_with_the_same_caps_only(place: Arc<Place>) {
    let store = place.open().await;
    let lane = NewLane {
        name: "m".to_owned(),
        max_tokens: Some(10),
        ..NewLane::default()
    };
    let first = begun(&store, lane.clone(), 1).await;
    assert_eq!(begun(&store, lane.clone(), 1).await.id, first.id);
    let more = NewLane {
        max_tokens: Some(5),
        ..lane.clone()
    };
    let elsewhere = NewCampaign {
        traces: None,
        ..campaign("c", lane)
    };
    for (other, differs) in [
        (campaign("c", more), "other caps"),
        (elsewhere, "another place for its traces"),
    ] {
        let refused = store.plan_campaign(other).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict(_)), "{refused}");
        let text = refused.to_string();
        assert!(text.contains(differs), "{text}");
        assert!(text.contains("proofhouse campaigns cancel c"), "{text}");
    }
}

pub(crate) async fn a_name_has_one_campaign_at_a_time(place: Arc<Place>) {
    let store = place.open().await;
    let first = begun(&store, NewLane::default(), 3).await;
    let same = begun(&store, NewLane::default(), 3).await;
    assert_eq!((first.id, first.number), (same.id, same.number));
    let mut other = campaign("c", NewLane::default());
    other.plan = "another".to_owned();
    let refused = store.plan_campaign(other.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused}");
    let held = store.claim_runs(claim(&first, "w", LONG, 1)).await.unwrap();
    assert!(store.cancel_campaign(first.id, "enough").await.unwrap());
    assert!(!store.cancel_campaign(first.id, "enough").await.unwrap());
    let none = store.claim_runs(claim(&first, "w", LONG, 1)).await.unwrap();
    assert!(none.is_empty());
    // What was under way still counts.
    let done = store
        .finish_runs(first.id, vec![finished(&held[0], 1)])
        .await;
    assert_eq!(done.unwrap(), [RunCounted::Now]);
    let second = store.plan_campaign(other).await.unwrap();
    assert_eq!(second.number, 2);
    let newest = store.find_campaign("c", None).await.unwrap().unwrap();
    assert_eq!(newest.id, second.id);
    let named = store.find_campaign("c", Some(1)).await.unwrap().unwrap();
    assert_eq!(named.state, CampaignState::Cancelled);
    assert_eq!(store.find_campaign("d", None).await.unwrap(), None);
    assert_eq!(store.campaigns(all()).await.unwrap().len(), 2);
    assert_eq!(store.campaign_blob("plan").await.unwrap(), b"{}");
    // A campaign that stops at the first success does so for everybody.
    store.begin_campaign(second.id, 0).await.unwrap();
    let attack = run(0, PlannedKind::Attack, 0, RunGate::Open);
    store.add_runs(second.id, vec![attack]).await.unwrap();
    let held = store
        .claim_runs(claim(&second, "w", LONG, 1))
        .await
        .unwrap();
    let mut last = finished(&held[0], 1);
    last.stops = true;
    store.finish_runs(second.id, vec![last]).await.unwrap();
    let stopped = store.campaign(second.id).await.unwrap();
    assert_eq!(stopped.state, CampaignState::Stopped);
}

pub(crate) async fn old_campaigns_are_removed_with_what_only_they_have(place: Arc<Place>) {
    let store = place.open().await;
    for _ in 0..2 {
        let row = begun(&store, NewLane::default(), 3).await;
        let held = store.claim_runs(claim(&row, "w", LONG, 3)).await.unwrap();
        let done = held.iter().map(|run| finished(run, 1)).collect();
        store.finish_runs(row.id, done).await.unwrap();
        store.settle_campaign(row.id).await.unwrap();
    }
    let running = begun(&store, NewLane::default(), 1).await;
    let young = store.prune_campaigns(LONG, 10).await.unwrap();
    assert_eq!((young.is_more, young.blobs), (false, 0));
    let step = async || store.prune_campaigns(0, 2).await.unwrap();
    // Results first, a few at a time; the campaign shows that it goes away, and nothing of it is lost half-way.
    let one = step().await;
    assert_eq!((one.results, one.is_more), (2, true));
    assert_eq!(one.traces, [], "another has it too");
    let half = store.find_campaign("c", Some(1)).await.unwrap().unwrap();
    assert!(half.remark.unwrap().contains("removed"));
    let progress = store.campaign_progress(half.id).await.unwrap();
    assert_eq!(progress.done, 3, "its runs go after its results");
    let mut steps = Vec::new();
    while steps.len() < 9 && store.find_campaign("c", Some(1)).await.unwrap().is_some() {
        let one = step().await;
        steps.push((one.results, one.campaigns, one.traces.len()));
    }
    let gone = vec![("c".to_owned(), 1)];
    let none = Vec::new;
    let wanted = vec![(1, none(), 0), (0, none(), 0), (0, none(), 0), (0, gone, 0)];
    assert_eq!(steps, wanted);
    let traces = store.prune_campaign_traces(0, 10).await.unwrap();
    assert_eq!(traces, (3, vec![("here".to_owned(), "t".to_owned())]));
    let mut removed = Vec::new();
    loop {
        let one = step().await;
        removed.extend(one.campaigns);
        if !one.is_more {
            assert_eq!(one.blobs, 0, "the plan is still used");
            break;
        }
    }
    assert_eq!(removed, [("c".to_owned(), 2)]);
    store.cancel_campaign(running.id, "").await.unwrap();
    let mut last = step().await;
    while last.is_more {
        last = step().await;
    }
    assert_eq!(last.blobs, 1);
    assert!(store.campaigns(all()).await.unwrap().is_empty());
}

pub(crate) async fn money_is_capped_for_all_workers(place: Arc<Place>) {
    let store = place.open().await;
    let price = LanePrice {
        input: 1_250_000,
        output: 10_000_000,
        currency: "USD".to_owned(),
    };
    // A token in and one out: 11.25 millionths, which are 11,250 billionths.
    assert_eq!(price.cost(1, 1), 11_250);
    assert_eq!(price.cost(u64::MAX, u64::MAX), i64::MAX);
    let lane = NewLane {
        max_cost: Some(20_000),
        price: Some(price.clone()),
        ..NewLane::default()
    };
    let row = begun(&store, lane, 3).await;
    let first = store.claim_runs(claim(&row, "a", LONG, 1)).await.unwrap();
    store.spend(row.id, 0, price.cost(1, 1)).await.unwrap();
    let second = store.claim_runs(claim(&row, "b", LONG, 1)).await.unwrap();
    assert_eq!((first.len(), second.len()), (1, 1));
    store.spend(row.id, 0, price.cost(1, 1)).await.unwrap();
    let none = store.claim_runs(claim(&row, "a", LONG, 1)).await.unwrap();
    assert!(none.is_empty(), "the money is spent");
    let lane = store.campaign_lanes(row.id).await.unwrap().remove(0);
    assert_eq!((lane.used_cost, lane.price.clone()), (22_500, Some(price)));
    assert!(lane.is_spent());
    let done = first.iter().chain(&second).map(|run| finished(run, 1));
    store.finish_runs(row.id, done.collect()).await.unwrap();
    let state = store.settle_campaign(row.id).await.unwrap();
    assert_eq!(state, CampaignState::Capped);
    // A model without a price costs nothing, and a pause is told without being counted.
    assert_eq!(store.lane_pause(row.id, 0).await.unwrap(), 0);
    store.slow_down(row.id, 0, LONG).await.unwrap();
    assert!(store.lane_pause(row.id, 0).await.unwrap() > LONG / 2);
    assert_eq!(store.lane_pause(row.id, 7).await.unwrap(), 0);
}

pub(crate) async fn models_of_a_provider_share_its_caps(place: Arc<Place>) {
    let store = place.open().await;
    let model = |name: &str| NewLane {
        name: name.to_owned(),
        provider: Some(3),
        ..NewLane::default()
    };
    let provider = NewLane {
        name: "p".to_owned(),
        max_tokens: Some(10),
        max_concurrent: Some(2),
        requests_per_minute: Some(1),
        max_cost: Some(100),
        ..NewLane::default()
    };
    let free = NewLane {
        name: "free".to_owned(),
        ..NewLane::default()
    };
    let lanes = vec![model("p:one"), model("p:other"), free, provider];
    let new = NewCampaign {
        lanes,
        ..campaign("c", NewLane::default())
    };
    let row = store.plan_campaign(new.clone()).await.unwrap();
    let runs = (0..9).map(|place| NewRun {
        lane: place % 3,
        ..run(place, PlannedKind::Attack, place, RunGate::Open)
    });
    store.add_runs(row.id, runs.collect()).await.unwrap();
    store.begin_campaign(row.id, 9).await.unwrap();
    let of_provider = |handed: &[ClaimedRun]| {
        let handed = handed.iter().filter(|run| run.place % 3 < 2);
        handed.copied().collect::<Vec<_>>()
    };
    // Two runs at a time, whichever of its models they ask; others are not held up.
    let first = store.claim_runs(claim(&row, "a", LONG, 9)).await.unwrap();
    let under_way = of_provider(&first);
    assert_eq!((first.len(), under_way.len()), (5, 2), "{first:?}");
    let none = store.claim_runs(claim(&row, "b", LONG, 9)).await.unwrap();
    assert!(none.is_empty(), "{none:?}");
    let stolen = store.steal_run(claim(&row, "b", LONG, 1), OVER).await;
    let stolen = stolen.unwrap().unwrap();
    assert_eq!(stolen.place % 3, 2, "a second copy would be one too many");
    let count = |run: &ClaimedRun| vec![finished(run, 4)];
    store
        .finish_runs(row.id, count(&under_way[0]))
        .await
        .unwrap();
    let next = store.claim_runs(claim(&row, "b", LONG, 9)).await.unwrap();
    assert_eq!(next.len(), 1);
    // Tokens of all its models count, and so does what they cost.
    for run in [&under_way[1], &next[0]] {
        store.finish_runs(row.id, count(run)).await.unwrap();
    }
    for lane in [0, 1, 2] {
        store.spend(row.id, lane, 5).await.unwrap();
    }
    let lanes = store.campaign_lanes(row.id).await.unwrap();
    let used: Vec<(i64, i64)> = lanes
        .iter()
        .map(|lane| (lane.used_tokens, lane.used_cost))
        .collect();
    assert_eq!(used[0].0 + used[1].0, 12);
    assert_eq!((used[2], used[3]), ((0, 5), (12, 10)));
    assert!(lanes[3].is_spent() && lanes[0].provider == Some(3));
    let none = store.claim_runs(claim(&row, "a", LONG, 9)).await.unwrap();
    assert!(none.is_empty(), "its tokens are spent: {none:?}");
    // One request in a minute, and one that was saved up, whoever sends them.
    let permit = async |lane| store.permit_request(row.id, lane).await.unwrap();
    assert_eq!(permit(0).await, RequestPermit::Granted);
    assert_eq!(permit(1).await, RequestPermit::Granted);
    assert!(matches!(permit(0).await, RequestPermit::Wait(1..)));
    assert_eq!(permit(2).await, RequestPermit::Granted);
    // What is left of it is not made; the campaign is over when the others are.
    let rest = first.iter().filter(|run| run.place % 3 == 2);
    let rest = rest.map(|run| finished(run, 0)).collect();
    store.finish_runs(row.id, rest).await.unwrap();
    let state = store.settle_campaign(row.id).await.unwrap();
    assert_eq!(state, CampaignState::Capped);
    let again = store.repeat_campaign(row.id).await.unwrap();
    let lanes = store.campaign_lanes(again.id).await.unwrap();
    assert_eq!((lanes[1].provider, lanes[3].used_tokens), (Some(3), 0));
}

pub(crate) async fn a_campaign_is_made_again_as_it_was_planned(place: Arc<Place>) {
    let store = place.open().await;
    let lane = NewLane {
        name: "m".to_owned(),
        max_concurrent: Some(2),
        ..NewLane::default()
    };
    let new = NewCampaign {
        namespace: "acme".to_owned(),
        ..campaign("c", lane)
    };
    let row = store.plan_campaign(new).await.unwrap();
    let planned = vec![
        run(0, PlannedKind::Probe, 0, RunGate::Open),
        run(1, PlannedKind::Control, 0, RunGate::Probes),
        run(2, PlannedKind::Attack, 0, RunGate::Control),
        run(3, PlannedKind::Attack, 1, RunGate::Probes),
    ];
    store.add_runs(row.id, planned.clone()).await.unwrap();
    store.begin_campaign(row.id, 4).await.unwrap();
    let refused = store.repeat_campaign(row.id).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused}");
    let places = |handed: &[ClaimedRun]| handed.iter().map(|run| run.place).collect::<Vec<_>>();
    let mut orders = Vec::new();
    let mut current = store.campaign(row.id).await.unwrap();
    for number in 1..=2 {
        assert_eq!(
            (current.number, current.namespace.as_str(), current.total),
            (number, "acme", 4)
        );
        let mut order = Vec::new();
        loop {
            let handed = store.claim_runs(claim(&current, "w", LONG, 9)).await;
            let handed = handed.unwrap();
            if handed.is_empty() {
                break;
            }
            order.push(places(&handed));
            let done = handed.iter().map(|run| finished(run, 1)).collect();
            store.finish_runs(current.id, done).await.unwrap();
        }
        orders.push(order);
        let pulse = store.campaign_pulse(current.id).await.unwrap();
        let wanted = CampaignPulse {
            state: CampaignState::Running,
            total: 4,
            done: 4,
            running: 0,
            gave_way: 0,
            resisted: 2,
            inconclusive: 0,
        };
        assert_eq!(pulse, wanted);
        let state = store.settle_campaign(current.id).await.unwrap();
        assert_eq!(state, CampaignState::Finished);
        if number == 1 {
            current = store.repeat_campaign(current.id).await.unwrap();
        }
    }
    assert_eq!(orders[0], [vec![0], vec![1, 3], vec![2]]);
    assert_eq!(orders[1], orders[0], "gates are closed again");
    let lane = store.campaign_lanes(current.id).await.unwrap().remove(0);
    assert_eq!((lane.max_concurrent, lane.used_tokens), (Some(2), 4));
    let wanted = vec!["plan".to_owned(), "nothing".to_owned()];
    let texts = store.campaign_blobs(wanted).await.unwrap();
    let digests: Vec<&str> = texts.iter().map(|text| text.digest.as_str()).collect();
    assert_eq!(digests, ["plan"]);
    // The texts stay for as long as one of the two is there.
    while store
        .find_campaign("c", Some(1))
        .await
        .unwrap()
        .is_some_and(|first| first.state.is_over())
    {
        store.prune_campaigns(OVER, 1).await.unwrap();
    }
    store.campaign_blob("plan").await.unwrap();
    // Names belong to a namespace, and lists are narrowed down.
    let other = store.plan_campaign(campaign("c", NewLane::default())).await;
    assert!(matches!(other, Err(StoreError::Conflict(_))), "{other:?}");
    let of = |namespace: &str| CampaignFilter {
        namespaces: Some(vec![namespace.to_owned()]),
        ..all()
    };
    assert_eq!(store.campaigns(of("acme")).await.unwrap().len(), 1);
    assert!(store.campaigns(of("other")).await.unwrap().is_empty());
    let before = CampaignFilter {
        before: Some(current.id),
        ..all()
    };
    assert!(store.campaigns(before).await.unwrap().is_empty());
}
