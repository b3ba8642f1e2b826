//! A tree from a JSON value: the same nodes as from text, without text and without places.

use serde_json::Value;

use crate::tree::{Entries, MappingEntry, NodeData, ScalarText, Source, TreeNode};
use crate::yaml::read::{ReadErrorKind, ReadLimits};

/// Why a value has no tree: it is larger than the limits allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// Which limit: [`ReadErrorKind::TooLarge`], `TooDeep` or `TooManyNodes`.
    pub kind: ReadErrorKind,
    /// What is wrong.
    pub message: String,
}

impl Source {
    /// The tree of a value. Strings are texts whatever they look like; every place is the start of an empty text.
    ///
    /// ```
    /// use proofhouse_source::{ReadLimits, YamlScalar, Source};
    /// use serde_json::json;
    ///
    /// let source = Source::from_value(&json!({"a": "yes"}), &ReadLimits::default()).unwrap();
    /// assert_eq!(source.root().get("a").unwrap().scalar(), Some(YamlScalar::Text("yes")));
    /// ```
    ///
    /// # Errors
    ///
    /// Says which limit the value exceeds.
    pub fn from_value(value: &Value, limits: &ReadLimits) -> Result<Self, ValueError> {
        let mut builder = JsonTreeBuilder {
            limits,
            bytes: 0,
            nodes: 0,
        };
        let root = builder.node(value, 0)?;
        Ok(Self::without_text(root))
    }
}

struct JsonTreeBuilder<'l> {
    limits: &'l ReadLimits,
    bytes: usize,
    nodes: usize,
}

impl JsonTreeBuilder<'_> {
    fn node(&mut self, value: &Value, depth: usize) -> Result<TreeNode, ValueError> {
        let data = match value {
            // What YAML reads from these words is what they are.
            Value::Null => self.scalar("null", true)?,
            Value::Bool(value) => self.scalar(if *value { "true" } else { "false" }, true)?,
            Value::Number(number) => self.scalar(&number.to_string(), true)?,
            Value::String(text) => self.scalar(text, false)?,
            Value::Array(items) => {
                self.collection(depth)?;
                let items = items.iter().map(|item| self.node(item, depth + 1));
                NodeData::Seq(items.collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                self.collection(depth)?;
                let mut entries = Vec::with_capacity(map.len());
                for (key, value) in map {
                    let key = node(self.scalar(key, false)?);
                    let value = self.node(value, depth + 1)?;
                    entries.push(MappingEntry { key, value });
                }
                NodeData::Map(Entries::new(entries, ""))
            }
        };
        Ok(node(data))
    }

    fn scalar(&mut self, text: &str, plain: bool) -> Result<NodeData, ValueError> {
        self.count()?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.limits.max_bytes {
            let message = format!(
                "the texts of the value are more than {} bytes long",
                self.limits.max_bytes
            );
            return Err(ValueError {
                kind: ReadErrorKind::TooLarge,
                message,
            });
        }
        let text = ScalarText::Owned(text.into());
        Ok(NodeData::Scalar { text, plain })
    }

    fn collection(&mut self, depth: usize) -> Result<(), ValueError> {
        self.count()?;
        if depth >= self.limits.max_depth {
            let message = format!(
                "the value is nested deeper than {} levels",
                self.limits.max_depth
            );
            return Err(ValueError {
                kind: ReadErrorKind::TooDeep,
                message,
            });
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), ValueError> {
        self.nodes += 1;
        if self.nodes > self.limits.max_nodes {
            let message = format!("the value has more than {} nodes", self.limits.max_nodes);
            return Err(ValueError {
                kind: ReadErrorKind::TooManyNodes,
                message,
            });
        }
        Ok(())
    }
}

fn node(data: NodeData) -> TreeNode {
    TreeNode {
        start: 0,
        end: 0,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn there_and_back(value: &Value) -> Value {
        let source = Source::from_value(value, &ReadLimits::default()).unwrap();
        source.root().to_value(&mut |_| panic!("{value}"))
    }

    #[test]
    fn strings_are_texts_whatever_they_look_like() {
        for text in [
            "",
            "~",
            "null",
            "yes",
            "true",
            "1",
            "0x10",
            "1e3",
            ".inf",
            "2026-01-15",
            "<<",
            "- a",
            "a: b",
            "# x",
            "!!int 1",
            "&a",
            "*a",
            "|",
            "'",
            "\"",
            "{",
            "[",
            "%YAML",
            "---",
            "...",
            "a\nb",
            " a ",
            "\t",
            "\u{0}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\r\n",
            "\u{1f600}",
        ] {
            let value = json!({text: text, "list": [text]});
            assert_eq!(there_and_back(&value), value, "{text:?}");
        }
    }

    #[test]
    fn numbers_stay_what_they_are() {
        let value = json!([
            0,
            -1,
            i64::MIN,
            i64::MAX,
            u64::MAX,
            0.0,
            -0.0,
            1.5,
            1e300,
            5e-324,
            f64::MAX,
            1e21,
            0.1,
            100.0,
            true,
            false,
            null
        ]);
        assert_eq!(there_and_back(&value).to_string(), value.to_string());
    }

    #[test]
    fn limits_hold() {
        let limits = ReadLimits {
            max_bytes: 10,
            max_depth: 2,
            max_nodes: 5,
        };
        let kind = |value: Value| Source::from_value(&value, &limits).map_err(|error| error.kind);
        assert!(kind(json!([["a"]])).is_ok());
        assert_eq!(kind(json!([[[]]])).unwrap_err(), ReadErrorKind::TooDeep);
        assert_eq!(
            kind(json!([1, 2, 3, 4, 5])).unwrap_err(),
            ReadErrorKind::TooManyNodes
        );
        assert_eq!(
            kind(json!("x".repeat(11))).unwrap_err(),
            ReadErrorKind::TooLarge
        );
        let mut deep = json!(1);
        for _ in 0..128 {
            deep = json!([deep]);
        }
        assert_eq!(there_and_back(&deep), deep);
        let deeper = Source::from_value(&json!([deep]), &ReadLimits::default());
        assert_eq!(deeper.unwrap_err().kind, ReadErrorKind::TooDeep);
    }

    #[test]
    fn large_mappings_are_looked_up_like_small_ones() {
        let map: serde_json::Map<String, Value> = (0..100)
            .rev()
            .map(|n| (format!("k{n}"), json!(n)))
            .collect();
        let source = Source::from_value(&Value::Object(map), &ReadLimits::default()).unwrap();
        let found = source.root().get("k42").unwrap();
        assert_eq!(found.raw_text(), Some("42"));
        assert!(source.root().get("k100").is_none());
    }

    proptest! {
        #[test]
        fn every_text_survives(key in "\\PC*", text in any::<String>()) {
            let value = json!({key: text});
            prop_assert_eq!(there_and_back(&value), value);
        }
    }
}
