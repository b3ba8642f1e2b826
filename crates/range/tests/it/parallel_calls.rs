//! Calls that come at the same moment: each is answered by the phase it belongs to, and counted once.

use futures_util::future::join_all;
use proofhouse_range::RunReport;
use serde_json::{Value, json};

use crate::mcp_support::{Http, Stage, body, of_phases};

/// Runs with two calls at once.
const PAIRS: usize = 1_000;
/// Runs with forty calls at once.
const CROWDS: usize = 1_000;

/// Phases that answer with their names, each of them so many calls, and a last one.
fn phases(counts: &[usize]) -> Value {
    let tool = |name: &str| json!({"tools": [{"name": "t", "responses": [{"content": [{"type": "text", "text": name}]}]}]});
    let mut phases: Vec<Value> = counts
        .iter()
        .enumerate()
        .map(|(index, count)| {
            let name = format!("p{index}");
            json!({"name": name, "state": tool(&name), "trigger": {"event": "tools/call", "count": count}})
        })
        .collect();
    phases.push(json!({"name": "last", "state": tool("last")}));
    Value::Array(phases)
}

/// Calls so many times at once, and returns which phase answered how often, in the order of the phases, and the report.
async fn call_at_once(counts: &[usize], calls: usize) -> (Vec<usize>, RunReport) {
    let stage = Stage::http(of_phases(&phases(counts))).await;
    let http = Http::new(&stage.url);
    let answers = join_all((0..calls).map(|_| {
        let http = http.clone();
        tokio::spawn(async move {
            let response = http
                .modern("tools/call", json!({"name": "t"}), json!({}))
                .await;
            body(response).await["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
    }))
    .await;
    let mut answered = vec![0; counts.len() + 1];
    for answer in answers {
        let answer = answer.unwrap();
        let phase = answer
            .strip_prefix('p')
            .and_then(|index| index.parse().ok());
        answered[phase.unwrap_or(counts.len())] += 1;
    }
    (answered, stage.finish().await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_calls_at_once_are_answered_by_two_phases() {
    let mut wrong = 0;
    for _ in 0..PAIRS {
        let (answered, _) = call_at_once(&[1], 2).await;
        wrong += usize::from(answered != [1, 1]);
    }
    assert_eq!(wrong, 0, "of {PAIRS} runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_calls_at_once_are_counted_exactly() {
    let mut wrong = Vec::new();
    for _ in 0..CROWDS {
        let (answered, report) = call_at_once(&[3, 5], 40).await;
        if answered != [3, 5, 32] {
            wrong.push(answered);
        }
        // The record says the same as the answers: no message stands in a phase that was over.
        let requests = report.trace.iter().filter(|message| {
            message.operation == "tools/call"
                && message.direction == Some(proofhouse_oatf::Direction::Request)
        });
        let recorded: Vec<&str> = requests
            .filter_map(|message| message.phase.as_deref())
            .collect();
        assert_eq!(recorded.len(), 40);
        assert!(
            recorded[..3].iter().all(|phase| *phase == "p0"),
            "{recorded:?}"
        );
        assert!(
            recorded[3..8].iter().all(|phase| *phase == "p1"),
            "{recorded:?}"
        );
    }
    assert_eq!(wrong, Vec::<Vec<usize>>::new(), "of {CROWDS} runs");
}
