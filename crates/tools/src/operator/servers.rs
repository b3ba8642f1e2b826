//! The `mcp` block: what the operator adds to the environment of servers that are commands.

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment};

use super::fields::MCP;
use super::reader::OperatorReader;
use super::variables::is_name;

/// Reads the variables. They are handed on as they are and not treated as secrets: those come from settings.
pub(super) fn read<'s>(
    node: NodeRef<'s>,
    reader: &mut OperatorReader<'s, '_>,
) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let Some(mut fields) = reader.fields(node, &MCP) else {
        return variables;
    };
    fields.read("environment", |reader, environment| {
        if !reader.is_mapping(environment) {
            return None;
        }
        for (name, value) in environment.entries().into_iter().flatten() {
            reader.within(PathSegment::Key(name), |reader| {
                if !is_name(name) {
                    let message = "this is no name of a variable".to_owned();
                    reader.error("OC-005", message, None);
                } else if let Some(value) = reader.text_or_number(value) {
                    if value.contains('\0') {
                        let message = "a variable cannot hold this character".to_owned();
                        reader.error("OC-005", message, None);
                    } else {
                        variables.push((name.to_owned(), value));
                    }
                }
            });
        }
        Some(())
    });
    variables
}
