//! What expressions evaluate to, as tables.

#![expect(clippy::panic, reason = "a test that cannot go on should say so")]

use proofhouse_expr::{
    CompileErrorKind, Compiler, EvaluateErrorKind, ExprLimits, Form, FunctionError, Program,
    Variables,
};
use serde_json::{Value, json};

fn message() -> Value {
    json!({
        "name": "evil-tool",
        "n": 41,
        "big": 18_446_744_073_709_551_615_u64,
        "half": 0.5,
        "ok": true,
        "nothing": null,
        "tags": ["a", "b", "c"],
        "nested": {"list": [{"x": 1}, {"x": 2}], "map": {"k": "v"}},
        "tools": [
            {"name": "search", "description": "short"},
            {"name": "admin", "description": "x".repeat(200)},
        ],
        "odd key": 7,
        "text": "zażółć",
    })
}

fn run(source: &str) -> Result<Value, EvaluateErrorKind> {
    let message = message();
    let mut variables = Variables::new();
    variables.bind("message", &message);
    let compiler = Compiler::new(ExprLimits::default()).extended();
    let program = compiler.compile(source);
    program
        .unwrap_or_else(|error| panic!("{source}: {error}"))
        .evaluate(&variables)
        .map_err(|error| error.kind)
}

#[track_caller]
fn check(cases: &[(&str, Value)]) {
    for (source, expected) in cases {
        assert_eq!(run(source).as_ref(), Ok(expected), "{source}");
    }
}

#[track_caller]
fn check_errors(cases: &[(&str, EvaluateErrorKind)]) {
    for (source, expected) in cases {
        assert_eq!(run(source), Err(*expected), "{source}");
    }
}

#[test]
fn values_come_in_and_go_out() {
    check(&[
        ("message", message()),
        ("message.nested", message()["nested"].clone()),
        ("message.tags[1]", json!("b")),
        ("message['odd key']", json!(7)),
        ("message.`odd key`", json!(7)),
        ("message.nested.list[1].x", json!(2)),
        ("message.tags[1u]", json!("b")),
        ("message.tags[1.0]", json!("b")),
        ("message.big", json!(18_446_744_073_709_551_615_u64)),
        ("message.nothing", Value::Null),
        (
            "[1, 2u, 3.5, 'x', true, null]",
            json!([1, 2, 3.5, "x", true, null]),
        ),
        (
            "{'a': {1: true, true: 2, 3u: 'x'}}",
            json!({"a": {"1": true, "true": 2, "3": "x"}}),
        ),
        ("b'foob'", json!("Zm9vYg==")),
        ("type(1)", json!("int")),
        ("{'b': 1, 'a': 2}.map(k, k)", json!(["b", "a"])),
    ]);
}

#[test]
fn integers_are_as_people_expect() {
    check(&[
        ("message.n + 1", json!(42)),
        ("message.n - 50", json!(-9)),
        ("message.n * 2 == 82", json!(true)),
        ("message.n / 2", json!(20)),
        ("message.n % 2", json!(1)),
        ("-message.n", json!(-41)),
        (
            "message.n == 41u && message.n == 41.0 && message.n > 40.5",
            json!(true),
        ),
        ("message.big > 9223372036854775807", json!(true)),
        (
            "message.big == message.big && message.big != 1",
            json!(true),
        ),
        (
            "type(message.n) == int && type(message.big) == uint",
            json!(true),
        ),
        ("message.half + 0.5", json!(1.0)),
        ("1.0 / 0.0 > 1e308", json!(true)),
        ("0.0 / 0.0 == 0.0 / 0.0", json!(false)),
    ]);
    check_errors(&[
        ("9223372036854775807 + 1", EvaluateErrorKind::Arithmetic),
        ("-9223372036854775807 - 2", EvaluateErrorKind::Arithmetic),
        ("9223372036854775807 * 2", EvaluateErrorKind::Arithmetic),
        ("-(-9223372036854775807 - 1)", EvaluateErrorKind::Arithmetic),
        (
            "(-9223372036854775807 - 1) / -1",
            EvaluateErrorKind::Arithmetic,
        ),
        (
            "(-9223372036854775807 - 1) % -1",
            EvaluateErrorKind::Arithmetic,
        ),
        ("1u - 2u", EvaluateErrorKind::Arithmetic),
        ("1 / 0", EvaluateErrorKind::Arithmetic),
        ("1 % 0", EvaluateErrorKind::Arithmetic),
        ("1u / 0u", EvaluateErrorKind::Arithmetic),
        ("message.n + 1.0", EvaluateErrorKind::Type),
        ("message.n + 1u", EvaluateErrorKind::Type),
        ("1.0 % 1.0", EvaluateErrorKind::Type),
        ("0.0 / 0.0", EvaluateErrorKind::Type),
        ("-1u", EvaluateErrorKind::Type),
    ]);
}

