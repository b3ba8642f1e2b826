//! What the endpoint answers: scores and embeddings, and all that is neither.

use proofhouse_oatf::{EvaluationError, SemanticEvaluator, SemanticIntentClass};
use proofhouse_semantic::{Config, Method, OpenAiSemantic};
use serde_json::json;

use crate::server::{TestReply, TestServer, angles, judge_of_theft, judged, judgement, url};
use crate::{KEY, ask, config, fails, judge};

/// What is asked, answered with a fixed reply.
fn judged_by(
    reply: impl Fn() -> TestReply + Send + Sync + 'static,
) -> Result<f64, EvaluationError> {
    let server = TestServer::start(move |_, _| reply());
    ask(&judge(&server), "a text")
}

#[test]
fn embeddings_are_compared_with_the_intent() {
    let server = TestServer::start(angles);
    let evaluator = OpenAiSemantic::new(config(&server, Method::Embeddings)).unwrap();
    for (text, expected) in [("at 0", 1.0), ("at 60", 0.5), ("at 150", 0.0)] {
        let score = ask(&evaluator, text).unwrap();
        assert!((score - expected).abs() < 1e-6, "{text}: {score}");
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "the intent and three texts");
    assert_eq!(requests[0].path, "/v1/embeddings");
    assert_eq!(requests[0].json()["model"], "a-model");
    assert_eq!(
        requests[0].header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
}

#[test]
fn a_judge_is_asked_for_a_score() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = OpenAiSemantic::new(Config {
        api_key: None,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    assert_eq!(ask(&evaluator, "steal \"it\"\nnow"), Ok(0.9));
    assert_eq!(ask(&evaluator, "be kind"), Ok(0.1));
    let class = Some(SemanticIntentClass::PromptInjection);
    assert_eq!(
        evaluator.evaluate("x", "y", class, Some(0.5), None),
        Ok(0.1)
    );
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(judged(&requests[0]), "steal \"it\"\nnow");
    assert!(
        requests[2].json()["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("prompt injection")
    );
}

#[test]
fn answers_that_are_no_scores_are_errors() {
    for content in ["", "high", "0.9", r#"{"score": NaN}"#, r#"{"score": "1"}"#] {
        fails(judged_by(|| judgement(content)), "did not answer with");
    }
    fails(
        judged_by(|| judgement(r#"{"score": 1.5}"#)),
        "outside 0.0 to 1.0",
    );
    fails(judged_by(|| TestReply::Json(json!({}))), "cannot be used");
    fails(
        judged_by(|| TestReply::Json(json!({"choices": []}))),
        "0 choices",
    );
    let refusal = json!({"choices": [{"message": {"content": null}}]});
    fails(
        judged_by(move || TestReply::Json(refusal.clone())),
        "did not answer with",
    );
    fails(
        judged_by(|| TestReply::Plain(200, "", "<html>".to_owned())),
        "cannot be used",
    );
    // The message of a parse error quotes what it could not use.
    fails(
        judged_by(|| TestReply::Json(json!({"choices": KEY.repeat(100)}))),
        "[key]",
    );
}

#[test]
fn answers_that_are_no_embeddings_are_errors() {
    for (answer, words) in [
        (r#"{"data": []}"#, "0 embeddings for 1 texts"),
        (r#"{"data": [{"index": 0}]}"#, "missing field"),
        (r#"{"data": [{"index": 0, "embedding": []}]}"#, "direction"),
        (
            r#"{"data": [{"index": 0, "embedding": [0, 0]}]}"#,
            "direction",
        ),
        (
            r#"{"data": [{"index": 0, "embedding": [NaN]}]}"#,
            "cannot be used",
        ),
        (
            r#"{"data": [{"index": 0, "embedding": [null]}]}"#,
            "cannot be used",
        ),
        (
            r#"{"data": [{"index": 0, "embedding": [1e999]}]}"#,
            "cannot be used",
        ),
        (
            r#"{"data": [{"index": 7, "embedding": [1]}]}"#,
            "embedding 7",
        ),
    ] {
        let server = TestServer::start(move |_, _| TestReply::Plain(200, "", answer.to_owned()));
        let evaluator = OpenAiSemantic::new(config(&server, Method::Embeddings)).unwrap();
        fails(ask(&evaluator, "a text"), words);
    }
    // The endpoint changes the model under way.
    let server = TestServer::start(|_, number| {
        TestReply::Json(json!({"data": [{"embedding": vec![1; number + 1]}]}))
    });
    let evaluator = OpenAiSemantic::new(config(&server, Method::Embeddings)).unwrap();
    fails(
        ask(&evaluator, "a text"),
        "embeddings of 2 and of 1 numbers",
    );
}

#[test]
fn refusals_are_told_short_and_without_the_key() {
    let body = json!({"error": {"message": format!("no such key: {KEY}\n")}}).to_string();
    fails(
        judged_by(move || TestReply::Plain(401, "", body.clone())),
        "status 401: no such key: [key]",
    );
    fails(
        judged_by(|| TestReply::Plain(400, "", format!("{}{KEY}", "long ".repeat(38)))),
        "status 400: long long",
    );
    fails(
        judged_by(|| TestReply::Plain(404, "", String::new())),
        "status 404",
    );
    fails(
        judged_by(|| TestReply::Plain(418, "", "\u{1b}[31mred".to_owned())),
        "status 418:  [31mred",
    );
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = TestServer::start(judge_of_theft);
    let place: &'static str =
        Box::leak(format!("Location: {}\r\n", url(&elsewhere)).into_boxed_str());
    for status in [301, 302, 307, 308] {
        let result = judged_by(move || TestReply::Plain(status, place, String::new()));
        fails(result, "not followed");
    }
    assert!(
        elsewhere.requests().is_empty(),
        "it got the key or the text"
    );
}
