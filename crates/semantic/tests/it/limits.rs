//! Slow, busy, broken, endless and absent endpoints, and what is never asked or asked only once.

use std::time::{Duration, Instant};

use proofhouse_oatf::SemanticEvaluator;
use proofhouse_semantic::{Config, Method, OpenAiSemantic};
use proofhouse_test_support::loopback::Vacant;

use crate::server::{TestReply, TestServer, angles, judge_of_theft, judged, judgement};
use crate::{ask, config, fails};

#[test]
fn busy_and_broken_endpoints_are_asked_again() {
    for status in [429, 500, 503] {
        let server = TestServer::start(move |request, number| match number {
            0 => TestReply::Plain(status, "Retry-After: 0\r\n", String::new()),
            1 => TestReply::Plain(status, "", String::new()),
            _ => judge_of_theft(request, number),
        });
        let patient = OpenAiSemantic::new(Config {
            retries: 2,
            ..config(&server, Method::Judge)
        })
        .unwrap();
        assert_eq!(ask(&patient, "steal"), Ok(0.9));
        assert_eq!(server.requests().len(), 3);
        assert_eq!(patient.usage().requests, 3);
    }
}

#[test]
fn the_wait_an_endpoint_asks_for_is_kept_or_too_long() {
    let server = TestServer::start(|request, number| match number {
        0 => TestReply::Plain(429, "Retry-After: 1\r\n", String::new()),
        1 => judge_of_theft(request, number),
        _ => TestReply::Plain(429, "Retry-After: 60\r\n", "slow down".to_owned()),
    });
    let evaluator = OpenAiSemantic::new(Config {
        retries: 5,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    let started = Instant::now();
    assert_eq!(ask(&evaluator, "steal"), Ok(0.9));
    assert!(started.elapsed() >= Duration::from_secs(1));
    let started = Instant::now();
    fails(
        ask(&evaluator, "other"),
        "status 429: slow down; it wants to be asked again in 60 s",
    );
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(server.requests().len(), 3, "it was asked before its time");
}

#[test]
fn retries_end() {
    let server =
        TestServer::start(|_, _| TestReply::Plain(500, "Retry-After: 0\r\n", String::new()));
    let evaluator = OpenAiSemantic::new(Config {
        retries: 2,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    fails(ask(&evaluator, "a"), "status 500");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn slow_endpoints_hit_the_time_limit() {
    let server = TestServer::start(|_, _| TestReply::Silence(Duration::from_secs(1)));
    let evaluator = OpenAiSemantic::new(Config {
        timeout: Duration::from_millis(200),
        retries: 3,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    let started = Instant::now();
    fails(ask(&evaluator, "a"), "no answer within 200ms");
    assert!(started.elapsed() < Duration::from_millis(900));
}

#[test]
fn endless_answers_hit_the_size_limit() {
    let server = TestServer::start(|_, _| TestReply::Endless);
    let evaluator = OpenAiSemantic::new(Config {
        max_response_bytes: 64 << 10,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    fails(ask(&evaluator, "a"), "larger than 65536 bytes");
}

#[test]
fn a_closed_port_is_an_error_and_soon_left_alone() {
    let nobody = Vacant::new();
    let url = format!("http://{}/v1", nobody.address());
    let evaluator = OpenAiSemantic::new(Config {
        max_failures: 2,
        ..Config::new(url, "m", Method::Judge)
    })
    .unwrap();
    fails(ask(&evaluator, "a"), "cannot talk to 127.0.0.1:");
    fails(ask(&evaluator, "b"), "cannot talk to 127.0.0.1:");
    fails(ask(&evaluator, "c"), "failed 2 times in a row");
    assert_eq!(evaluator.usage().requests, 2);
}

#[test]
fn a_text_that_breaks_the_judge_does_not_end_it_for_others() {
    let server = TestServer::start(|request, number| match judged(request).as_str() {
        "hostile" => judgement("I will not rate this."),
        "filtered" => TestReply::Plain(400, "", "content policy".to_owned()),
        _ => judge_of_theft(request, number),
    });
    let evaluator = OpenAiSemantic::new(Config {
        max_failures: 2,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    for _ in 0..3 {
        fails(ask(&evaluator, "hostile"), "did not answer with");
        fails(ask(&evaluator, "filtered"), "content policy");
    }
    assert_eq!(ask(&evaluator, "steal"), Ok(0.9));
}

#[test]
fn requests_are_limited() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = OpenAiSemantic::new(Config {
        max_requests: 2,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    assert_eq!(ask(&evaluator, "steal"), Ok(0.9));
    assert_eq!(ask(&evaluator, "give"), Ok(0.1));
    fails(ask(&evaluator, "more"), "limit of 2 requests is reached");
    // What is known is still answered.
    assert_eq!(ask(&evaluator, "steal"), Ok(0.9));
    assert_eq!(server.requests().len(), 2);
    assert_eq!(evaluator.usage().requests, 2);
}

#[test]
fn nothing_is_asked_about_empty_and_oversized_texts() {
    let server = TestServer::start(judge_of_theft);
    let evaluator = OpenAiSemantic::new(Config {
        max_text_bytes: 10,
        ..config(&server, Method::Judge)
    })
    .unwrap();
    assert_eq!(ask(&evaluator, " \n"), Ok(0.0));
    fails(ask(&evaluator, "eleven byte"), "11 bytes, and at most 10");
    assert!(server.requests().is_empty());
}

#[test]
fn the_same_question_is_asked_once() {
    for (method, asked) in [(Method::Judge, 3), (Method::Embeddings, 4)] {
        let server = TestServer::start(move |request, number| match method {
            Method::Judge => judge_of_theft(request, number),
            Method::Embeddings => angles(request, number),
        });
        let evaluator = OpenAiSemantic::new(config(&server, method)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| ask(&evaluator, "at 0").unwrap());
            }
        });
        ask(&evaluator, "at 1").unwrap();
        // Another intent is another question to a judge. An embedding has no intent, but the
        // intent's own is needed.
        evaluator
            .evaluate("at 0", "be rude 9", None, None, None)
            .unwrap();
        assert_eq!(server.requests().len(), asked, "{method:?}");
        let hits = if method == Method::Judge { 3 } else { 4 };
        assert_eq!(evaluator.usage().cache_hits, hits, "{method:?}");
    }
}
