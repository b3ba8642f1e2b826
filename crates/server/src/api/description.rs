//! The OpenAPI description: the routes of the API, and the text about them that it serves.

use std::sync::Arc;

use axum::Router;
use serde_json::{Value, json};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{
    Api, audit, campaign_reports, campaign_stream, campaigns, events, health, listening, manifests,
    stream, tasks,
};

/// The text that describes the API.
#[must_use]
pub fn description() -> String {
    let (_, description) = routes();
    format!("{description:#}")
}

/// The routes, and what describes them.
pub(super) fn routes() -> (Router<Arc<Api>>, Value) {
    let (router, description) = described().split_for_parts();
    let mut description = serde_json::to_value(description).unwrap_or_default();
    name_problems(&mut description);
    never_null(&mut description);
    everywhere(&mut description);
    (router, description)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Proofhouse",
        description = "Runs agents as a service. Every path but health, readiness and this description needs a key: \
            `Authorization: Bearer KEY`."
    ),
    tags(
        (name = "tasks", description = "Conversations with agents"),
        (name = "events", description = "What came from outside, and what became of it"),
        (name = "manifests", description = "What is loaded, and what is wrong with it"),
        (name = "campaigns", description = "Attacks on agents, planned in the store and made by workers"),
        (name = "server", description = "The server itself")
    )
)]
struct ApiDescription;

fn described() -> OpenApiRouter<Arc<Api>> {
    let mut description = ApiDescription::openapi();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("key", SecurityScheme::Http(scheme));
    OpenApiRouter::with_openapi(description)
        .routes(routes!(tasks::create, tasks::list))
        .routes(routes!(tasks::show, tasks::delete))
        .routes(routes!(tasks::turns))
        .routes(routes!(tasks::say))
        .routes(routes!(tasks::decide))
        .routes(routes!(tasks::interrupt))
        .routes(routes!(tasks::cancel))
        .routes(routes!(stream::stream))
        .routes(routes!(listening::show))
        .routes(routes!(events::list))
        .routes(routes!(events::show))
        .routes(routes!(events::replay))
        .routes(routes!(manifests::list))
        .routes(routes!(manifests::starts))
        .routes(routes!(campaigns::list, campaigns::start))
        .routes(routes!(campaigns::show))
        .routes(routes!(campaigns::cancel))
        .routes(routes!(campaigns::trend))
        .routes(routes!(campaign_stream::stream))
        .routes(routes!(campaign_reports::report))
        .routes(routes!(campaign_reports::result))
        .routes(routes!(campaign_reports::comparison))
        .routes(routes!(audit::list))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

/// Problems have a type of their own, which is said here once instead of at every answer of every route.
fn name_problems(description: &mut Value) {
    let paths = description["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten());
    for (_, operation) in operations {
        let answers = operation
            .get_mut("responses")
            .and_then(Value::as_object_mut);
        for (status, answer) in answers.into_iter().flatten() {
            let is_problem = status.starts_with(['4', '5']);
            let content = answer.get_mut("content").and_then(Value::as_object_mut);
            if let Some(content) = content.filter(|_| is_problem)
                && let Some(schema) = content.remove("application/json")
            {
                content.insert("application/problem+json".to_owned(), schema);
            }
        }
    }
}

/// A parameter that may be left out is described like a field that may be null, which a URL and a header cannot say.
fn never_null(description: &mut Value) {
    let paths = description["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten());
    for (_, operation) in operations {
        let parameters = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            if let Some(kinds) = parameter["schema"]["type"].as_array_mut() {
                kinds.retain(|kind| kind != "null");
            }
        }
    }
}

/// What can go wrong with every request, before anybody looks at what it asks for: a head that is malformed or too large,
/// a body that does not come.
fn everywhere(description: &mut Value) {
    let problem =
        json!({"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}});
    let said = |text: &str| json!({"description": text, "content": problem});
    let malformed = said("The request is not as it must be");
    let slow = said("The body did not arrive in time");
    let large = json!({"description": "The headers are too large; the answer has no body"});
    let paths = description["paths"].as_object_mut().into_iter().flatten();
    let operations = paths.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten());
    for (_, operation) in operations {
        let has_body = operation.get("requestBody").is_some();
        let answers = operation
            .get_mut("responses")
            .and_then(Value::as_object_mut);
        if let Some(answers) = answers {
            answers.entry("400").or_insert_with(|| malformed.clone());
            answers.entry("431").or_insert_with(|| large.clone());
            if has_body {
                answers.entry("408").or_insert_with(|| slow.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_says_what_can_go_wrong() {
        let (_, description) = routes();
        let paths = description["paths"].as_object().unwrap();
        assert!(paths.len() >= 14, "{}", paths.len());
        for (path, operations) in paths {
            for (method, operation) in operations.as_object().unwrap() {
                for status in ["400", "431"] {
                    let answer = &operation["responses"][status];
                    assert!(answer.is_object(), "{method} {path} {status}");
                }
                if ["/v1/health", "/v1/ready"].contains(&path.as_str()) {
                    continue;
                }
                for status in ["401", "403", "429", "503"] {
                    let answer = &operation["responses"][status]["content"];
                    let problem = &answer["application/problem+json"]["schema"];
                    assert!(problem.is_object(), "{method} {path} {status}: {answer}");
                }
            }
        }
    }
}
