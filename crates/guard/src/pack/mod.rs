//! The guard's own threat documents, which watch every session unless the policy turns them off. They only observe.
//!
//! Each lies here with its control (`….twin.yaml`) and labelled cases (`….cases.yaml`), which tests judge.

/// The documents, by name.
pub const DOCUMENTS: &[(&str, &str)] = &[
    ("hidden-definition", include_str!("hidden-definition.yaml")),
    (
        "instructions-in-result",
        include_str!("instructions-in-result.yaml"),
    ),
    (
        "credential-in-arguments",
        include_str!("credential-in-arguments.yaml"),
    ),
    ("private-address", include_str!("private-address.yaml")),
    ("tool-shadowing", include_str!("tool-shadowing.yaml")),
    (
        "result-names-tools",
        include_str!("result-names-tools.yaml"),
    ),
];
