//! Going from an attack to its control, and from a control to its attack.

use proofhouse_campaign::document::is_twin_file;
use serde_json::{Value, json};
use url::Url;

use crate::cursor::entry;
use crate::server::EditedDocument;
use crate::text::LspPlace;

/// How a control is named after its attack.
const CONTROL: &str = ".twin.yaml";

/// Where what stands at a place is.
pub(crate) fn definition(document: &EditedDocument, uri: &Url, place: LspPlace) -> Value {
    let line = document.buffer.line(place.line).trim_start();
    let line = line
        .strip_prefix("x-proofhouse:")
        .map_or(line, |rest| rest.trim_start_matches([' ', '{']));
    let named = entry(line).filter(|(key, _)| *key == "twin");
    let file = match named {
        Some((_, value)) => {
            let value = value.split(['#', ',', '}']).next().unwrap_or_default();
            value.trim().trim_matches(['"', '\'']).to_owned()
        }
        // In a control, its own id leads back.
        None if document.path.as_deref().is_some_and(is_twin_file) && place.line == 0 => {
            let name = uri.path_segments().and_then(|mut parts| parts.next_back());
            let name = name.and_then(|name| name.strip_suffix(CONTROL));
            name.map(|name| format!("{name}.yaml")).unwrap_or_default()
        }
        None => return Value::Null,
    };
    // Only a file beside the document.
    let is_plain = !file.is_empty() && !file.contains(['/', '\\', ':', '?', '#']) && file != "..";
    let target = is_plain.then(|| uri.join(&file).ok()).flatten();
    match target {
        Some(target) => {
            let top = json!({"line": 0, "character": 0});
            json!({"uri": target.as_str(), "range": {"start": top, "end": top}})
        }
        None => Value::Null,
    }
}
