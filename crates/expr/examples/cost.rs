//! Measures what expressions cost: `cargo run --release -p proofhouse-expr --example cost`.

#![expect(clippy::print_stdout, reason = "an example that prints its figures")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofhouse_expr::{Program, Variables};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut message = message();
    let noise = message["noise"].take();
    println!("message of {} bytes", message.to_string().len());
    let variables = Variables::from_iter([("message", &message)]);
    for source in [
        "message.name.startsWith('evil')",
        "message.tools.exists(t, t.name == 'admin' && size(t.description) > 100)",
        "message.tools.all(t, t.name != 'none')",
        "message.tools.exists(t, t.description.matches('(?i)ignore (all )?previous'))",
        "has(message.result) && message.result.content[0].text.contains('secret')",
        "message.tools.filter(t, size(t.name) > 5).map(t, t.name)",
    ] {
        let compile = best(|| Program::compile(black_box(source)).is_ok());
        let program = Program::compile(source)?;
        let evaluate = best(|| program.evaluate(black_box(&variables)).is_ok());
        let bare = bare(source, &message)?;
        println!("{evaluate:>10.2?} evaluate {compile:>10.2?} compile  {source}");
        println!(
            "{:>10.2?} bare cel {:>10.2?} with its binding",
            bare.0, bare.1
        );
    }
    let bind = best(|| {
        black_box(Variables::from_iter([("message", &message)]))
            .get("x")
            .is_some()
    });
    println!("{bind:>10.2?} bind");
    println!("\nhostile:");
    message["noise"] = noise;
    let variables = Variables::from_iter([("message", &message)]);
    for source in hostile() {
        let started = Instant::now();
        let end = match Program::compile(&source) {
            Ok(program) => match program.evaluate(&variables) {
                Ok(_) => "a value".to_owned(),
                Err(error) => format!("{:?}: {}", error.kind, error.message),
            },
            Err(error) => format!("{:?}: {}", error.kind, error.message),
        };
        let took = started.elapsed();
        let short: String = source.chars().take(60).collect();
        println!("{took:>10.2?} {:>6} bytes  {short}  => {end}", source.len());
    }
    Ok(())
}

/// The same with the `cel` crate alone: bound already, and binding each time.
/// Without its `regex` feature it has no `matches`, and fails soon.
fn bare(source: &str, message: &Value) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let program = cel::Program::compile(source)?;
    let env = Arc::new(cel::Env::stdlib());
    let mut context = cel::Context::with_env(Arc::clone(&env));
    context.add_variable("message", message)?;
    let bound = best(|| program.execute(&context).is_ok());
    let binding = best(|| {
        let mut context = cel::Context::with_env(Arc::clone(&env));
        context.add_variable("message", message).is_ok() && program.execute(&context).is_ok()
    });
    Ok((bound, binding))
}

/// The fastest of several rounds, per call.
fn best(mut work: impl FnMut() -> bool) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let started = Instant::now();
        for _ in 0..1_000 {
            black_box(work());
        }
        best = best.min(started.elapsed() / 1_000);
    }
    best
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
        "noise": noise(300_000),
    })
}

/// Text that no automaton of a decent size follows.
fn noise(len: usize) -> String {
    let mut seed = 1_u32;
    std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { '0' } else { '1' }
    })
    .take(len)
    .collect()
}

fn hostile() -> Vec<String> {
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
        format!("[{}1]", "1,".repeat(8_000)),
        format!("'{}'", "x".repeat(1_000_000)),
        "'a'.matches('(a{1000}){1000}')".to_owned(),
        r"'a'.matches('(\\pL{60}){60}')".to_owned(),
        "message.binary.matches('[01]*1[01]{900}$')".to_owned(),
        "message.noise.matches('1[01]{900}2')".to_owned(),
        "message.noise.matches('1[01]{20}2')".to_owned(),
        format!("{range}.all(a, {range}.all(b, !message.noise.matches('1[01]{{7}}2')))"),
        "message.binary.matches('(0|01|1|10)*2{1,300}3')".to_owned(),
        "message.binary.matches('[01]*1[01]{120}2')".to_owned(),
        format!(
            r"{range}.all(a, {range}.all(b, {range}.all(c, !'x'.matches('\\pL{{9}}' + string(a) + string(b) + string(c)))))"
        ),
        format!("{range}.map(a, {range}.map(b, {range}.map(c, message)))"),
        format!(
            "{range}.all(a, {range}.all(b, {range}.all(c, message.tools == message.tools + [])))"
        ),
    ]
}
