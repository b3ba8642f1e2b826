//! The regression gate: how often it fails a subject that did not change, and what a stopped campaign counts for.

use proofhouse_campaign::baseline::{ComparedRuns, compare, judge};
use proofhouse_campaign::comparison::Change;
use proofhouse_campaign::gates::{FailOn, Gate, gate};
use proofhouse_campaign::result::{CampaignResult, DocumentInfo};
use proofhouse_campaign::statistics::CountPair;
use proofhouse_test_support::campaign_result;

/// The subject of every campaign here.
const SUBJECT: &str = "my-agent";

/// A complete campaign: for each document, how often it got through, of how many runs.
fn campaign(documents: &[(u32, u32)]) -> CampaignResult {
    let all = documents.iter().map(|(some, all)| (*some, *all, 0));
    campaign_with_inconclusive(&all.collect::<Vec<_>>())
}

/// The same, with how many of the runs prove nothing.
fn campaign_with_inconclusive(documents: &[(u32, u32, u32)]) -> CampaignResult {
    let mut result = campaign_result::result();
    result.complete = true;
    result.spared = 0;
    result
        .subjects
        .retain(|subject| subject.name.as_str() == SUBJECT);
    result.repeats = documents.iter().map(|(_, all, _)| *all).max().unwrap_or(0);
    result.documents.clear();
    result.runs.clear();
    for (number, (some, all, unproved)) in documents.iter().enumerate() {
        let id = format!("T-{number:03}");
        for repeat in 1..=*all {
            let letter = match repeat {
                _ if repeat <= *some => 'e',
                _ if repeat <= some + unproved => 'n',
                _ => 'r',
            };
            let run = campaign_result::run(&id, SUBJECT, repeat, letter, false);
            result.runs.push(run);
        }
        result.documents.push(DocumentInfo {
            id,
            ..DocumentInfo::default()
        });
    }
    result
}

/// What the gate on regressions says.
fn verdict(now: &CampaignResult, before: &CampaignResult) -> Gate {
    let comparison = compare(now, before, "before.json", 0.05);
    gate(now, &[FailOn::Regression], Some(&comparison)).gate
}

/// The changes of the documents, in order.
fn changes(now: &CampaignResult, before: &CampaignResult) -> Vec<Change> {
    let comparison = compare(now, before, "before.json", 0.05);
    comparison.cells.iter().map(|cell| cell.change).collect()
}

/// Numbers that look like chance and are the same every time.
struct Chance(u64);

impl Chance {
    fn draw(&mut self, repeats: u32, rate: f64) -> (u32, u32) {
        let hits = (0..repeats).filter(|_| self.unit() < rate).count();
        (u32::try_from(hits).unwrap(), repeats)
    }

    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How many of 100 pairs of campaigns against the same subject fail.
fn false_alarms(rate: f64, repeats: u32) -> usize {
    let mut chance = Chance(u64::from(repeats) ^ rate.to_bits());
    let mut draw = || {
        let documents: Vec<_> = (0..59).map(|_| chance.draw(repeats, rate)).collect();
        campaign(&documents)
    };
    let failed = (0..100).filter(|_| verdict(&draw(), &draw()) == Gate::Failed);
    failed.count()
}

#[test]
fn a_campaign_in_which_more_runs_prove_nothing_is_no_regression() {
    // The same subject: three of ten get through, and of the others most prove nothing today.
    let before = campaign(&[(3, 10); 20]);
    let now = campaign_with_inconclusive(&[(3, 10, 6); 20]);
    assert_eq!(verdict(&now, &before), Gate::Passed);
    assert_eq!(changes(&now, &before), [Change::Unchanged; 20]);
    // What looks like an improvement is none either.
    let comparison = compare(&before, &now, "before.json", 0.05);
    assert_eq!(comparison.subjects[0].change, Change::Unchanged);
}

#[test]
fn a_rise_that_a_baseline_hides_behind_what_proved_nothing_is_unknown() {
    let before = campaign_with_inconclusive(&[(3, 20, 16)]);
    let now = campaign(&[(17, 20)]);
    assert_eq!(changes(&now, &before), [Change::Unknown]);
    assert_eq!(verdict(&now, &before), Gate::Inconclusive);
    let comparison = compare(&now, &before, "before.json", 0.05);
    let told = gate(&now, &[FailOn::Regression], Some(&comparison)).told;
    assert!(
        told.iter().any(|line| line.contains("make a new baseline")),
        "{told:?}"
    );
    // The same baseline of which all runs prove something.
    assert_eq!(verdict(&now, &campaign(&[(3, 20)])), Gate::Failed);
}

#[test]
fn the_same_subject_with_other_inconclusive_runs_rarely_fails() {
    let mut chance = Chance(7);
    let mut draw = |share: f64| {
        let documents = (0..59).map(|_| {
            let (some, all) = chance.draw(5, 0.3);
            let (unproved, _) = chance.draw(all - some, share);
            (some, all, unproved)
        });
        campaign_with_inconclusive(&documents.collect::<Vec<_>>())
    };
    let failed = (0..100).filter(|_| verdict(&draw(0.6), &draw(0.0)) == Gate::Failed);
    let alarms = failed.count();
    assert!(alarms < 12, "{alarms}");
}

#[test]
fn the_same_subject_twice_rarely_fails() {
    let found = [(0.05, 1), (0.05, 3), (0.3, 5)]
        .map(|(rate, repeats)| (rate, repeats, false_alarms(rate, repeats)));
    // At most 5 are expected; 12 or more of 100 would come by chance in fewer than one of 200 tries.
    assert!(found.iter().all(|(_, _, alarms)| *alarms < 12), "{found:?}");
}

#[test]
fn too_few_runs_are_unknown() {
    let few = [
        ((1, 1), (0, 1)),
        ((0, 1), (1, 1)),
        ((0, 1), (1, 5)),
        ((3, 3), (0, 3)),
        ((1, 5), (0, 0)),
    ];
    let found = few.map(|(now, before)| changes(&campaign(&[now]), &campaign(&[before])));
    assert_eq!(found.concat(), [Change::Unknown; 5]);
}

#[test]
fn a_campaign_that_stopped_on_what_it_saw_is_no_baseline() {
    // Every document stopped at its first success; the others never had one. Neither is a fair sample.
    let mut before = campaign(&[(1, 1), (0, 10), (1, 2)]);
    before.spared = 17;
    let now = campaign(&[(0, 20), (10, 10), (2, 10)]);
    assert_eq!(changes(&now, &before), [Change::Unknown; 3]);
    assert_eq!(changes(&before, &now), [Change::Unknown; 3]);
    before.spared = 0;
    before.complete = false;
    assert_eq!(changes(&now, &before), [Change::Unknown; 3]);
}

/// Nothing got through what proves nothing, so leaving those documents out would leave the weak ones.
#[test]
fn documents_that_prove_nothing_now_still_count_in_the_whole() {
    let runs: Vec<ComparedRuns> = (0..60)
        .map(|number| {
            let through = u64::from(number % 2 == 0);
            let before = u64::from(number < 30);
            ComparedRuns {
                inconclusive_now: 1 - through,
                ..CountPair::new((through, through), (before, 1)).into()
            }
        })
        .collect();
    assert!(!judge(&runs, 0.05).has_regressed());
}
