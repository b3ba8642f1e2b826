//! Expressions written to hang, crash or eat the memory of their host. Each must
//! end soon, on a small stack, with an error and never with a verdict.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should say so"
)]

use std::time::{Duration, Instant};

use proofhouse_expr::{
    CompileErrorKind, Compiler, EvaluateError, EvaluateErrorKind, ExprLimits, Form, Program,
    Variables,
};
use serde_json::{Value, json};

/// Generous, because these run in debug builds on busy machines; the times that
/// matter are measured by `examples/cost.rs`.
const SOON: Duration = Duration::from_secs(1);

/// Runs on a thread with little stack.
fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap()
}

fn large_message() -> Value {
    let numbers: Vec<_> = (0..20_000).collect();
    let texts: Vec<_> = (0..2_000)
        .map(|n| format!("{n}-{}", "x".repeat(100)))
        .collect();
    json!({"numbers": numbers, "texts": texts, "text": "ab".repeat(100_000)})
}

fn evaluate(source: &str, message: Value) -> Result<Value, EvaluateError> {
    let source = source.to_owned();
    on_small_stack(move || {
        let started = Instant::now();
        let mut variables = Variables::new();
        variables.bind("message", &message);
        let program = Program::compile(&source).unwrap_or_else(|error| panic!("{error}"));
        let result = program.evaluate(&variables);
        assert!(
            started.elapsed() < SOON,
            "{:?}: {source}",
            started.elapsed()
        );
        result
    })
}

#[track_caller]
fn spends_its_budget(source: &str) {
    for source in [
        source.to_owned(),
        // An exhausted budget is neither true nor false.
        format!("size(string({source})) >= 0 || true"),
        format!("({source}) == 0 || true"),
        format!("!(({source}) == 0 && false)"),
        format!("[1].exists(z, ({source}) == 0) || [1].all(z, true)"),
        format!("[1, 2].all(z, z == 2 ? false : ({source}) == 0)"),
    ] {
        let result = evaluate(&source, large_message());
        let kind = result.map_err(|error| error.kind);
        assert_eq!(kind, Err(EvaluateErrorKind::Budget), "{source}");
    }
}

#[test]
fn nested_loops() {
    let range =
        "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]";
    let nest = |name: &str, test: &str| {
        (0..6).fold(test.to_owned(), |inner, n| {
            format!("{range}.{name}(v{n}, {inner})")
        })
    };
    spends_its_budget(&nest("all", "true"));
    spends_its_budget(&nest("exists", "false"));
    spends_its_budget(&nest("map", "1"));
    let filters = (0..6).fold("true".to_owned(), |inner, n| {
        format!("size({range}.filter(v{n}, {inner})) >= 0")
    });
    spends_its_budget(&filters);
    spends_its_budget(
        "message.numbers.all(a, message.numbers.all(b, message.numbers.all(c, true)))",
    );
    spends_its_budget("message.numbers.exists_one(a, message.numbers.exists_one(b, a + b < 0))");
    spends_its_budget("message.numbers.map(a, message.numbers.map(b, message.numbers))");
}

#[test]
fn doubling() {
    let doubled = |start: &str, step: &str, times: usize| {
        let steps = format!(".map(x, {step})").repeat(times);
        format!("[{start}]{steps}")
    };
    spends_its_budget(&doubled("'aaaaaaaaaaaaaaaa'", "x + x", 25));
    spends_its_budget(&doubled("[1, 2, 3, 4]", "x + x", 25));
    spends_its_budget(&doubled("b'aaaaaaaaaaaaaaaa'", "x + x", 25));
    // Shared on the way, so only the way out is large.
    let shared = doubled("1", "[x, x]", 30);
    let result = evaluate(&shared, json!(null));
    assert_eq!(result.unwrap_err().kind, EvaluateErrorKind::Budget);
    let result = evaluate(&format!("{shared} == {shared} || true"), json!(null));
    assert_eq!(result.unwrap_err().kind, EvaluateErrorKind::Budget);
    let maps = doubled("1", "{'a': x, 'b': x}", 30);
    let result = evaluate(&format!("{maps} == {maps} || true"), json!(null));
    assert_eq!(result.unwrap_err().kind, EvaluateErrorKind::Budget);
}

#[test]
fn large_operands_are_paid_for() {
    for source in [
        "message.numbers.all(n, message.text == message.text + '')",
        "message.numbers.all(n, message.text.contains('abb'))",
        "message.numbers.all(n, size(message.text) > 0)",
        "message.numbers.all(n, !message.text.matches('b{2}'))",
        "message.numbers.all(n, [message.numbers] == [message.numbers + []])",
        "message.numbers.all(n, !(-1 in message.numbers))",
        "message.numbers.map(n, message.text + 'a')",
        "message.numbers.map(n, bytes(message.text))",
        "message.numbers.map(n, message.numbers + message.numbers)",
        "message.numbers.all(n, timestamp(n).getHours() < 99)",
        "message.numbers.all(n, string(n) != '' && string(double(n)) != '')",
        "message.numbers.map(n, message)",
    ] {
        // With room enough, these end; they must end by the budget instead of
        // running on, and they must not depend on the build being fast.
        let result = evaluate(&format!("{source} == []"), large_message());
        if let Err(error) = &result {
            assert_eq!(error.kind, EvaluateErrorKind::Budget, "{source}: {error}");
        }
    }
}

