//! Names that stand for any one of several values: what each operator makes of them.

use proofhouse_expr::{Compiler, EvaluateErrorKind, ExprLimits, Program, SetKind, Sets, Variables};
use serde_json::{Value, json};

fn sets() -> Sets {
    let mut sets = Sets::default();
    sets.insert("owner", SetKind::Text, [json!("acme"), json!("umbrella")]);
    sets.insert("repo", SetKind::Text, [json!("mesh")]);
    sets.insert("number", SetKind::Integer, [json!(7), json!("42")]);
    sets.insert("share", SetKind::Number, [json!(0.5), json!("2")]);
    sets.insert("draft", SetKind::Bool, [json!("true")]);
    sets.insert("label", SetKind::Text, [json!(12), json!(true)]);
    sets.insert("any", SetKind::Any, [json!(1), json!("x"), json!(null)]);
    sets.insert("list", SetKind::Any, [json!(["a", "b"]), json!({"k": 1})]);
    sets.insert("empty", SetKind::Text, []);
    sets
}

fn event() -> Value {
    json!({
        "owner": "acme", "other": "evil", "repo": "mesh", "title": "acme: fix mesh",
        "number": 42, "text_number": "7", "huge": 9e300, "share": 0.5, "draft": true,
        "tags": ["red", "umbrella"], "labels": [12, "true"], "nothing": null,
        "owners": {"acme": 1}, "pair": ["a", "b"],
    })
}

fn evaluate(source: &str) -> Result<bool, EvaluateErrorKind> {
    let (sets, event) = (sets(), event());
    let mut variables = Variables::new();
    variables.bind("event", &event);
    variables.bind_sets("parameters", &sets);
    let compiler = Compiler::new(ExprLimits::default()).extended();
    let program = compiler.compile(source).expect("the test is set up");
    program
        .evaluate_bool(&variables)
        .map_err(|error| error.kind)
}

