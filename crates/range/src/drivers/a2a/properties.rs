//! Properties of what is filled in: nothing that a peer or a document says makes it panic.

use proofhouse_protocol::a2a::{A2aShape, card};
use proofhouse_test_support::a2a_values::anything;
use proptest::prelude::*;
use serde_json::Value;

use super::complete;
use super::hybrid::hybrid;

proptest! {
    #[test]
    fn nothing_makes_it_panic(value in anything()) {
        if let Some((shape, mut value)) = A2aShape::recognise(&value) {
            complete::complete(shape, &mut value, &complete::Ids::of_request(&Value::Null));
        }
        let mut request = value.clone();
        complete::complete_request(&mut request);
        let _ = card::project(&hybrid(&value, "http://127.0.0.1:1"));
    }
}