#[test]
fn fat_patterns() {
    let compile_bombs = [
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        r"(\\w{200}){200}",
        r"(?i)(\\pL{500}){20}",
    ];
    for bomb in compile_bombs {
        for source in [
            format!("'a'.matches('{bomb}')"),
            format!("'a'.matches('' + '{bomb}')"),
        ] {
            let error = evaluate(&source, json!(null)).unwrap_err();
            assert_eq!(error.kind, EvaluateErrorKind::Regex, "{source}: {error}");
        }
    }
    // Small, but slow on a long text that no automaton of a decent size follows.
    let mut seed = 1_u32;
    let text: String = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { 'a' } else { 'b' }
    })
    .take(300_000)
    .collect();
    for slow in ["[ab]*a[ab]{800}c", "a[ab]{800}c", "(?:a|b)*a(?:a|b){300}c"] {
        let source = format!("message.matches('{slow}') || true");
        let error = evaluate(&source, json!(text)).unwrap_err();
        assert_eq!(error.kind, EvaluateErrorKind::Budget, "{slow}");
    }
    // Large, but not slow.
    for (fine, found) in [
        ("(a|ab|b|ba)*c{1,400}x", false),
        ("ab|ba", true),
        ("b$|a$", true),
    ] {
        let found = Ok(json!(found));
        assert_eq!(
            evaluate(&format!("message.matches('{fine}')"), json!(text)),
            found,
            "{fine}"
        );
    }
    // Many at once.
    let many = vec![r"'a'.matches('\\pL{20}')"; 400].join("||");
    let started = Instant::now();
    assert_eq!(
        Program::compile(&many).unwrap_err().kind,
        CompileErrorKind::TooLarge
    );
    assert!(started.elapsed() < SOON * 2);
    // A new pattern for each element.
    let source = r"message.numbers.exists(n, 'a'.matches('\\w{20}' + string(n)))";
    let error = evaluate(source, large_message()).unwrap_err();
    assert_eq!(error.kind, EvaluateErrorKind::Budget);
}

#[test]
fn deep_and_long_sources() {
    let deep = |source: String| {
        on_small_stack(move || {
            let started = Instant::now();
            let result = Program::compile(&source).map(|program| {
                // Where it compiles, it also runs and drops on this stack.
                let _ = program.evaluate(&Variables::new());
            });
            assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
            result.map_err(|error| error.kind)
        })
    };
    let too_deep = Err(CompileErrorKind::TooDeep);
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1:", "}"),
        ("f(", ")"),
        ("-(", ")"),
        ("!(", ")"),
        ("a[", "]"),
        ("[1].all(x,", ")"),
        ("a?(", "):b"),
    ] {
        for times in [1_000, 3_000, 10_000] {
            let source = format!("{}1{}", open.repeat(times), close.repeat(times));
            let result = deep(source);
            assert!(
                result == too_deep || result == Err(CompileErrorKind::TooLarge),
                "{open} {times}: {result:?}"
            );
        }
        // As deep as it goes.
        for times in 1..200 {
            let source = format!("{}1{}", open.repeat(times), close.repeat(times));
            let _ = deep(source);
        }
    }
    for (link, times) in [
        ("+1", 5_000),
        (".a", 5_000),
        (".f()", 4_000),
        ("[0]", 5_000),
        ("==1", 5_000),
        ("?1:1", 4_000),
        (" in a", 3_000),
        ("*1-1", 4_000),
        (".map(x,x)", 1_700),
    ] {
        assert_eq!(deep(format!("a{}", link.repeat(times))), too_deep, "{link}");
        for times in (1..300).step_by(7) {
            let _ = deep(format!("a{}", link.repeat(times)));
        }
    }
    for prefix in ["!", "-", "!-", "- ! "] {
        let _ = deep(format!("{}a", prefix.repeat(4_000)));
    }
    // Long, but not deep.
    assert_eq!(deep(vec!["true"; 2_000].join("&&")), Ok(()));
    assert_eq!(deep(vec!["a.b.c==1"; 1_300].join("||")), Ok(()));
    assert_eq!(deep(format!("[{}1]", "1,".repeat(8_000))), Ok(()));
    assert_eq!(deep(format!("'{}'", "x".repeat(16_000))), Ok(()));
    assert_eq!(deep(format!("[{}1]", "1,".repeat(8_188))), Ok(()));
    let map: Vec<_> = (0..1_500).map(|n| format!("{n}:1")).collect();
    assert_eq!(deep(format!("{{{}}}", map.join(","))), Ok(()));
    assert_eq!(deep("1+".repeat(10_000)), Err(CompileErrorKind::TooLarge));
    assert_eq!(
        deep(format!("[{}]", "1,".repeat(100_000))),
        Err(CompileErrorKind::TooLarge)
    );
    // Open for ever.
    for open in ["(", "[", "{", "'", "\"\"\"", "a.b(", "a?", "`"] {
        assert!(deep(open.repeat(5_000)).is_err());
        assert!(deep(open.to_owned()).is_err());
    }
}

