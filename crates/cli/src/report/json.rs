//! Findings for programs.

use serde_json::{Value, json};

use super::{Checked, FindingTotals};
use crate::output::{CommandError, StdoutData};

/// The version of this format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

pub(super) fn write(data: &mut StdoutData, checked: &[Checked]) -> Result<(), CommandError> {
    data.json(&document(checked))
}

fn document(checked: &[Checked]) -> Value {
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
