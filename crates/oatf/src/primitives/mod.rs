//! The execution primitives of section 5, shared by the entry points, evaluation and tools.

mod condition;
mod duration;
mod extractor;
mod json;
mod path;
mod path_cost;
mod predicate;
mod response;
mod state;
mod template;
mod trigger;

pub use condition::{coerce_to_text, deep_equal, evaluate_condition, evaluate_condition_within};
pub(crate) use condition::{unusable, usable};
pub use duration::parse_duration;
pub use extractor::{evaluate_extractor, evaluate_extractor_within};
pub(crate) use json::{MAX_VALUE_DEPTH, nests_deeper, shallow_copy};
pub use path::{
    MAX_TRAVERSAL_DEPTH, is_simple_path, is_wildcard_path, resolve_simple_path,
    resolve_wildcard_path,
};
pub(crate) use path::{any_at_wildcard_path, is_within_depth, within_depth};
pub use predicate::{evaluate_predicate, evaluate_predicate_within};
pub use response::{select_response, select_response_within};
pub use state::{compute_effective_state, extract_protocol};
pub(crate) use template::{TemplatePart, template_parts};
pub use template::{interpolate_template, interpolate_value};
pub use trigger::{evaluate_trigger, evaluate_trigger_within};
