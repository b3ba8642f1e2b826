//! The text of a description: JSON or YAML, within limits, as a tree.

use proofhouse_source::{ReadLimits, Source};

use crate::error::DescriptionError;
use crate::tree::Tree;

/// How large a description may be. GitHub's has 13 MB.
pub const MAX_BYTES: usize = 32 << 20;

/// How many nodes a description in YAML may have, keys included: they need more room while they are read.
const MAX_YAML_NODES: usize = 2_000_000;

/// Reads JSON or YAML.
///
/// # Errors
///
/// Returns an error when the text is neither, or too large.
pub fn read(bytes: &[u8]) -> Result<Tree, DescriptionError> {
    if bytes.len() > MAX_BYTES {
        return Err(DescriptionError::TooLarge);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        return Tree::from_json(bytes).map_err(DescriptionError::NotJson);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DescriptionError::NotText)?;
    let limits = ReadLimits {
        max_bytes: MAX_BYTES,
        max_nodes: MAX_YAML_NODES,
        ..ReadLimits::default()
    };
    let source = Source::read(text, &limits).map_err(|errors| match errors.first() {
        Some(error) => DescriptionError::Yaml {
            line: error.span.line,
            message: error.message.clone(),
        },
        None => DescriptionError::NotYaml,
    })?;
    Ok(Tree::from_yaml(source.root())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::OpenApiDescription;
    use proptest::prelude::*;

    fn error(bytes: &[u8]) -> String {
        match read(bytes) {
            Err(error) => error.to_string(),
            Ok(_) => "it was read".to_owned(),
        }
    }

    #[test]
    fn json_and_yaml_are_told_apart() {
        for text in [
            "\u{feff}  {\"openapi\": \"3.1.0\"}",
            "openapi: 3.1.0\n",
            "# A comment.\nopenapi: '3.1.0'",
        ] {
            let tree = read(text.as_bytes()).unwrap();
            assert_eq!(
                tree.text_at(tree.root().unwrap(), "openapi"),
                Some("3.1.0"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (bytes, message) in [
            (&b"{\"a\": "[..], "it is not JSON: EOF"),
            (b"{} x", "it is not JSON: trailing"),
            (b"\xff\xfe", "it is not text"),
            (b"", "line 1: the document is empty"),
            (b"a: &x 1\nb: *x\n", "line 1: anchors are not allowed"),
            (b"<html>: [", "line 1: this is not valid YAML"),
        ] {
            assert!(error(bytes).starts_with(message), "{}", error(bytes));
        }
        assert!(error(&vec![b' '; MAX_BYTES + 1]).starts_with("it has more than"));
        let deep = format!("{{\"a\": {}", "[".repeat(100_000));
        assert!(error(deep.as_bytes()).contains("recursion limit"));
        assert!(error(format!("a: {}", "[".repeat(100_000)).as_bytes()).contains("nested deeper"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
            let _ = read(text.as_bytes()).map(|tree| OpenApiDescription::new(tree, None));
        }
    }
}