#[test]
fn equality_works_both_ways() {
    check(&[
        ("['a', 'b', 'c'] == message.tags", json!(true)),
        ("message.tags == ['a', 'b', 'c']", json!(true)),
        ("message.tags == ['a', 'b']", json!(false)),
        ("message.tags != ['a', 'b', 'd']", json!(true)),
        ("message.nested.map == {'k': 'v'}", json!(true)),
        ("{'k': 'v'} == message.nested.map", json!(true)),
        ("{'k': 'w'} == message.nested.map", json!(false)),
        ("{'l': 'v'} == message.nested.map", json!(false)),
        (
            "message.nested == {'map': {'k': 'v'}, 'list': [{'x': 1.0}, {'x': 2u}]}",
            json!(true),
        ),
        ("message == message", json!(true)),
        (
            "message.nothing == null && null == message.nothing",
            json!(true),
        ),
        (
            "message.nothing == false || 0 == message.nothing",
            json!(false),
        ),
        ("{1: 'a'} == {1u: 'a'}", json!(true)),
        ("[1, 2.0, 3u] == [1.0, 2, 3]", json!(true)),
        ("'1' == 1", json!(false)),
    ]);
}

#[test]
fn texts_and_lists() {
    check(&[
        (
            "size(message.text) == 6 && message.text.size() == 6",
            json!(true),
        ),
        ("size(message.tags) + message.nested.size()", json!(5)),
        ("size({}) + size([]) + size('') + size(b'')", json!(0)),
        (
            "message.name.startsWith('evil') && message.name.endsWith('tool')",
            json!(true),
        ),
        (
            "message.name.contains('l-t') && !message.name.contains('x')",
            json!(true),
        ),
        ("message.name.matches('^evil-[a-z]+$')", json!(true)),
        ("matches(message.name, 'tool')", json!(true)),
        ("message.name.matches('^' + 'tool')", json!(false)),
        ("'a' + message.name + 'b'", json!("aevil-toolb")),
        ("message.tags + ['d']", json!(["a", "b", "c", "d"])),
        ("['z'] + message.tags", json!(["z", "a", "b", "c"])),
        ("b'a' + b'b' == b'ab'", json!(true)),
        ("'b' in message.tags && !('x' in message.tags)", json!(true)),
        (
            "'k' in message.nested.map && !('v' in message.nested.map)",
            json!(true),
        ),
        (
            "1 in [1.0] && 1 in {1u: 0} && !(1 in message.nested.map)",
            json!(true),
        ),
        ("{'x': 1} in message.nested.list", json!(true)),
        (
            "'abc' < 'abd' && 'Z' < 'a' && b'a' < b'b' && false < true",
            json!(true),
        ),
    ]);
    check_errors(&[
        ("message.name.matches('(')", EvaluateErrorKind::Regex),
        ("message.name.matches('(' + '')", EvaluateErrorKind::Regex),
        (
            "message.name.matches('(a{1000}){1000}')",
            EvaluateErrorKind::Regex,
        ),
        ("message.name + 1", EvaluateErrorKind::Type),
        ("message + message", EvaluateErrorKind::Type),
        ("message.tags + message", EvaluateErrorKind::Type),
        ("message.n.startsWith('a')", EvaluateErrorKind::Type),
        ("message.name.startsWith()", EvaluateErrorKind::Type),
        ("size(1)", EvaluateErrorKind::Type),
        ("1 < 'a'", EvaluateErrorKind::Type),
        ("[1] < [2]", EvaluateErrorKind::Type),
        ("'a' in 'abc'", EvaluateErrorKind::Type),
        ("[] in {}", EvaluateErrorKind::Type),
        ("message.tags['a']", EvaluateErrorKind::Type),
    ]);
}

