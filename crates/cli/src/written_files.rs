//! Files that are written with the line by which editors find their schema.

use std::path::Path;

use proofhouse_lsp::formats::{FormatKind, schema_line, schema_place};
use proofhouse_wire::write_files::create;

use crate::output::CommandError;

/// Writes a new file that begins with the line by which editors find its schema, and the schema beside it. Where the schema
/// cannot be written, the file has no such line.
pub(crate) fn create_with_schema(
    path: &Path,
    text: &str,
    kind: FormatKind,
    force: bool,
) -> Result<(), CommandError> {
    let place = schema_place(kind);
    let schema = path.with_file_name(&place);
    let folder = schema.parent().unwrap_or(Path::new(""));
    let written = format!("{:#}\n", kind.schema());
    let may_write = (force || !path.exists()) && std::fs::create_dir_all(folder).is_ok();
    let line = if may_write && create(&schema, &written, true).is_ok() {
        schema_line(&place)
    } else {
        String::new()
    };
    Ok(create(path, &(line + text), force)?)
}
