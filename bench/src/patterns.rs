//! Regular expressions within a time budget, beside the plain `regex` crate: what the budget costs on patterns as documents
//! have them, and where it ends one that would take seconds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use proofhouse_expr::re2::{MatchBudget, Re2Pattern};
use regex::Regex;
use serde_json::Value;

use crate::{Options, corpus, figure};

/// Patterns of the kinds that documents use, in both dialects the same.
const PATTERNS: &[&str] = &[
    r"(?i)ignore (all )?previous instructions",
    r"(api|secret)[_-]?(key|token)\s*[:=]\s*[A-Za-z0-9+/]{16,}",
    r"^send_[a-z]+$",
    r"\bhttps?://[a-z0-9.-]+/[a-z0-9/_-]*",
    r"[A-Z]{2,5}-[0-9]{3,6}",
    r"(?s)<IMPORTANT>.*</IMPORTANT>",
];

/// Every start of a match is worth a look, and each look is long.
const HOSTILE: &str = "1[01]{900}2";

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let messages = corpus::messages();
    let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
    let ours: Vec<Re2Pattern> = PATTERNS
        .iter()
        .map(|source| Re2Pattern::compile(source).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let plain: Vec<Regex> = PATTERNS
        .iter()
        .map(|source| Regex::new(source).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    for (ours, plain) in ours.iter().zip(&plain) {
        for text in &texts {
            let found = ours.is_match(text, &mut MatchBudget::default());
            if found.ok() != Some(plain.is_match(text)) {
                return Err(format!("`{}` means something else", plain.as_str()));
            }
        }
    }
    let passes = if options.quick { 1 } else { 50 };
    let pair = figure::side_by_side(
        options.quick,
        || {
            for _ in 0..passes {
                for text in &texts {
                    // One budget for all values of a message, as in an evaluation.
                    let mut budget = MatchBudget::default();
                    for pattern in &ours {
                        black_box(pattern.is_match(text, &mut budget).is_ok_and(|found| found));
                    }
                }
            }
        },
        || {
            for _ in 0..passes {
                for text in &texts {
                    for pattern in &plain {
                        black_box(pattern.is_match(text));
                    }
                }
            }
        },
    );
    let searches = (texts.len() * PATTERNS.len() * passes) as f64;
    let cost = |time: Duration| time.as_secs_f64() * 1e9 / searches;
    let (our_cost, plain_cost) = (cost(pair.ours), cost(pair.peer));
    figure::say(&format!(
        "pattern-search: {} patterns, {} messages",
        PATTERNS.len(),
        texts.len()
    ));
    figure::print(
        "pattern-search",
        our_cost,
        plain_cost,
        plain_cost / our_cost,
        "ns/search",
    );
    hostile(options)
}

/// How long each takes over a pattern and a text that were made to be slow.
fn hostile(options: &Options) -> Result<(), String> {
    let length = if options.quick { 1 << 16 } else { 2 << 20 };
    // In no order: what repeats itself is quick.
    let mut bits = 1_u64;
    let bit = |_| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        if bits & 1 == 0 { '0' } else { '1' }
    };
    let text: String = (0..length).map(bit).collect();
    let ours = Re2Pattern::compile(HOSTILE).map_err(|error| error.to_string())?;
    let plain = Regex::new(HOSTILE).map_err(|error| error.to_string())?;
    let start = Instant::now();
    let ended = ours.is_match(&text, &mut MatchBudget::default()).is_err();
    let our_time = start.elapsed();
    let start = Instant::now();
    black_box(plain.is_match(&text));
    let plain_time = start.elapsed();
    figure::say(&format!(
        "pattern-hostile: {length} bytes, ended by its budget: {ended}"
    ));
    let seconds = |time: Duration| time.as_secs_f64() * 1e3;
    let ratio = seconds(plain_time) / seconds(our_time);
    figure::print(
        "pattern-hostile",
        seconds(our_time),
        seconds(plain_time),
        ratio,
        "ms",
    );
    Ok(())
}
