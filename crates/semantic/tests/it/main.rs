//! The evaluator against a real HTTP server: good answers, bad ones, none, and too much of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, helpers included")]

mod answers;
mod calibration;
mod generation;
mod limits;
mod proxies;
mod scanner;
mod server;

use std::time::Duration;

use proofhouse_oatf::{EvaluationError, EvaluationErrorKind, SemanticEvaluator};
use proofhouse_semantic::{Config, Method, OpenAiSemantic, Secret};

use server::TestServer;

const KEY: &str = "sk-never-to-be-shown";

fn config(server: &TestServer, method: Method) -> Config {
    Config {
        api_key: Some(Secret::new(KEY)),
        timeout: Duration::from_secs(5),
        retries: 0,
        ..Config::new(server::url(server), "a-model", method)
    }
}

fn judge(server: &TestServer) -> OpenAiSemantic {
    OpenAiSemantic::new(config(server, Method::Judge)).unwrap()
}

fn ask(evaluator: &OpenAiSemantic, text: &str) -> Result<f64, EvaluationError> {
    evaluator.evaluate(text, "steal secrets 0", None, None, None)
}

/// An error that says one thing and not another.
fn fails(result: Result<f64, EvaluationError>, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, EvaluationErrorKind::SemanticError);
    assert!(error.message.contains(words), "{error}");
    // Not even the beginning of it.
    assert!(!error.message.contains(&KEY[..5]), "{error}");
    assert!(error.message.len() < 500, "{error}");
}
