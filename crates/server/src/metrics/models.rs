//! What models were asked and what that cost: replies, tokens, and money where the operator names prices.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use proofhouse_agent::model::Usage;
use proofhouse_tools::operator::ModelCost;
use proofhouse_wire::sync::lock;

/// Models that are counted apart. Providers name them in their replies, and may name as many as they like.
const MAX_MODELS: usize = 64;
/// The longest name of one.
const MAX_NAME: usize = 100;
/// What stands for the rest.
const OTHERS: &str = "other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    model: String,
    /// As the conventions of OpenTelemetry have it: `input` or `output`.
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CostLabels {
    model: String,
    currency: String,
}

/// What is counted about models.
#[derive(Debug)]
pub(crate) struct ModelMetrics {
    replies: Family<ModelLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    cost: Family<CostLabels, Counter<f64, AtomicU64>>,
    known: Mutex<BTreeSet<String>>,
}

impl ModelMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let replies = Family::default();
        let help = "Replies of models, by the model";
        registry.register("model_replies", help, replies.clone());
        let tokens = Family::default();
        let help = "Tokens of models, by the model and by whether they went in or out";
        registry.register("model_tokens", help, tokens.clone());
        let cost = Family::default();
        let help = "What replies of models cost by the prices of the operator's file";
        registry.register("model_cost", help, cost.clone());
        Self {
            replies,
            tokens,
            cost,
            known: Mutex::default(),
        }
    }

    /// Counts a reply that is kept.
    pub(crate) fn reply(&self, model: &str, usage: Usage, cost: Option<(ModelCost, String)>) {
        let model = self.label(model);
        let labels = ModelLabels {
            model: model.clone(),
        };
        self.replies.get_or_create(&labels).inc();
        for (r#type, count) in [("input", usage.prompt), ("output", usage.completion)] {
            let model = model.clone();
            let labels = TokenLabels { model, r#type };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
        if let Some((cost, currency)) = cost {
            let labels = CostLabels { model, currency };
            self.cost.get_or_create(&labels).inc_by(cost.as_f64());
        }
    }

    fn label(&self, model: &str) -> String {
        let name: String = model.chars().take(MAX_NAME).collect();
        let mut known = lock(&self.known);
        if known.contains(&name) {
            return name;
        }
        if known.len() >= MAX_MODELS {
            return OTHERS.to_owned();
        }
        known.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn models_are_counted_apart_up_to_a_limit() {
        let metrics = Metrics::default();
        let usage = Usage {
            prompt: 7,
            completion: 2,
        };
        for number in 0..MAX_MODELS + 3 {
            metrics.models.reply(&format!("m{number}"), usage, None);
        }
        let text = metrics.text();
        let has = |line: &str| assert!(text.contains(line), "no {line} in {text}");
        has("model_tokens_total{model=\"m0\",type=\"input\"} 7");
        has("model_tokens_total{model=\"m0\",type=\"output\"} 2");
        has("model_replies_total{model=\"other\"} 3");
        assert!(!text.contains("model=\"m64\""), "{text}");
    }
}
