//! Loads a description from where the manifest says it is: a URL under the rules of every request, or a file
//! beside the manifest.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

use percent_encoding::percent_decode_str;
use proofhouse_wire::{Bytes, HeaderMap, HeaderValue, Method};
use url::Url;

use crate::actions::response;
use crate::http::{HttpClient, HttpResponse, ToolRequest};
use crate::runtime::{ActionCall, ActionError, ActionFailure, Environment};
use proofhouse_manifest::interpolate::{Root, Sealed, TemplateReference, UrlTemplate};
use proofhouse_manifest::{DescriptionPlace, OpenApi};
use proofhouse_openapi::{
    DescriptionError, DocumentBundle, MAX_BYTES, OpenApiDescription, read, refers_out,
};

/// The directory of the manifest as a URL, so that references between files are followed as those between URLs are. No
/// `..` leads out of it.
const BESIDE_MANIFEST: &str = "manifest:///";

/// Loads the description of a block, and the documents that it refers to.
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
    let home = match (&url, &api.url) {
        (Some(url), _) => Ok(url.clone()),
        (None, Some(DescriptionPlace::File(path))) => beside_manifest(path),
        (None, _) => Err(unusable("the block has no `url`")),
    };
    let home = home?;
    // Reading ten megabytes keeps a thread busy for a while; others must not wait for it.
    let text = bytes.clone();
    let tree = blocking(move || read(&text)).await?;
    if !refers_out(&tree) {
        return blocking(move || OpenApiDescription::new(tree, url)).await;
    }
    drop(tree);
    let start = home.clone();
    let mut bundle = blocking(move || DocumentBundle::new(&bytes, &start)).await?;
    while let Some(place) = bundle.next_wanted() {
        let bytes = match other(client, &place, &home, api, call, environment).await {
            Ok(bytes) => bytes,
            Err(error) => {
                // Operations that need it cannot be called; the others can.
                let reason = error.redacted(&call.secrets).message;
                tracing::warn!(%reason, "a document of an OpenAPI description is missing");
                continue;
            }
        };
        bundle = blocking(move || bundle.add(place, &bytes).map(|()| bundle)).await?;
    }
    blocking(move || OpenApiDescription::new(bundle.finish()?, url)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DescriptionError> + Send + 'static,
) -> Result<T, ActionError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| unusable(&error.to_string())),
        Err(_) => Err(unusable("reading it was given up")),
    }
}

/// A file of the manifest's directory as a URL.
fn beside_manifest(path: &str) -> Result<Url, ActionError> {
    let home = Url::parse(BESIDE_MANIFEST).and_then(|root| root.join(path));
    home.map_err(|_| unusable("its path cannot be that of a file"))
}

/// Another document of a description. Only the server that the description came from gets the headers of the manifest.
async fn other(
    client: &HttpClient,
    place: &Url,
    home: &Url,
    api: &OpenApi,
    call: &ActionCall,
    environment: &Environment,
) -> Result<Bytes, ActionError> {
    let named = |error: ActionError| ActionError {
        message: format!("`$ref` to {}: {}", shown(place), error.message),
        ..error
    };
    match place.scheme() {
        "manifest" if home.scheme() == "manifest" => {
            let path = percent_decode_str(place.path().trim_start_matches('/'));
            let path = path.decode_utf8_lossy();
            read_file(&path, environment.base()).map_err(named)
        }
        "http" | "https" => {
            let own = OpenApi {
                headers: if place.origin() == home.origin() {
                    api.headers.clone()
                } else {
                    Vec::new()
                },
                ..api.clone()
            };
            let fetched =
                fetch_url(client, DocumentPlace::Known(place), &own, call, environment).await;
            fetched.map(|(bytes, _)| bytes).map_err(named)
        }
        _ => Err(named(unusable(
            "only http, https and files beside the manifest can be read",
        ))),
    }
}

/// A URL without its query, which may be secret.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    let text = String::from(url);
    text.strip_prefix(BESIDE_MANIFEST)
        .map(str::to_owned)
        .unwrap_or(text)
}

fn unusable(reason: &str) -> ActionError {
    let message = format!("the OpenAPI description cannot be used: {reason}");
    ActionError::new(ActionFailure::Manifest, message)
}

/// DocumentPlace a document is.
#[derive(Clone, Copy)]
enum DocumentPlace<'w> {
    /// As the manifest says.
    Template(&'w UrlTemplate),
    /// As another document says.
    Known(&'w Url),
}

async fn fetch(
    client: &HttpClient,
    template: &UrlTemplate,
    api: &OpenApi,
    call: &ActionCall,
    environment: &Environment,
) -> Result<(Bytes, Url), ActionError> {
    fetch_url(
        client,
        DocumentPlace::Template(template),
        api,
        call,
        environment,
    )
    .await
}

async fn fetch_url(
    client: &HttpClient,
    place: DocumentPlace<'_>,
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
    let mut used: Vec<&TemplateReference> = in_headers.collect();
    if let DocumentPlace::Template(template) = place {
        used.extend(template.template().references());
    }
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
        let url = match place {
            DocumentPlace::Template(template) => template.render(&scope)?,
            DocumentPlace::Known(url) => Sealed::new(url.clone()),
        };
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