#[test]
fn deep_values() {
    // Deeper than anything that was parsed can be.
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let shallow = evaluate(
        "message == [message][0] && message in [message]",
        nested(120),
    );
    assert_eq!(shallow, Ok(json!(true)));
    assert_eq!(evaluate("message", nested(120)), Ok(nested(120)));
    let twice = || json!([nested(1_000), nested(1_000)]);
    for source in [
        "message",
        "message[0] == message[1] || true",
        "message[0] in [1, message[1]]",
    ] {
        let error = evaluate(source, twice()).unwrap_err();
        assert_eq!(error.kind, EvaluateErrorKind::Budget, "{source}");
    }
    // What a function gives away may be deep as well.
    let compiler = Compiler::new(ExprLimits::default())
        .function("deep", Form::Global, move |_| Ok(nested(1_000)));
    let program = compiler.compile("size(deep()) == 1 || true").unwrap();
    let error = program.evaluate(&Variables::new()).unwrap_err();
    assert_eq!(error.kind, EvaluateErrorKind::Budget);
}

#[test]
fn slow_functions_are_noticed() {
    let limits = ExprLimits {
        max_time: Duration::from_millis(20),
        ..ExprLimits::default()
    };
    let compiler = Compiler::new(limits).function("nap", Form::Global, |_| {
        std::thread::sleep(Duration::from_millis(15));
        Ok(json!(true))
    });
    // Once is enough, also for the first thing an evaluation does.
    let program = compiler.compile("nap() && nap() || true").unwrap();
    let error = program.evaluate_bool(&Variables::new()).unwrap_err();
    assert_eq!(error.kind, EvaluateErrorKind::Budget);
    let program = compiler
        .compile("[1,2,3,4,5].exists(x, nap() && false) || true")
        .unwrap();
    let started = Instant::now();
    let error = program.evaluate_bool(&Variables::new()).unwrap_err();
    assert_eq!(error.kind, EvaluateErrorKind::Budget);
    assert!(started.elapsed() < SOON);
}

#[test]
fn limits_are_the_callers() {
    let limits = ExprLimits {
        max_steps: 100,
        max_bytes_built: 1_000,
        max_depth: 12,
        max_nodes: 50,
        max_regex_bytes: 1_000,
        ..ExprLimits::default()
    };
    let compiler = Compiler::new(limits);
    let run = |source: &str| {
        let program = compiler.compile(source).unwrap();
        program
            .evaluate(&Variables::new())
            .map_err(|error| error.kind)
    };
    assert_eq!(run("[1,2,3].all(x, x > 0)"), Ok(json!(true)));
    assert_eq!(
        run("[1,2,3].all(x, [1,2,3].all(y, [1,2,3].all(z, x + y + z > 0)))"),
        Err(EvaluateErrorKind::Budget)
    );
    assert_eq!(
        run(&format!("'{0}' + '{0}'", "a".repeat(600))),
        Err(EvaluateErrorKind::Budget)
    );
    assert_eq!(run(r"'a'.matches('\\pL+')"), Err(EvaluateErrorKind::Regex));
    assert_eq!(
        compiler
            .compile(&format!("{}1{}", "[".repeat(13), "]".repeat(13)))
            .unwrap_err()
            .kind,
        CompileErrorKind::TooDeep
    );
    assert_eq!(
        compiler
            .compile(&format!("[{}1]", "1,".repeat(60)))
            .unwrap_err()
            .kind,
        CompileErrorKind::TooLarge
    );
}

#[test]
fn one_program_on_many_threads_has_one_budget_each() {
    // It is about steps; a loaded machine may take its time for them.
    let limits = ExprLimits {
        max_time: Duration::from_secs(60),
        ..ExprLimits::default()
    };
    let program = Compiler::new(limits).compile("message.numbers.filter(n, n % 2 == 0).size()");
    let program = program.unwrap();
    let message = large_message();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let variables = Variables::from_iter([("message", &message)]);
                    assert_eq!(program.evaluate(&variables), Ok(json!(10_000)));
                }
            });
        }
    });
}
