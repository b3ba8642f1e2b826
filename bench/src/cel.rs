//! Expressions: what a normal filter costs beside the bare `cel` crate, and how soon hostile ones end.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_expr::{Program, Variables};
use serde_json::{Value, json};

use crate::{Options, figure, memory};

/// A filter as indicators and tools have it.
const FILTER: &str = "message.tools.exists(t, t.name == 'admin' && size(t.description) > 100)";

/// What the seeds and the issue of hostile expressions allow.
const MAX_TIME: Duration = Duration::from_millis(100);
const MAX_MEMORY: u64 = 64 << 20;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let mut message = message();
    filter(options, &message)?;
    message["noise"] = json!(noise(300_000));
    hostile(&message)
}

/// Each side with the message bound anew, as every message of a trace is.
fn filter(options: &Options, message: &Value) -> Result<(), String> {
    let ours = Program::compile(FILTER).map_err(|error| error.to_string())?;
    let bare = cel::Program::compile(FILTER).map_err(|error| error.to_string())?;
    let env = Arc::new(cel::Env::stdlib());
    let evaluate_bare = || {
        let mut context = cel::Context::with_env(Arc::clone(&env));
        context.add_variable("message", message).ok()?;
        bare.execute(&context).ok()
    };
    let evaluate_ours = || {
        let variables = Variables::from_iter([("message", message)]);
        ours.evaluate(&variables).ok()
    };
    if evaluate_ours() != Some(json!(false)) || evaluate_bare() != Some(cel::Value::Bool(false)) {
        return Err("the filter does not give the same answer on both sides".to_owned());
    }
    let calls = if options.quick { 100 } else { 2_000 };
    let pair = figure::side_by_side(
        options.quick,
        || {
            for _ in 0..calls {
                black_box(evaluate_ours());
            }
        },
        || {
            for _ in 0..calls {
                black_box(evaluate_bare());
            }
        },
    );
    let cost = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(calls);
    let (ours, peer) = (cost(pair.ours), cost(pair.peer));
    figure::print("cel-filter", ours, peer, peer / ours, "ns/evaluation");
    Ok(())
}

fn hostile(message: &Value) -> Result<(), String> {
    let (mut slowest, mut largest) = (Duration::ZERO, 0);
    let expressions = expressions();
    for source in &expressions {
        memory::forget_peak();
        let before = memory::resident().unwrap_or(0);
        let started = Instant::now();
        let variables = Variables::from_iter([("message", message)]);
        let end = match Program::compile(source) {
            Ok(program) => match program.evaluate(&variables) {
                Ok(_) => return Err(format!("{}: it came to an end", short(source))),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let took = started.elapsed();
        let grown = memory::peak().unwrap_or(0).saturating_sub(before);
        slowest = slowest.max(took);
        largest = largest.max(grown);
        let megabytes = grown as f64 / 1e6;
        figure::say(&format!(
            "{took:>9.2?} {megabytes:>5.1} MB  {}  => {}",
            short(source),
            short(&end)
        ));
        // A debug build only shows that the bench works; what is promised holds for the release.
        let in_time = took <= MAX_TIME || cfg!(debug_assertions);
        if !in_time || grown > MAX_MEMORY {
            return Err(format!("{}: not stopped in time or memory", short(source)));
        }
    }
    figure::say(&format!(
        "{} hostile expressions stopped",
        expressions.len()
    ));
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let (ours, limit) = (milliseconds(slowest), milliseconds(MAX_TIME));
    figure::print("cel-hostile-time", ours, limit, limit / ours, "ms");
    let (ours, limit) = (largest as f64 / 1e6, MAX_MEMORY as f64 / 1e6);
    figure::print(
        "cel-hostile-memory",
        ours,
        limit,
        limit / ours.max(0.001),
        "MB",
    );
    Ok(())
}

fn short(text: &str) -> String {
    let line: String = text.chars().filter(|c| !c.is_control()).take(50).collect();
    format!("{line:50}")
}

fn message() -> Value {
    let tools: Vec<_> = (0..12)
        .map(|n| {
            json!({
                "name": format!("tool-{n}"),
                "description": "Searches the index. ".repeat(12),
                "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
            })
        })
        .collect();
    json!({
        "name": "evil-tool",
        "tools": tools,
        "result": {"content": [{"type": "text", "text": "nothing to see".repeat(40)}]},
        "binary": "01".repeat(4_000),
    })
}

/// Text that no automaton of a decent size follows.
fn noise(length: usize) -> String {
    let mut seed = 1_u32;
    std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { '0' } else { '1' }
    })
    .take(length)
    .collect()
}

/// Nested loops, doubling texts and lists, deep chains, fat regexes, huge literals.
fn expressions() -> Vec<String> {
    let range =
        "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]";
    let nested = |name: &str, inner: &str| {
        (0..8).fold(inner.to_owned(), |inner, n| {
            format!("{range}.{name}(v{n}, {inner})")
        })
    };
    let chain = |start: &str, step: &str| format!("{start}{}", step.repeat(25));
    vec![
        nested("all", "true"),
        nested("map", "1"),
        format!("{} || true", nested("exists", "1 / 0 == 1")),
        chain("['aaaaaaaaaaaaaaaa']", ".map(x, x + x)"),
        chain("[[1, 2, 3, 4]]", ".map(x, x + x)"),
        format!("{0} == {0}", chain("[1]", ".map(x, [x, x])")),
        vec!["1"; 5_000].join("+"),
        format!("{}1{}", "(".repeat(8_000), ")".repeat(8_000)),
        format!("a{}", ".f()".repeat(4_000)),
        format!("a{}", "?1:a".repeat(4_000)),
        format!("'{}'", "x".repeat(1_000_000)),
        "'a'.matches('(a{1000}){1000}')".to_owned(),
        r"'a'.matches('(\\pL{60}){60}')".to_owned(),
        "message.noise.matches('1[01]{900}2')".to_owned(),
        format!("{range}.all(a, {range}.all(b, !message.noise.matches('1[01]{{7}}2')))"),
        format!(
            r"{range}.all(a, {range}.all(b, {range}.all(c, !'x'.matches('\\pL{{9}}' + string(a) + string(b) + string(c)))))"
        ),
        format!("{range}.map(a, {range}.map(b, {range}.map(c, message)))"),
        format!(
            "{range}.all(a, {range}.all(b, {range}.all(c, message.tools == message.tools + [])))"
        ),
    ]
}
