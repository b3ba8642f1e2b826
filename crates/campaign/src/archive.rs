//! The documents of a campaign, kept beside its result as they were run, so that its runs can be judged again
//! when the files they came from have changed or are gone.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use proofhouse_oatf::serialize;

use crate::document::{CampaignDocument, twin_name};
use crate::run::file_name;
use crate::store::sweep;

/// The directory of the kept documents in that of a campaign.
const DIRECTORY: &str = "documents";

/// How the names of documents begin that are not written to their end.
const UNFINISHED: &str = ".document";

/// Why a document could not be kept.
#[derive(Debug)]
pub(crate) struct NotKept {
    path: PathBuf,
    source: std::io::Error,
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: cannot keep: {}", self.path.display(), self.source)
    }
}

/// Writes a document and its twin, in a directory of their own. Returns the document's path, relative to the
/// campaign's directory.
pub(crate) fn keep(directory: &Path, document: &CampaignDocument) -> Result<String, NotKept> {
    let folder = format!("{DIRECTORY}/{}", file_name(&document.info.id, ""));
    let place = directory.join(&folder);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| NotKept { path, source }
    };
    std::fs::create_dir_all(&place).map_err(failed(&place))?;
    sweep(&place, UNFINISHED);
    let twin = twin_name(&document.attack.document);
    let own = match twin.as_deref() {
        Some("document.yaml") => "attack.yaml",
        _ => "document.yaml",
    };
    let mut files = vec![(own, serialize(&document.attack.document))];
    if let (Some(name), Some(twin)) = (&twin, &document.twin) {
        // It is judged by the indicators of the attack, which would not be valid under its own id.
        let mut twin = twin.document.clone();
        twin.attack.indicators = None;
        twin.attack.correlation = None;
        files.push((name, serialize(&twin)));
    }
    for (name, text) in files {
        let path = place.join(name);
        write(&place, &path, &text).map_err(failed(&path))?;
    }
    Ok(format!("{folder}/{own}"))
}

/// Writes a file in one step.
fn write(directory: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::load;

    fn text(id: &str, ours: &str) -> String {
        format!(
            r#"
oatf: "0.1"
attack:
  id: {id}
  x-proofhouse: {ours}
  execution: {{mode: mcp_server, state: {{tools: [{{name: a, description: "d", inputSchema: {{type: object}}}}]}}}}
  indicators: [{{surface: tools/call, target: arguments, pattern: {{contains: x}}}}]
"#
        )
    }

    #[test]
    fn what_is_kept_is_what_was_run() {
        for twin_file in ["a.twin.yaml", "document.yaml"] {
            let attack = load(&text("K-001", &format!("{{twin: {twin_file}}}"))).unwrap();
            let twin = load(&text("K-002", "{success: {tool: a}}"))
                .unwrap()
                .document;
            let made =
                CampaignDocument::new("k.yaml", attack.document, Some("Hello?"), |_| Ok(twin));
            let made = made.unwrap();
            let directory = tempfile::tempdir().unwrap();
            let kept = directory
                .path()
                .join(keep(directory.path(), &made).unwrap());
            #[expect(clippy::disallowed_methods, reason = "a file of this test")]
            let read = |path: &Path| {
                load(&std::fs::read_to_string(path).unwrap())
                    .unwrap()
                    .document
            };
            let prompt = made.info.prompt.as_deref();
            let again = CampaignDocument::new("elsewhere.yaml", read(&kept), prompt, |name| {
                Ok(read(&kept.with_file_name(name)))
            });
            let again = again.unwrap();
            assert_eq!(again.info.digest, made.info.digest);
            assert_eq!(again.attack.prompts, made.attack.prompts);
            assert!(again.twin.is_some());
        }
    }
}
