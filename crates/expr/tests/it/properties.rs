//! Properties: nothing panics, JSON survives, and results are those of the
//! `cel` crate's own interpreter wherever that one can be trusted with the input.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

use proofhouse_expr::{Program, Variables};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..5).prop_map(Value::from),
        any::<f64>().prop_filter_map("JSON", |number| Number::from_f64(number).map(Value::from)),
        "[a-zé]{0,4}".prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes an expression, of a type wanted nearly always kept to, from a list of
/// choices.
struct Author {
    choices: std::vec::IntoIter<u8>,
}

#[derive(Clone, Copy)]
enum Want {
    Bool,
    Int,
    Text,
    List,
    Map,
    Any,
}

impl Author {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        // Out of choices, the first: which is always a leaf.
        from[usize::from(self.choices.next().unwrap_or(0)) % from.len()]
    }

    fn write(&mut self, want: Want, depth: usize) -> String {
        let wants = [Want::Bool, Want::Int, Want::Text, Want::List, Want::Map];
        let want = match (
            want,
            self.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ) {
            (Want::Any, _) | (_, 1) => self.pick(&wants),
            (want, _) => want,
        };
        let leaves: &[&str] = match want {
            Want::Bool => &["true", "false", "x.m.b[0]", "has(x.a)", "has(x.z)"],
            Want::Int => &[
                "1", "-2", "x.a", "x.n", "2u", "0.5", "1.0", "e", "y[1]", "x.z",
            ],
            Want::Text => &["'a'", "x.b", "x.s", "''", "e", "string(1.5)", "b'a'"],
            Want::List => &["y", "x.l", "[]", "x.m.b", "[1, 'a']"],
            Want::Map | Want::Any => &["x", "x.m", "{}", "{'a': 1}", "{1: 2, true: 3}"],
        };
        let kind = self.pick(&[0, 1, 2, 3, 4, 5, 6, 7]);
        if depth == 0 || kind == 0 {
            return self.pick(leaves).to_owned();
        }
        let mut of = |want| self.write(want, depth - 1);
        match (want, kind) {
            (Want::Bool, 1) => {
                let (left, right) = (of(Want::Bool), of(Want::Bool));
                format!("({left}) {} ({right})", self.pick(&["&&", "||", "==", "<"]))
            }
            (Want::Bool, 2) => {
                let (left, right) = (of(Want::Int), of(Want::Int));
                format!(
                    "({left}) {} ({right})",
                    self.pick(&["==", "!=", "<", "<=", ">", ">="])
                )
            }
            (Want::Bool, 3) => {
                let (left, right) = (of(Want::Text), of(Want::Text));
                let name = self.pick(&["contains", "startsWith", "endsWith"]);
                format!("({left}).{name}({right})")
            }
            (Want::Bool, 4) => {
                let (range, test) = (of(Want::List), of(Want::Bool));
                let name = self.pick(&["all", "exists", "exists_one"]);
                format!("({range}).{name}(e, {test})")
            }
            (Want::Bool, 5) => {
                let (left, right) = (of(Want::Any), of(Want::Any));
                format!("({left}) {} ({right})", self.pick(&["==", "!=", "in"]))
            }
            (Want::Bool, 6) => format!("{} in ({})", of(Want::Text), of(Want::Map)),
            (Want::Bool, _) => format!("!({})", of(Want::Bool)),
            (Want::Int, 1..=3) => {
                let (left, right) = (of(Want::Int), of(Want::Int));
                format!(
                    "({left}) {} ({right})",
                    self.pick(&["+", "-", "*", "/", "%"])
                )
            }
            (Want::Int, 4) => {
                let any = self.pick(&[Want::Text, Want::List, Want::Map]);
                format!("size({})", self.write(any, depth - 1))
            }
            (Want::Int, 5) => format!("{}({})", self.pick(&["int", "uint", "double"]), {
                let any = self.pick(&[Want::Int, Want::Int, Want::Text]);
                self.write(any, depth - 1)
            }),
            (Want::Int, 6) => format!("-({})", of(Want::Int)),
            (Want::Text, 1..=3) => format!("({}) + ({})", of(Want::Text), of(Want::Text)),
            (Want::Text, 4..=6) => format!("string({})", of(Want::Any)),
            (Want::List, 1) => format!("({}) + ({})", of(Want::List), of(Want::List)),
            (Want::List, 2) => format!("({}).filter(e, {})", of(Want::List), of(Want::Bool)),
            (Want::List, 3) => format!("({}).map(e, {})", of(Want::List), of(Want::Any)),
            (Want::List, 4) => {
                let (range, test) = (of(Want::List), of(Want::Bool));
                format!("({range}).map(e, {test}, {})", of(Want::Any))
            }
            (Want::List, 5) => format!("({}).map(e, e)", of(Want::Map)),
            (Want::List, 6) => format!("[{}, {}]", of(Want::Any), of(Want::Any)),
            (Want::Map, 1..=4) => format!("{{{}: {}}}", of(Want::Text), of(Want::Any)),
            (Want::Map, 5) => format!("({})['m']", of(Want::Map)),
            (_, 7) => format!("({})[{}]", of(Want::List), of(Want::Int)),
            _ => {
                let (test, one) = (of(Want::Bool), of(want));
                format!("({test}) ? ({one}) : ({})", of(want))
            }
        }
    }
}

