//! Models on the loopback address, as a test needs them.

pub(crate) use proofhouse_test_support::http::{SeenRequest, TestReply, TestServer};
use serde_json::{Value, json};

/// Where the models of a server are.
pub(crate) fn url(server: &TestServer) -> String {
    format!("http://{}/v1", server.address())
}

/// An answer of a judge.
pub(crate) fn judgement(content: &str) -> TestReply {
    TestReply::Json(json!({"choices": [{"message": {"role": "assistant", "content": content}}]}))
}

/// The text a judge was asked about, out of its fence.
pub(crate) fn judged(request: &SeenRequest) -> String {
    let content = request.json()["messages"][1]["content"].take();
    let content = content.as_str().unwrap();
    serde_json::from_str(content.lines().nth(1).unwrap()).unwrap()
}

/// A judge that looks for one word.
pub(crate) fn judge_of_theft(request: &SeenRequest, _: usize) -> TestReply {
    let score = if judged(request).contains("steal") {
        0.9
    } else {
        0.1
    };
    judgement(&json!({"score": score}).to_string())
}

/// Embeddings of two numbers: the angle to the intent is the number in the text, in degrees.
pub(crate) fn angles(request: &SeenRequest, _: usize) -> TestReply {
    let asked = request.json();
    let texts = asked["input"].as_array().unwrap().iter();
    let data: Vec<Value> = texts
        .enumerate()
        .map(|(index, text)| {
            let digits = text.as_str().unwrap().split_whitespace().last().unwrap();
            let (sin, cos) = digits.parse::<f64>().unwrap_or(0.0).to_radians().sin_cos();
            json!({"index": index, "embedding": [cos, sin]})
        })
        .collect();
    TestReply::Json(json!({"data": data}))
}
