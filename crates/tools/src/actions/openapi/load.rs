//! Loads a description from where the manifest says it is: a URL under the rules of every request, or a file
//! beside the manifest.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

use proofhouse_source::{ReadLimits, Source};
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method};
use url::Url;

use super::description::OpenApiDescription;
use super::error::DescriptionError;
use super::tree::Tree;
use crate::actions::response;
use crate::http::{HttpClient, HttpResponse, ToolRequest};
use crate::runtime::{ActionCall, ActionError, ActionFailure, Environment};
use proofhouse_manifest::interpolate::{Root, Sealed, TemplateReference, UrlTemplate};
use proofhouse_manifest::{DescriptionPlace, OpenApi};

/// How large a description may be. GitHub's has 13 MB.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// How many nodes a description in YAML may have, keys included: they need more room while they are read.
const MAX_YAML_NODES: usize = 2_000_000;

/// Loads the description of a block.
pub(super) async fn load(
    client: &HttpClient,
    api: &OpenApi,
    call: &ActionCall,
    environment: &Environment,
) -> Result<OpenApiDescription, ActionError> {
    let (bytes, url) = match &api.url {
        Some(DescriptionPlace::Url(template)) => {
            let (bytes, url) = fetch(client, template, api, call, environment).await?;
            (bytes, Some(url))
        }
        Some(DescriptionPlace::File(path)) => (read_file(path, environment.base())?, None),
        None => return Err(unusable("the block has no `url`")),
    };
    // Reading ten megabytes keeps a thread busy for a while; others must not wait for it.
    let reading = tokio::task::spawn_blocking(move || OpenApiDescription::new(read(&bytes)?, url));
    match reading.await {
        Ok(read) => read.map_err(|error| unusable(&error.to_string())),
        Err(_) => Err(unusable("reading it was given up")),
    }
}

fn unusable(reason: &str) -> ActionError {
    let message = format!("the OpenAPI description cannot be used: {reason}");
    ActionError::new(ActionFailure::Manifest, message)
}

async fn fetch(
    client: &HttpClient,
    template: &UrlTemplate,
    api: &OpenApi,
    call: &ActionCall,
    environment: &Environment,
) -> Result<(Bytes, Url), ActionError> {
    // There are no parameters yet, so headers that name one are for the operations only.
    let headers = api.headers.iter().filter(|header| {
        let mut used = header.value.references();
        !used.any(|reference| reference.root == Root::Parameters)
    });
    let headers: Vec<_> = headers.collect();
    let in_headers = headers.iter().flat_map(|header| header.value.references());
    let used: Vec<&TemplateReference> =
        template.template().references().chain(in_headers).collect();
    let uses_token = used.iter().any(|reference| reference.root == Root::Auth);
    let mut secrets = call.secrets.clone();
    let mut fresh = false;
    loop {
        let scope = environment.scope(call, used.iter().copied(), fresh).await?;
        secrets.extend(scope.secrets());
        let mut filled = HeaderMap::new();
        filled.insert("accept", HeaderValue::from_static("*/*"));
        for header in &headers {
            filled.insert(header.name.clone(), header.render(&scope)?.into_exposed());
        }
        let url = template.render(&scope)?;
        scope.check_hosts(url.expose())?;
        let request = ToolRequest {
            method: Method::GET,
            url: url.clone(),
            headers: Sealed::new(filled),
            body: Sealed::new(Bytes::new()),
        };
        let answer = client.send(&request).await;
        let answer = answer.map_err(|error| about_fetching(error.redacted(&secrets)))?;
        if answer.status.as_u16() == 401 && uses_token && !fresh {
            fresh = true;
            continue;
        }
        if !answer.status.is_success() {
            return Err(response::cut_body(refusal(&answer).redacted(&secrets)));
        }
        // What servers are relative to; a query may hold a secret and is not needed for it.
        let mut url = url.into_exposed();
        url.set_query(None);
        return Ok((answer.body, url));
    }
}

fn about_fetching(mut error: ActionError) -> ActionError {
    error.message = format!("fetching the OpenAPI description: {}", error.message);
    if error.failure == ActionFailure::TooLarge {
        error.failure = ActionFailure::Manifest;
    }
    error
}

/// A description that is not there is a wrong manifest; a server in trouble may get well.
fn refusal(answer: &HttpResponse) -> ActionError {
    let mut error = match response::result(answer, None) {
        Err(error) => error,
        Ok(_) => ActionError::new(ActionFailure::Response, "no description came"),
    };
    let may_get_well =
        answer.status.is_server_error() || matches!(answer.status.as_u16(), 408 | 429);
    if !may_get_well {
        error.failure = ActionFailure::Manifest;
    }
    about_fetching(error)
}

/// Reads a file below the manifest's directory.
fn read_file(path: &str, base: Option<&Path>) -> Result<Bytes, ActionError> {
    let Some(base) = base else {
        return Err(unusable(
            "it is a file, and it is not known where the manifest is",
        ));
    };
    let relative = Path::new(path);
    let stays = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays {
        return Err(unusable("its file must be below the manifest's directory"));
    }
    let missing = |error: std::io::Error| unusable(&format!("`{path}`: {error}"));
    // A link must not lead out either.
    let home = base.canonicalize().map_err(missing)?;
    let found = home.join(relative).canonicalize().map_err(missing)?;
    if !found.starts_with(&home) {
        return Err(unusable("its file must be below the manifest's directory"));
    }
    let file = File::open(&found).map_err(missing)?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err(unusable(&format!("`{path}` is not a file")));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    #[expect(clippy::disallowed_methods, reason = "capped by `take`")]
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(missing)?;
    Ok(bytes.into())
}

/// Reads JSON or YAML.
pub(super) fn read(bytes: &[u8]) -> Result<Tree, DescriptionError> {
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