fn expression() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..120).prop_map(|choices| {
        let choices = choices.into_iter();
        Author { choices }.write(Want::Any, 4)
    })
}

/// JSON as the `cel` crate's values, integers as people expect.
fn to_cel(json: &Value) -> cel::Value {
    match json {
        Value::Null => cel::Value::Null,
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => int.into(),
            (_, Some(uint)) => uint.into(),
            _ => number.as_f64().unwrap().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(to_cel).collect::<Vec<_>>().into(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), to_cel(value)))
            .collect::<std::collections::HashMap<_, _>>()
            .into(),
    }
}

/// The other way; `None` for what is no plain JSON.
fn from_cel(value: &cel::Value) -> Option<Value> {
    Some(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(bool) => json!(bool),
        cel::Value::Int(int) => json!(int),
        cel::Value::UInt(uint) => json!(uint),
        cel::Value::Float(double) => Value::Number(Number::from_f64(*double)?),
        cel::Value::String(text) => json!(text.as_str()),
        cel::Value::List(items) => items.iter().map(from_cel).collect::<Option<_>>()?,
        cel::Value::Map(map) => map
            .map
            .iter()
            .map(|(key, value)| Some((key.to_string(), from_cel(value)?)))
            .collect::<Option<Map<_, _>>>()?
            .into(),
        _ => return None,
    })
}

/// Whether the two agree on all there is to agree on. Maps of the `cel` crate
/// have no order, so what loops over one is compared as a set.
fn same(ours: &Value, theirs: &Value) -> bool {
    ours == theirs || sorted(ours) == sorted(theirs)
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(sorted).collect();
            items.sort_by_key(Value::to_string);
            items.into()
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map
                .iter()
                .map(|(key, of)| json!([key, sorted(of)]))
                .collect();
            entries.sort_by_key(Value::to_string);
            entries.into()
        }
        other => other.clone(),
    }
}

