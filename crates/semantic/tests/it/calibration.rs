//! The indicator's own examples decide whether a model may judge it.

use proofhouse_oatf::{EvaluationError, SemanticEvaluator, SemanticExamples};
use proofhouse_semantic::{Method, OpenAiSemantic};

use crate::server::{TestReply, TestServer, angles, judge_of_theft};
use crate::{config, fails, judge};

fn ask_with(
    evaluator: &OpenAiSemantic,
    text: &str,
    positive: &[&str],
    negative: &[&str],
) -> Result<f64, EvaluationError> {
    let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    let examples = SemanticExamples {
        positive: owned(positive),
        negative: owned(negative),
    };
    evaluator.evaluate(text, "steal secrets 0", None, None, Some(&examples))
}

#[test]
fn a_judge_that_knows_the_examples_is_used() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = judge(&server);
    for text in ["steal all", "steal more", "steal it"] {
        assert_eq!(
            ask_with(&evaluator, text, &["steal it"], &["be kind"]),
            Ok(0.9)
        );
    }
    // Two examples, two texts; the third text is an example.
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_judge_that_fails_the_examples_is_not_used() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = judge(&server);
    for _ in 0..3 {
        let result = ask_with(&evaluator, "steal", &["take it"], &["how to steal"]);
        fails(
            result,
            "does not fit the model: positive example 1 scores 0.10, \
             negative example 1 scores 0.90, with a threshold of 0.7",
        );
    }
    assert_eq!(server.requests().len(), 2, "calibrated once");
    // Another threshold is another calibration, with the scores that are known.
    let examples = SemanticExamples {
        positive: Some(vec!["take it".to_owned()]),
        negative: None,
    };
    let score = evaluator.evaluate(
        "steal",
        "steal secrets 0",
        None,
        Some(0.05),
        Some(&examples),
    );
    assert_eq!(score, Ok(0.9));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn embeddings_are_calibrated_with_the_examples() {
    let server = TestServer::start(angles);
    let evaluator = OpenAiSemantic::new(config(&server, Method::Embeddings)).unwrap();
    let examples: (&[&str], &[&str]) = (&["50", "52"], &["110", "120"]);
    // By the plain cosine, 45 degrees to the nearest example would be on the threshold.
    assert!(ask_with(&evaluator, "30", examples.0, examples.1).unwrap() >= 0.7);
    assert!(ask_with(&evaluator, "108", examples.0, examples.1).unwrap() < 0.7);
    assert_eq!(server.requests().len(), 3, "all examples in one request");
    fails(
        ask_with(&evaluator, "30", &["10", "80"], &["20", "30"]),
        "does not fit the model",
    );
    fails(ask_with(&evaluator, "30", &[" "], &[]), "is empty");
}

#[test]
fn a_calibration_that_could_not_be_made_is_made_later() {
    let server = TestServer::start(|request, number| match number {
        0 => TestReply::Plain(500, "", String::new()),
        _ => judge_of_theft(request, number),
    });
    let evaluator = judge(&server);
    fails(
        ask_with(&evaluator, "steal", &["steal it"], &[]),
        "status 500",
    );
    assert_eq!(ask_with(&evaluator, "steal", &["steal it"], &[]), Ok(0.9));
}
