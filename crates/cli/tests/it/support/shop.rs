//! A shop whose clerk asks before it refunds: the manifests that tests of `proofhouse serve` share.

/// The till. More of the tool may follow.
pub const TILL: &str = r#"
kind: commonagents.info/v1beta2/tool
namespace: shop
name: till
description: The till.
actions:
  - name: refund
    description: Refund money.
    parameters: {properties: {amount: {type: number, description: how much}}}
    execute: {cel: {expression: "{'paid': input.amount}"}}
"#;

const CLERK: &str = r#"---
kind: commonagents.info/v1beta2/agent
namespace: shop
name: clerk
description: Refunds.
prompt: You refund.
capabilities:
  till:
    before:
      - {match: refund, assert: "review(REVIEWER)", error_message: no.}
"#;

/// The till and its clerk, who asks this reviewer: an expression, such as `'ann@example.com'`.
pub fn shop(reviewer: &str) -> String {
    shop_with("", reviewer)
}

/// The same, with more fields of the till.
pub fn shop_with(till: &str, reviewer: &str) -> String {
    format!("{TILL}{till}{}", CLERK.replace("REVIEWER", reviewer))
}
