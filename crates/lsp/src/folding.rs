//! Folding: every block can be folded, and the items of phases, actors and indicators by themselves.

use serde_json::{Value, json};

use crate::text::TextBuffer;

/// Ranges that are offered.
const MAX_RANGES: usize = 5_000;

/// What can be folded.
pub(crate) fn folds(buffer: &TextBuffer) -> Value {
    let mut folds: Vec<Value> = Vec::new();
    // Lines that began a block and have not ended: line and column.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut last = 0;
    let mut close = |open: &mut Vec<(usize, usize)>, column: usize, is_item: bool, last: usize| {
        while let Some((line, begin)) = open.last().copied() {
            // The items of a list may stand as far to the left as its key.
            let is_list_of_key = begin == column && is_item && !is_item_line(buffer.line(line));
            if begin < column || is_list_of_key {
                break;
            }
            if last > line && folds.len() < MAX_RANGES {
                folds.push(json!({"startLine": line, "endLine": last, "kind": "region"}));
            }
            open.pop();
        }
    };
    for number in 0..buffer.line_count() {
        let line = buffer.line(number);
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let column = line.len() - content.len();
        close(&mut open, column, is_item_line(line), last);
        if line.starts_with("---") {
            last = number;
            continue;
        }
        open.push((number, column));
        last = number;
    }
    close(&mut open, 0, false, last);
    folds.sort_by_key(|fold| fold["startLine"].as_u64());
    Value::Array(folds)
}

fn is_item_line(line: &str) -> bool {
    let content = line.trim_start_matches(' ');
    content == "-" || content.starts_with("- ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_fold_wherever_their_dashes_stand() {
        for indent in ["", "  "] {
            let text = format!(
                "phases:\n{indent}- name: a\n{indent}  state:\n{indent}    x: 1\n\n{indent}- name: b\n{indent}  mode: m\nend: 1\n"
            );
            let folds = folds(&TextBuffer::new(&text));
            let lines: Vec<(u64, u64)> = folds
                .as_array()
                .unwrap()
                .iter()
                .map(|fold| {
                    (
                        fold["startLine"].as_u64().unwrap(),
                        fold["endLine"].as_u64().unwrap(),
                    )
                })
                .collect();
            assert_eq!(lines, [(0, 6), (1, 3), (2, 3), (5, 6)], "{text}");
        }
    }
}
