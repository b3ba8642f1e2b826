//! The `prices` block: what the tokens of each model cost the operator. There are no built-in prices, since they change.

use std::collections::BTreeMap;
use std::fmt;

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};
use serde_json::Value;

use super::fields::{MODEL_PRICE, PRICES};
use super::reader::OperatorReader;

/// The longest name of a currency.
const MAX_CURRENCY: usize = 12;
/// Digits that count after the point.
const DIGITS: usize = 6;
/// A price per million tokens of 1 is so much per token: costs are counted in millionths of millionths.
const UNIT: u64 = 1_000_000;
/// No model costs more per million tokens; a larger number is a slip.
const MAX_PRICE: u64 = 1_000_000;

/// What models cost, as far as the operator says it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelPrices {
    currency: String,
    models: BTreeMap<String, ModelPrice>,
}

/// What one token costs, in millionths of millionths of the currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ModelPrice {
    input: u64,
    output: u64,
}

/// What something cost, in millionths of millionths of a currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelCost(u128);

impl ModelCost {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As a number of the currency, for metrics.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "metrics are not exact")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl fmt::Display for ModelCost {
    /// With as many digits as a request to a model needs: four, or the first two that count if it costs less.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 1_000_000_000_000;
        let (whole, rest) = (self.0 / scale, self.0 % scale);
        let digits = format!("{rest:012}");
        let zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
        let shown = if whole > 0 || rest == 0 {
            4
        } else {
            (zeros + 2).clamp(4, 12)
        };
        write!(f, "{whole}.{}", &digits[..shown])
    }
}

impl ModelPrices {
    /// The currency of the prices.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }

    /// What so many tokens of the question and of the reply cost; nothing where no price is known. A name that ends with `*` is
    /// for all that begin so, and the longest that fits counts.
    #[must_use]
    pub fn cost(&self, model: &str, input: u64, output: u64) -> Option<ModelCost> {
        let (of_input, of_output) = self.per_token(model)?;
        let part = |tokens: u64, price: u64| u128::from(tokens).saturating_mul(u128::from(price));
        Some(ModelCost(
            part(input, of_input).saturating_add(part(output, of_output)),
        ))
    }

    /// What a token of the question and one of the reply cost, in millionths of millionths of the currency.
    #[must_use]
    pub fn per_token(&self, model: &str) -> Option<(u64, u64)> {
        let exact = self.models.get(model);
        let begins = |(name, _): &(&String, &ModelPrice)| {
            let start = name.strip_suffix('*');
            start.is_some_and(|start| model.starts_with(start))
        };
        let price = exact.or_else(|| {
            let fits = self.models.iter().filter(begins);
            fits.max_by_key(|(name, _)| name.len())
                .map(|(_, price)| price)
        })?;
        Some((price.input, price.output))
    }
}

/// Reads the block. A model with an error is left out.
pub(super) fn read<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> ModelPrices {
    let mut prices = ModelPrices::default();
    let Some(mut fields) = reader.fields(node, &PRICES) else {
        return prices;
    };
    let currency = fields.read("currency", |reader, node| currency(node, reader));
    prices.currency = currency.unwrap_or_default();
    let models = fields.read("models", |reader, node| {
        let mut models = BTreeMap::new();
        if !reader.is_mapping(node) {
            return None;
        }
        for (name, node) in node.entries().into_iter().flatten() {
            let price = reader.within(PathSegment::Key(name), |reader| price(node, reader));
            models.extend(price.map(|price| (name.to_owned(), price)));
        }
        Some(models)
    });
    prices.models = models.unwrap_or_default();
    prices
}

fn currency<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<String> {
    let text = reader.text(node)?;
    let is_word = (1..=MAX_CURRENCY).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_word {
        let help = Some("write its letters, such as `USD`".to_owned());
        reader.error("OC-005", "this is not a currency".to_owned(), help);
    }
    is_word.then_some(text)
}

fn price<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<ModelPrice> {
    let mut fields = reader.fields(node, &MODEL_PRICE)?;
    let input = fields.read("input", |reader, node| amount(node, reader));
    let output = fields.read("output", |reader, node| amount(node, reader));
    Some(ModelPrice {
        input: input?,
        output: output?,
    })
}

fn amount<'s>(node: NodeRef<'s>, reader: &mut OperatorReader<'s, '_>) -> Option<u64> {
    let text = match reader.value(node) {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text,
        _ => String::new(),
    };
    let read = decimal(&text);
    if read.is_none() {
        let help = format!(
            "write a number from 0 to {MAX_PRICE}, such as `1.25`, with at most {DIGITS} digits after the point"
        );
        reader.error("OC-005", "this is not a price".to_owned(), Some(help));
    }
    read
}

/// A price per million tokens, as what one token costs in millionths of millionths.
fn decimal(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || whole.len() > 7 {
        return None;
    }
    // JSON writes 10 as 10.0.
    let part = part.trim_end_matches('0');
    if part.len() > DIGITS {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MAX_PRICE)?;
    let part: u64 = format!("{part:0<DIGITS$}").parse().ok()?;
    whole.checked_mul(UNIT)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use crate::operator::OperatorConfig;

    const TEXT: &str = "prices:\n  currency: USD\n  models:\n    gpt-5: {input: 1.25, output: 10}\n    \
                        gpt-5-*: {input: \"0.05\", output: 0.4}\n    gpt-*: {input: 1, output: 1}\n";

    #[test]
    fn tokens_cost_what_the_operator_says() {
        let (config, findings) = OperatorConfig::read(TEXT, &|_| None);
        assert_eq!(findings, []);
        let prices = config.prices;
        assert_eq!(prices.currency(), "USD");
        let cost = |model: &str, input, output| {
            let cost = prices.cost(model, input, output);
            cost.map(|cost| cost.to_string())
        };
        assert_eq!(
            cost("gpt-5", 1_000_000, 1_000_000).as_deref(),
            Some("11.2500")
        );
        assert_eq!(cost("gpt-5-mini", 1_000, 0).as_deref(), Some("0.000050"));
        assert_eq!(cost("gpt-4", 3, 4).as_deref(), Some("0.0000070"));
        assert_eq!(cost("gpt-4", 0, 0).as_deref(), Some("0.0000"));
        assert_eq!(cost("other", 1, 1), None, "no price is made up");
        let most = prices.cost("gpt-5", u64::MAX, u64::MAX).unwrap();
        assert!(most.plus(most).as_f64() > 0.0);
    }

    #[test]
    fn what_is_no_price_is_told() {
        for wrong in [
            "prices: {models: {m: {input: 1, output: 1}}}",
            "prices: {currency: USD}",
            "prices: {currency: \"$\", models: {}}",
            "prices: {currency: USD, models: {m: {input: 1}}}",
            "prices: {currency: USD, models: {m: {input: -1, output: 1}}}",
            "prices: {currency: USD, models: {m: {input: 1e-9, output: 1}}}",
            "prices: {currency: USD, models: {m: {input: cheap, output: 1}}}",
            "prices: {currency: USD, models: {m: {input: 99999999, output: 1}}}",
            "prices: {currency: USD, models: {m: {input: 1, output: 1, cached: 1}}}",
            "prices: {currency: USD, models: []}",
        ] {
            let (_, findings) = OperatorConfig::read(wrong, &|_| None);
            assert_eq!(findings.len(), 1, "{wrong}: {findings:?}");
        }
    }
}