#[test]
fn macros_and_logic() {
    check(&[
        (
            "message.tools.exists(t, t.name == 'admin' && size(t.description) > 100)",
            json!(true),
        ),
        ("message.tags.all(t, size(t) == 1)", json!(true)),
        ("message.tags.exists_one(t, t > 'b')", json!(true)),
        ("message.tags.exists_one(t, t > 'a')", json!(false)),
        ("message.tags.filter(t, t != 'b')", json!(["a", "c"])),
        ("message.tags.map(t, t + t)", json!(["aa", "bb", "cc"])),
        ("message.tags.map(t, t != 'b', t + t)", json!(["aa", "cc"])),
        ("message.nested.all(k, k in ['list', 'map'])", json!(true)),
        ("message.nested.map(k, k)", json!(["list", "map"])),
        (
            "message.nested.list.map(a, message.nested.list.map(b, a.x * 10 + b.x))",
            json!([[11, 12], [21, 22]]),
        ),
        ("[1, 2].map(x, [3].map(x, x))", json!([[3], [3]])),
        ("[1].map(message, message)", json!([1])),
        ("[1].map(message, .message.n)", json!([41])),
        ("has(message.name) && !has(message.missing)", json!(true)),
        ("has(message.nested.map.k)", json!(true)),
        (
            "has(message) && !has(event) && [1].all(x, has(x))",
            json!(true),
        ),
        ("message.ok ? 1 : message.missing", json!(1)),
        ("!message.ok ? message.missing : 2", json!(2)),
        ("true || message.missing", json!(true)),
        ("message.missing || true", json!(true)),
        ("message.missing && false", json!(false)),
        ("1 || true", json!(true)),
        ("[1, 0].exists(x, 1 / x == 1)", json!(true)),
        ("[0, 1].exists(x, 1 / x == 1)", json!(true)),
        ("[0, 1].all(x, 1 / x == 2)", json!(false)),
        ("[].all(x, x) && ![].exists(x, x)", json!(true)),
    ]);
    check_errors(&[
        ("message.missing", EvaluateErrorKind::MissingField),
        ("message.missing.deeper", EvaluateErrorKind::MissingField),
        ("message['missing']", EvaluateErrorKind::MissingField),
        ("message[1]", EvaluateErrorKind::MissingField),
        ("message.tags[3]", EvaluateErrorKind::MissingField),
        ("message.tags[-1]", EvaluateErrorKind::MissingField),
        (
            "has(message.missing.deeper)",
            EvaluateErrorKind::MissingField,
        ),
        ("has(message.name.deeper)", EvaluateErrorKind::Type),
        ("message.name.deeper", EvaluateErrorKind::Type),
        ("message.nothing.deeper", EvaluateErrorKind::Type),
        ("message.missing && true", EvaluateErrorKind::MissingField),
        ("message.missing || false", EvaluateErrorKind::MissingField),
        ("1 && true", EvaluateErrorKind::Type),
        ("1 ? 2 : 3", EvaluateErrorKind::Type),
        ("!1", EvaluateErrorKind::Type),
        (
            "[0, 1].exists(x, 1 / x == 2)",
            EvaluateErrorKind::Arithmetic,
        ),
        (
            "[0, 1].filter(x, 1 / x == 2)",
            EvaluateErrorKind::Arithmetic,
        ),
        ("[1].exists(x, x)", EvaluateErrorKind::Type),
        ("[1].filter(x, x)", EvaluateErrorKind::Type),
        ("message.name.all(c, true)", EvaluateErrorKind::Type),
        ("{'a': 1, 'a': 2}", EvaluateErrorKind::Runtime),
        ("{1: 1, 1u: 2}", EvaluateErrorKind::Runtime),
        ("{[]: 1}", EvaluateErrorKind::Type),
        ("{1.0: 1}", EvaluateErrorKind::Type),
        ("other", EvaluateErrorKind::UnknownVariable),
        ("other.field", EvaluateErrorKind::UnknownVariable),
        ("[1].map(x, x) == [x]", EvaluateErrorKind::UnknownVariable),
    ]);
}