fn sample() -> Value {
    json!({
        "a": 1, "b": "ab", "s": "abba", "n": -2,
        "l": [1, "a", 2.5, [1], {"a": 1}, null],
        "m": {"a": 1, "b": [true]},
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_survives(value in any_json()) {
        let variables = Variables::from_iter([("x", &value)]);
        let evaluate = |source| Program::compile(source).unwrap().evaluate(&variables);
        prop_assert_eq!(&evaluate("x").unwrap(), &value);
        prop_assert_eq!(evaluate("x == x").unwrap(), json!(true));
        prop_assert_eq!(evaluate("[x] == [x, x].filter(v, true).map(v, v) || true").unwrap(), json!(true));
        prop_assert_eq!(evaluate("{'k': x}.k").unwrap(), value);
    }

    #[test]
    fn equality_is_symmetric(left in any_json(), right in any_json()) {
        let variables = Variables::from_iter([("x", &left), ("y", &right)]);
        let evaluate = |source| Program::compile(source).unwrap().evaluate(&variables);
        prop_assert_eq!(evaluate("x == y"), evaluate("y == x"));
        prop_assert_eq!(evaluate("[x] == [y]"), evaluate("x == y"));
        prop_assert_eq!(evaluate("{'k': x} == {'k': y}"), evaluate("x == y"));
    }

    #[test]
    fn results_are_those_of_the_cel_crate(source in expression()) {
        let value = sample();
        let y = json!([1, 2, "ab"]);
        let variables = Variables::from_iter([("x", &value), ("y", &y)]);
        let Ok(program) = Program::compile(&source) else {
            return Ok(());
        };
        let ours = program.evaluate(&variables);
        let parsed = cel::Program::compile(&source).expect("it parses");
        let run = || {
            let mut context = cel::Context::default();
            context.add_variable_from_value("x", to_cel(&value));
            context.add_variable_from_value("y", to_cel(&y));
            parsed.execute(&context)
        };
        // Their maps come in another order each time, so one agreement will do.
        let agrees = |theirs: &Result<cel::Value, _>| match (&ours, theirs) {
            (Ok(ours), Ok(theirs)) => from_cel(theirs).is_none_or(|theirs| same(ours, &theirs)),
            (ours, theirs) => ours.is_ok() == theirs.is_ok(),
        };
        let theirs = run();
        if agrees(&theirs) || (0..100).any(|_| agrees(&run())) {
            return Ok(());
        }
        match (&ours, &theirs) {
            // Theirs adds the keys of a map to a list.
            (Err(ours), Ok(_)) if ours.message.contains("'+' for (list, map)") => {}
            // A double that JSON has no number for.
            (Err(_), Ok(theirs)) if from_cel(theirs).is_none() => {}
            _ => prop_assert!(false, "{source}: {ours:?} but {theirs:?}"),
        }
    }

    #[test]
    fn the_two_parsers_agree(source in expression()) {
        use cel::parser::{Parser, PrattParser};
        let [one, other] = [Parser::new().parse(&source), PrattParser::new().parse(&source)]
            .map(|parsed| parsed.map(|expr| without_ids(&expr)).map_err(|_| ()));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn no_text_panics(source in any::<String>()) {
        let _ = Program::compile(&source).map(|program| program.evaluate(&Variables::new()));
    }

    #[test]
    fn no_text_of_tokens_panics(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "a", "b", ".", ".a", "(", ")", "[", "]", "{", "}", ",", ":", "?", "&&", "||", "!", "-",
            "+", "*", "/", "%", "==", "<", "in", "1", "1u", "0x1", "1.5", "1e9", "'a'", "r'\\'",
            "b'\\xff'", "'''", "\"", "'", "\\", "`a b`", "`", "//", "\n", " ", "has", "all(",
            "exists(x,", "map(x,", "matches", "size(", "true", "null", "é", "\u{1f600}", "=", "&",
            "|", "@", "99999999999999999999", "-9223372036854775808", "'\\u00e9'", "'\\777'",
            "'\\ud800'", "'\\U0010ffff'", "type", "timestamp(", "'2024-01-01T00:00:00Z'", "A{",
        ]), 0..30)
    ) {
        let value = sample();
        let variables = Variables::from_iter([("a", &value)]);
        let source = tokens.concat();
        if let Ok(program) = Program::compile(&source) {
            let _ = program.evaluate(&variables);
        }
    }

    #[test]
    fn what_is_plain_cel_here_is_cel_by_its_grammar(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "a", "message.a", "1", "1u", "0x1F", "0X1F", "0x1U", "1.5", ".5", "1E9", "1e-9", "'a'", "R'\\'", "bR\"a\"",
            "'\\X41'", "'\\?'", "'\\u00e9'", "true", "null", "[a]", "{a: 1}", "(a)", "a ? b : c", "size(a)", "a.b()", "a[0]",
            "[a, ]", ".a", "!", "-", "!-", "-!", "!", "-", "+", "*", "&&", "||", "==", "!=", "<", " in ", "(", ")", "[", "]",
            ".", ",", "?", ":", " ", "\t", "\u{b}", "\u{c}", "\r", "\n", "// \u{e9} \u{b}\n", "as", "\u{1c}", "\u{0}", "$",
        ]), 0..8)
    ) {
        let source = tokens.concat();
        if Program::compile(&source).is_ok() {
            prop_assert!(cel::parser::Parser::new().parse(&source).is_ok(), "{source:?}");
        }
    }
}

fn without_ids(expr: &cel::IdedExpr) -> String {
    let text = format!("{expr:?}");
    let mut parts = text.split("id: ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    kept
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    shared::<Program>();
    shared::<proofhouse_expr::Compiler>();
}