#[test]
fn equality_is_membership_wherever_it_stands() {
    for (source, expected) in [
        ("event.owner == parameters.owner", true),
        ("parameters.owner == event.owner", true),
        ("event.other == parameters.owner", false),
        ("event.other != parameters.owner", true),
        ("event.owner != parameters.owner", false),
        ("parameters['owner'] == 'umbrella'", true),
        ("event.owner in parameters.owner", true),
        ("event.other in parameters.owner", false),
        ("!(event.owner in parameters.owner)", false),
        ("!(event.other == parameters.owner)", true),
        (
            "event.repo == parameters.repo && event.owner == parameters.owner",
            true,
        ),
        (
            "event.repo == parameters.repo && event.other == parameters.owner",
            false,
        ),
        (
            "event.other == parameters.owner || event.repo == parameters.repo",
            true,
        ),
        (
            "event.draft ? event.owner == parameters.owner : false",
            true,
        ),
        (
            "(event.other == parameters.owner) ? true : event.repo == parameters.repo",
            true,
        ),
        ("event.tags.exists(t, t == parameters.owner)", true),
        ("event.tags.all(t, t == parameters.owner)", false),
        ("event.tags.exists_one(t, t == parameters.owner)", true),
        (
            "size(event.tags.filter(t, t == parameters.owner)) == 1",
            true,
        ),
        ("parameters.owner in event.tags", true),
        ("parameters.repo in event.tags", false),
        ("parameters.owner in event.owners", true),
        ("event.owner in [parameters.repo, parameters.owner]", true),
        ("[event.owner] == [parameters.owner]", true),
        ("{'o': event.other} == {'o': parameters.owner}", false),
        ("string(event.number) == parameters.number", true),
        ("parameters.owner == parameters.owner", true),
        ("parameters.owner == parameters.repo", false),
        (
            "has(parameters.owner) && !has(parameters.empty) && !has(parameters.unknown)",
            true,
        ),
        ("has(parameters) && !has(nothing)", true),
    ] {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
}

#[test]
fn values_are_turned_into_the_declared_type_first() {
    for (source, expected) in [
        ("event.number == parameters.number", true),
        ("event.text_number == parameters.number", true),
        ("'7.0' == parameters.number", false),
        ("7.0 == parameters.number", true),
        ("' 7' == parameters.number", false),
        ("true == parameters.number", false),
        ("event.huge == parameters.number", false),
        ("event.share == parameters.share", true),
        ("'0.5' == parameters.share", true),
        ("2 == parameters.share", true),
        ("'nan' == parameters.share", false),
        ("event.draft == parameters.draft", true),
        ("'true' == parameters.draft", true),
        ("1 == parameters.draft", false),
        ("event.labels.all(l, l == parameters.label)", true),
        ("12.0 == parameters.label", true),
        ("event.nothing == parameters.owner", false),
        ("event.nothing == parameters.any", true),
        ("1 == parameters.any", true),
        ("'1' == parameters.any", false),
        ("'x' == parameters.any", true),
        ("event.pair == parameters.list", true),
        ("['b', 'a'] == parameters.list", false),
        ("{'k': 1} == parameters.list", true),
        ("'a' in parameters.list", true),
        ("'c' in parameters.list", false),
    ] {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
}

#[test]
fn tests_hold_if_they_hold_for_one_of_the_values() {
    for (source, expected) in [
        ("event.title.startsWith(parameters.owner)", true),
        ("event.title.contains(parameters.repo)", true),
        ("event.title.endsWith(parameters.owner)", false),
        ("parameters.owner.startsWith('umb')", true),
        ("parameters.owner.endsWith('x')", false),
        ("parameters.number > 6", true),
        ("8 < parameters.number", false),
        ("parameters.number >= 8", false),
    ] {
        assert_eq!(evaluate(source), Ok(expected), "{source}");
    }
}

#[test]
fn where_one_value_is_needed_one_must_be_there() {
    assert_eq!(evaluate("'the ' + parameters.repo == 'the mesh'"), Ok(true));
    assert_eq!(evaluate("size(parameters.repo) == 4"), Ok(true));
    assert_eq!(evaluate("parameters.repo.matches('^m')"), Ok(true));
    assert_eq!(evaluate("type(parameters.repo) == string"), Ok(true));
    for source in [
        "'the ' + parameters.owner == 'the acme'",
        "size(parameters.owner) == 4",
        "parameters.owner.matches('^a')",
        "parameters.owner.name == 'x'",
        "!parameters.owner",
        "parameters.owner",
        "parameters.owner > parameters.number",
    ] {
        assert_eq!(evaluate(source), Err(EvaluateErrorKind::Type), "{source}");
    }
    let (sets, event) = (sets(), event());
    let mut variables = Variables::new();
    variables.bind("event", &event);
    variables.bind_sets("parameters", &sets);
    let value = |source: &str| {
        Program::compile(source)
            .expect("the test is set up")
            .evaluate(&variables)
    };
    assert_eq!(value("parameters.repo"), Ok(json!("mesh")));
    assert_eq!(
        value("parameters").unwrap_err().kind,
        EvaluateErrorKind::Type
    );
    assert_eq!(
        value("parameters.owner").unwrap_err().kind,
        EvaluateErrorKind::Type
    );
}

#[test]
fn a_set_without_values_has_the_last_word() {
    for source in [
        "event.owner == parameters.empty",
        "event.owner != parameters.unknown",
        "event.owner == parameters.empty || true",
        "!(event.owner == parameters.empty)",
        "[1, 2].exists(n, n == parameters.empty || n == 2)",
        "parameters[event.other] == 'x' || true",
        "parameters.empty in event.tags || true",
    ] {
        assert_eq!(
            evaluate(source),
            Err(EvaluateErrorKind::EmptySet),
            "{source}"
        );
    }
}

#[test]
fn the_fields_of_a_variable_are_known() {
    let program = Program::compile(
        "event.a == parameters.a && (parameters['b'] == 1 || [parameters.c].exists(x, x == parameters.d)) \
         ? {'k': parameters.e}.k == size(parameters.f) : event.parameters.g == -parameters.h \
         || has(parameters.i) || event.t.matches(parameters.j) || parameters[event.k] == 1",
    )
    .expect("the test is set up");
    let fields: Vec<&str> = program.fields_of("parameters").into_iter().collect();
    assert_eq!(fields, ["a", "b", "c", "d", "e", "f", "h", "j"]);
    assert!(program.fields_of("nothing").is_empty());
}

#[test]
fn looking_through_large_sets_is_paid_for() {
    let mut sets = Sets::default();
    let lists = (0..10_000).map(|number| json!([number]));
    sets.insert("lists", SetKind::Any, lists);
    let event = json!((0..10_000).map(|n| json!([n, n])).collect::<Vec<_>>());
    let mut variables = Variables::new();
    variables.bind("event", &event);
    variables.bind_sets("parameters", &sets);
    let program =
        Program::compile("event.exists(e, e == parameters.lists)").expect("the test is set up");
    let error = program.evaluate_bool(&variables).unwrap_err();
    assert_eq!(error.kind, EvaluateErrorKind::Budget);
}
