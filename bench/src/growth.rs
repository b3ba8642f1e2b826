//! Detecting with more and more indicators: what a message costs, and what an indicator holds.

use std::hint::black_box;

use proofhouse_detect::{Scanner, TraceMessage};
use proofhouse_oatf::{Document, load};

use crate::{Options, figure, memory, traffic};

const SIZES: [usize; 3] = [100, 1_000, 10_000];

/// Indicators per generated document.
const PER_DOCUMENT: usize = 5;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let messages = traffic::messages();
    let mut scanners = Vec::new();
    for size in SIZES {
        let documents = (0..size / PER_DOCUMENT)
            .map(document)
            .collect::<Result<Vec<_>, _>>()?;
        let before = memory::resident().unwrap_or(0);
        let mut builder = Scanner::builder();
        for (number, document) in documents.iter().enumerate() {
            builder = builder.add(number.to_string(), document.clone());
        }
        let scanner = builder.build().map_err(|error| error.to_string())?;
        let mut session = scanner.session();
        messages.iter().for_each(|message| session.feed(message));
        drop(session);
        let held = memory::resident().unwrap_or(0).saturating_sub(before);
        figure::say(&format!(
            "detect-growth: {size} indicators: {} bytes compiled per indicator, {} resident with \
             the document",
            scanner.memory() / size,
            held / size as u64,
        ));
        scanners.push(scanner);
    }
    let mut costs = Vec::new();
    for pair in [[0, 1], [0, 2]] {
        let [least, most] = pair.map(|index| &scanners[index]);
        let cost = measure(options, least, most, &messages);
        figure::say(&format!(
            "detect-growth: {:.2} us per message with {} indicators, {:.2} with {}",
            cost.0,
            least.len(),
            cost.1,
            most.len()
        ));
        costs.push(cost);
    }
    let (least, most) = costs[1];
    figure::print("detect-growth", most, least, most / least, "us/message");
    Ok(())
}

/// Microseconds per message, for both scanners side by side.
fn measure(
    options: &Options,
    least: &Scanner,
    most: &Scanner,
    messages: &[TraceMessage],
) -> (f64, f64) {
    let passes = if options.quick { 5 } else { 1_000 };
    let (mut first, mut second) = (least.session(), most.session());
    let pair = figure::side_by_side(
        options.quick,
        || {
            for message in messages.iter().cycle().take(messages.len() * passes) {
                first.feed(message);
            }
        },
        || {
            for message in messages.iter().cycle().take(messages.len() * passes) {
                second.feed(message);
            }
        },
    );
    black_box((first.messages(), second.messages()));
    let count = (messages.len() * passes) as f64;
    (
        pair.ours.as_secs_f64() * 1e6 / count,
        pair.peer.as_secs_f64() * 1e6 / count,
    )
}

/// A document of the shape public ones have: mostly regexes over names, arguments and results, some
/// plain texts; none with an expression, whose cost nothing can share.
fn document(number: usize) -> Result<Document, String> {
    let word = |salt: usize| word(number * 31 + salt);
    let (a, b, c, d, e) = (word(1), word(2), word(3), word(4), word(5));
    let text = format!(
        r#"oatf: "0.1"
attack:
  execution: {{mode: mcp_server, state: {{tools: []}}}}
  indicators:
    - {{protocol: mcp, direction: request, target: arguments, pattern: {{regex: "({a}|{b})[_-]?(key|token)"}}}}
    - {{protocol: mcp, surface: tools/call, target: name, pattern: {{regex: "^{b}_.*{c}$"}}}}
    - {{protocol: mcp, target: "content[*].text", pattern: {{contains: "{d} {e}"}}}}
    - {{protocol: a2a, target: "message.parts[*].text", pattern: {{regex: "(?i){c}\\s+the\\s+{d}"}}}}
    - {{protocol: ag_ui, target: delta, pattern: {{starts_with: "{e}{a}"}}}}
"#
    );
    load(&text)
        .map(|loaded| loaded.document)
        .map_err(|errors| errors[0].to_string())
}

/// A word of two to four syllables; neighbours in number are far apart in spelling.
fn word(number: usize) -> String {
    const SYLLABLES: [&str; 32] = [
        "ba", "con", "der", "el", "fra", "gu", "hin", "is", "jo", "ka", "lem", "mo", "nar", "o",
        "pel", "qui", "ros", "sta", "ter", "un", "vi", "wen", "xa", "yor", "zu", "ch", "bri",
        "dol", "fen", "ga", "he", "im",
    ];
    let mut seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    let syllables = 2 + seed % 3;
    (0..syllables)
        .map(|_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            SYLLABLES[(seed >> 33) % SYLLABLES.len()]
        })
        .collect()
}