#[test]
fn conversions_times_and_types() {
    check(&[
        (
            "string(1) + string(1u) + string(1.5) + string(true) + string('x')",
            json!("111.5truex"),
        ),
        ("string(b'abc')", json!("abc")),
        ("int('42') + int(2u) + int(3.9)", json!(47)),
        ("uint(3) + uint('4')", json!(7)),
        ("double('1.5') + double(1)", json!(2.5)),
        ("bool('true') && !bool('false')", json!(true)),
        ("bytes('abc') == b'abc'", json!(true)),
        ("dyn(1) == 1.0", json!(true)),
        (
            "timestamp('2024-01-02T03:04:05Z')",
            json!("2024-01-02T03:04:05Z"),
        ),
        (
            "string(timestamp('2024-01-02T03:04:05.250+01:00'))",
            json!("2024-01-02T02:04:05.25Z"),
        ),
        ("duration('1h30m') + duration('1.5s')", json!("5401.5s")),
        (
            "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z')",
            json!("86400s"),
        ),
        (
            "timestamp('2024-01-01T00:00:00Z') + duration('24h')",
            json!("2024-01-02T00:00:00Z"),
        ),
        (
            "duration('24h') + timestamp('2024-01-01T00:00:00Z') - duration('1h')",
            json!("2024-01-01T23:00:00Z"),
        ),
        (
            "timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-02T00:00:00Z')",
            json!(true),
        ),
        (
            "timestamp('2024-01-01T01:00:00+01:00') == timestamp('2024-01-01T00:00:00Z')",
            json!(true),
        ),
        (
            "duration('60s') == duration('1m') && duration('1m') > duration('1s')",
            json!(true),
        ),
        ("int(timestamp('1970-01-01T00:01:00Z'))", json!(60)),
        (
            "timestamp('2024-05-06T07:08:09Z').getFullYear()",
            json!(2024),
        ),
        ("timestamp('2024-05-06T07:08:09Z').getMonth()", json!(4)),
        (
            "timestamp('2024-05-06T07:08:09Z').getHours('Asia/Tokyo')",
            json!(16),
        ),
        ("duration('2h30m').getMinutes()", json!(150)),
        (
            "type(duration('1s')) == google.protobuf.Duration",
            json!(true),
        ),
        (
            "type(timestamp(0)) == google.protobuf.Timestamp",
            json!(true),
        ),
        (
            "type(message) == map && type(message.tags) == list && type({}) == map",
            json!(true),
        ),
        (
            "type(null) == null_type && type(type(1)) == type && type(type) == type",
            json!(true),
        ),
        (
            "type('') == string && type(b'') == bytes && type(1.0) == double",
            json!(true),
        ),
    ]);
    check_errors(&[
        ("int('x')", EvaluateErrorKind::Function),
        ("int(1e300)", EvaluateErrorKind::Function),
        ("uint(-1)", EvaluateErrorKind::Function),
        ("timestamp('yesterday')", EvaluateErrorKind::Function),
        (
            "timestamp(9223372036854775807)",
            EvaluateErrorKind::Function,
        ),
        ("duration('1 fortnight')", EvaluateErrorKind::Function),
        ("duration('999999999999999h')", EvaluateErrorKind::Function),
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
            EvaluateErrorKind::Arithmetic,
        ),
        (
            "timestamp('0001-01-01T00:00:00Z') - duration('1s')",
            EvaluateErrorKind::Arithmetic,
        ),
        (
            "duration('9000000000s') + duration('9000000000s')",
            EvaluateErrorKind::Arithmetic,
        ),
        (
            "timestamp(0).getHours('Nowhere')",
            EvaluateErrorKind::Function,
        ),
        ("timestamp(0).getHours(1)", EvaluateErrorKind::Type),
        ("message.getHours()", EvaluateErrorKind::Type),
        ("string([1])", EvaluateErrorKind::Type),
        ("int([1])", EvaluateErrorKind::Type),
        ("int()", EvaluateErrorKind::Type),
        ("duration('1s') * 2", EvaluateErrorKind::Type),
    ]);
}

