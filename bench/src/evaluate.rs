//! Evaluating one indicator against one message, again and again.

use std::hint::black_box;

use serde_json::Value;

use crate::{Options, corpus, figure};

/// CEL indicators of the kinds that documents use; the public documents have none.
const EXPRESSIONS: &[&str] = &[
    "has(message.name) && message.name.startsWith('send')",
    "has(message.tools) && message.tools.exists(t, t.name == 'admin' && size(t.description) > 100)",
    "has(message.arguments) && has(message.arguments.body) && message.arguments.body.contains('password')",
    "has(message.content) && message.content.all(c, c.type == 'text')",
    "has(message.tools) && size(message.tools) > 20",
];

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let messages = corpus::messages();
    let documents = corpus::documents(&options.documents)?;
    measure("evaluate-pattern", options, &documents, &messages)?;
    let expressions: Vec<String> = EXPRESSIONS
        .iter()
        .map(|cel| expression_document(cel))
        .collect();
    measure("evaluate-cel", options, &expressions, &messages)
}

fn measure(
    name: &str,
    options: &Options,
    documents: &[String],
    messages: &[Value],
) -> Result<(), String> {
    let ours = our_indicators(documents, name == "evaluate-cel")?;
    let peers = peer_indicators(documents, name == "evaluate-cel")?;
    if ours.len() != peers.len() || ours.is_empty() {
        return Err(format!(
            "{name}: {} indicators here, {} there",
            ours.len(),
            peers.len()
        ));
    }
    check_agreement(&ours, &peers, messages)?;
    // The peer compiles on every call, so the same number of calls takes it far longer.
    let our_passes = if options.quick { 1 } else { 50 };
    let pair = figure::side_by_side(
        options.quick,
        || {
            for _ in 0..our_passes {
                for indicator in &ours {
                    for message in messages {
                        black_box(evaluate_ours(indicator, message));
                    }
                }
            }
        },
        || {
            for indicator in &peers {
                for message in messages {
                    black_box(evaluate_peer(indicator, message));
                }
            }
        },
    );
    let evaluations = (ours.len() * messages.len()) as f64;
    let our_cost = pair.ours.as_secs_f64() * 1e9 / (evaluations * f64::from(our_passes));
    let peer_cost = pair.peer.as_secs_f64() * 1e9 / evaluations;
    figure::say(&format!(
        "{name}: {} indicators, {} messages",
        ours.len(),
        messages.len()
    ));
    figure::print(
        name,
        our_cost,
        peer_cost,
        peer_cost / our_cost,
        "ns/evaluation",
    );
    Ok(())
}

fn our_indicators(
    documents: &[String],
    cel: bool,
) -> Result<Vec<proofhouse_oatf::Indicator>, String> {
    let mut indicators = Vec::new();
    for text in documents {
        let loaded = proofhouse_oatf::load(text).map_err(|errors| errors[0].to_string())?;
        let kept = loaded.document.attack.indicators.unwrap_or_default();
        indicators.extend(kept.into_iter().filter(|i| {
            if cel {
                i.expression.is_some()
            } else {
                i.pattern.is_some()
            }
        }));
    }
    Ok(indicators)
}

fn peer_indicators(documents: &[String], cel: bool) -> Result<Vec<oatf::Indicator>, String> {
    let mut indicators = Vec::new();
    for text in documents {
        let loaded = oatf::load(text).map_err(|_| "the peer cannot load a document".to_owned())?;
        let kept = loaded.document.attack.indicators.unwrap_or_default();
        indicators.extend(kept.into_iter().filter(|i| {
            if cel {
                i.expression.is_some()
            } else {
                i.pattern.is_some()
            }
        }));
    }
    Ok(indicators)
}

fn evaluate_ours(indicator: &proofhouse_oatf::Indicator, message: &Value) -> String {
    let cel = proofhouse_oatf::DefaultCelEvaluator;
    proofhouse_oatf::evaluate_indicator(indicator, message, Some(&cel), None)
        .result
        .to_string()
}

fn evaluate_peer(indicator: &oatf::Indicator, message: &Value) -> String {
    let cel = oatf::evaluate::DefaultCelEvaluator;
    let verdict = oatf::evaluate::evaluate_indicator(indicator, message, Some(&cel), None);
    format!("{:?}", verdict.result)
}

/// A comparison only means something when both give the same answers.
fn check_agreement(
    ours: &[proofhouse_oatf::Indicator],
    peers: &[oatf::Indicator],
    messages: &[Value],
) -> Result<(), String> {
    for (our, peer) in ours.iter().zip(peers) {
        for message in messages {
            let (a, b) = (evaluate_ours(our, message), evaluate_peer(peer, message));
            if a.replace('_', "") != b.to_lowercase() {
                let id = our.id.as_deref().unwrap_or_default();
                return Err(format!("{id}: ours says {a}, the peer says {b}"));
            }
        }
    }
    Ok(())
}

fn expression_document(cel: &str) -> String {
    format!(
        "oatf: \"0.1\"\nattack:\n  execution: {{mode: mcp_server, state: {{tools: []}}}}\n  \
         indicators:\n    - target: \"\"\n      expression:\n        cel: {cel:?}\n"
    )
}
