//! Findings for programs.

use serde_json::{Value, json};

use super::{Checked, FindingTotals};

/// The version of this format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// The findings of all files as one value.
#[must_use]
pub fn document(checked: &[Checked]) -> Value {
    let FindingTotals {
        files,
        valid,
        errors,
        warnings,
    } = FindingTotals::of(checked);
    let documents: Vec<Value> = checked
        .iter()
        .map(|file| {
            json!({
                "path": file.name,
                "valid": file.is_valid(),
                "diagnostics": file.findings,
            })
        })
        .collect();
    json!({
        "version": VERSION,
        "files": documents,
        "summary": {
            "files": files,
            "valid": valid,
            "invalid": files - valid,
            "errors": errors,
            "warnings": warnings,
        },
    })
}