#[test]
fn unknown_functions_are_never_silent() {
    check_errors(&[
        ("shout('a')", EvaluateErrorKind::UnsupportedFunction),
        ("'a'.shout()", EvaluateErrorKind::UnsupportedFunction),
        ("shout('a') || true", EvaluateErrorKind::UnsupportedFunction),
        ("true || shout('a')", EvaluateErrorKind::UnsupportedFunction),
        ("contains('a', 'b')", EvaluateErrorKind::UnsupportedFunction),
        ("'a'.int()", EvaluateErrorKind::UnsupportedFunction),
        (
            "message.name.lowerAscii()",
            EvaluateErrorKind::UnsupportedFunction,
        ),
    ]);
}

#[test]
fn registered_functions() {
    let compiler = Compiler::new(ExprLimits::default())
        .function("sum", Form::Both, |args| {
            let numbers = args.iter().flat_map(|arg| match arg {
                Value::Array(items) => items.clone(),
                other => vec![other.clone()],
            });
            Ok(json!(numbers.filter_map(|n| n.as_i64()).sum::<i64>()))
        })
        .function("fail", Form::Global, |_| Err(FunctionError::new("no")))
        .function("echo", Form::Global, |args| Ok(json!(args)))
        .function("size", Form::Global, |_| Ok(json!(-1)))
        .function("auth.token", Form::Global, |args| Ok(json!(args.len())));
    let run = |source: &str| {
        let program = compiler.compile(source).unwrap();
        program
            .evaluate(&Variables::new())
            .map_err(|error| error.kind)
    };
    assert_eq!(run("sum([1, 2, 3]) + [4].sum(5)"), Ok(json!(15)));
    assert_eq!(run("fail()"), Err(EvaluateErrorKind::Function));
    assert_eq!(run("fail() || true"), Ok(json!(true)));
    assert_eq!(
        run("'x'.fail()"),
        Err(EvaluateErrorKind::UnsupportedFunction)
    );
    assert_eq!(
        run("size('abc') == -1 && 'abc'.size() == 3"),
        Ok(json!(true))
    );
    assert_eq!(run("auth.token() + auth.token(1)"), Ok(json!(1)));
    assert_eq!(
        run("echo({'a': [1, null]}, timestamp(0))[0].a[0] + 1"),
        Ok(json!(2))
    );
    assert_eq!(
        run("echo({'a': [1]}, timestamp(0)) == [{'a': [1]}, '1970-01-01T00:00:00Z']"),
        Ok(json!(true))
    );
}

#[test]
fn syntax_errors_have_a_place() {
    for (source, offset) in [
        ("", 0),
        ("a +", 3),
        ("a b", 2),
        ("(a", 2),
        ("a.\n  1b", 5),
        ("'abc", 0),
        ("1 = 2", 2),
        ("if", 0),
    ] {
        let error = Program::compile(source).unwrap_err();
        assert_eq!(error.offset, Some(offset), "{source}: {error}");
    }
    for source in [
        "a.?b",
        "a[?0]",
        "[?a]",
        "{?'a': 1}",
        "has(1)",
        "has(f())",
        "x.map(1, 2)",
        "Message{a: 1}",
    ] {
        assert!(Program::compile(source).is_err(), "{source}");
    }
}

#[test]
fn prefixes_of_texts_are_those_of_cel() {
    check(&[
        ("size(br'\\d') == 2 && size(bR\"\\d\") == 2", json!(true)),
        ("r'\\d' == '\\\\d' && b'a' == B'a'", json!(true)),
    ]);
    for odd in ["rb'x' == b'x'", "Rb\"x\" == b'x'", "rr'x' == 'x'"] {
        let error = Program::compile(odd).unwrap_err();
        assert_eq!(error.kind, CompileErrorKind::Syntax, "{odd}");
    }
    // The end of a name that stands before a text is none.
    assert!(Program::compile("herb'x'").is_err());
}

#[test]
fn messages_are_cel_that_is_not_supported() {
    let error = Program::compile("a.b.C{x: 1}").unwrap_err();
    assert_eq!(error.kind, CompileErrorKind::Unsupported);
    let error = Program::compile("a.b.C{x: ").unwrap_err();
    assert_eq!(error.kind, CompileErrorKind::Syntax);
}
