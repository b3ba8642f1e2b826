//! Tests of requests: where values end up, and what no value can do.

use super::*;
use crate::arbitrary;
use crate::tree::Tree;
use proptest::prelude::*;
use serde_json::json;

fn made_from(
    path: &str,
    parameters: &Value,
    body: &Value,
    given: &Value,
) -> Result<OperationRequest, String> {
    let value = json!({"openapi": "3.1.0", "paths": {path: {"post": {
        "parameters": parameters, "requestBody": body,
        "responses": {"200": {"content": {"application/hal+json": {}}}},
    }}}});
    let description = OpenApiDescription::new(Tree::from_value(&value), None).unwrap();
    let operation = &description.operations[0];
    let input = OperationInput::new(&description, operation).unwrap();
    let header = HeaderValue::from_static("from the manifest");
    let around = Surroundings {
        base: Url::parse("https://h.test/v1/?x=y#z").unwrap(),
        credentials: vec![
            (
                security::CredentialLocation::Query("key".to_owned()),
                Sealed::new("s&cret".to_owned()),
            ),
            (
                security::CredentialLocation::Cookie("sid".to_owned()),
                Sealed::new("a;b".to_owned()),
            ),
            (
                security::CredentialLocation::Header(HeaderName::from_static("x-key")),
                Sealed::new("K".to_owned()),
            ),
        ],
        headers: vec![(HeaderName::from_static("x-both"), Sealed::new(header))],
    };
    let given = given.as_object().unwrap();
    let request = request(&description, operation, &input, given, &around);
    request.map_err(|error| error.to_string())
}

fn url_of(path: &str, parameters: &Value, given: &Value) -> Result<String, String> {
    let request = made_from(path, parameters, &json!(null), given)?;
    Ok(request.url.expose().to_string())
}

#[test]
fn values_go_where_they_belong() {
    let parameters = json!([
        {"name": "id", "in": "path"}, {"name": "tags", "in": "path", "style": "matrix", "explode": true},
        {"name": "q", "in": "query"}, {"name": "f", "in": "query", "style": "deepObject"},
        {"name": "j", "in": "query", "content": {"application/json": {}}},
        {"name": "X-List", "in": "header"}, {"name": "X-Both", "in": "header"},
        {"name": "c", "in": "cookie"}, {"name": "absent", "in": "query"}, {"name": "none", "in": "query"},
    ]);
    let body = json!({"content": {"application/json": {}}});
    let given = json!({
        "id": "a/b", "tags": ["x", "y"], "q": ["1", "2"], "f": {"a": 1}, "j": {"k": [1]},
        "X-List": [1, 2], "X-Both": "from the model", "c": "v; w", "none": null, "body": [1],
    });
    let request = made_from("/a/{id}{tags}?fixed=1#part", &parameters, &body, &given).unwrap();
    assert_eq!(
        request.url.expose().as_str(),
        "https://h.test/v1/a/a%2Fb;tags=x;tags=y?fixed=1&q=1&q=2&f%5Ba%5D=1&j=%7B%22k%22%3A%5B1%5D%7D&key=s%26cret"
    );
    let headers = request.headers.expose();
    for (name, value) in [
        ("accept", "application/hal+json, */*;q=0.1"),
        ("x-list", "1,2"),
        ("x-both", "from the manifest"),
        ("cookie", "c=v%3B%20w; sid=a%3Bb"),
        ("x-key", "K"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert_eq!(&request.body.expose()[..], b"[1]");
    assert_eq!(request.method, Method::POST);
    let shown = format!("{request:?}");
    assert!(
        !shown.contains("cret") && !shown.contains("a%3Bb"),
        "{shown}"
    );
}

#[test]
fn no_value_leaves_its_place() {
    let in_path = json!([{"name": "id", "in": "path"}]);
    for value in [
        json!(".."),
        json!("."),
        json!(""),
        json!("../x"),
        json!("a/../b"),
        json!("%2e%2e"),
        json!("a\\..\\b"),
        json!("a\r\nb"),
        json!("\0"),
        json!(["a", ".."]),
        json!({"..": 1}),
        json!(null),
        json!([]),
    ] {
        let made = url_of("/a/{id}/b", &in_path, &json!({"id": value}));
        assert!(made.unwrap_err().starts_with("`id` is refused"), "{value}");
    }
    assert!(url_of("/a/{id}.{id}", &in_path, &json!({"id": ""})).is_err());
    assert!(url_of("/.{id}", &in_path, &json!({"id": "."})).is_err());
    let label = json!([{"name": "id", "in": "path", "style": "label"}]);
    assert!(url_of("/{id}", &label, &json!({"id": "."})).is_err());
    for place in ["query", "header", "cookie"] {
        let made = url_of(
            "/",
            &json!([{"name": "v", "in": place}]),
            &json!({"v": "a\r\nX: y"}),
        );
        assert!(made.unwrap_err().contains("line break"), "{place}");
    }
    let made = url_of(
        "/",
        &json!([{"name": "a b", "in": "header"}]),
        &json!({"a_b": "v"}),
    );
    assert!(made.unwrap_err().contains("its name cannot be"));
    let long = json!({"v": "x".repeat(100_000)});
    let made = url_of("/", &json!([{"name": "v", "in": "query"}]), &long);
    assert_eq!(
        made.unwrap_err(),
        "the URL would have more than 65536 bytes"
    );
}

proptest! {
    #[test]
    fn the_host_and_the_path_are_the_descriptions(
        id in "\\PC{1,12}", q in "\\PC{0,12}", style in 0..3_usize, reserved in any::<bool>(),
    ) {
        let style = ["simple", "label", "matrix"][style];
        let parameters = json!([
            {"name": "id", "in": "path", "style": style},
            {"name": "q", "in": "query", "allowReserved": reserved},
        ]);
        if let Ok(url) = url_of("/a/{id}/b", &parameters, &json!({"id": id, "q": q})) {
            let url = Url::parse(&url).unwrap();
            prop_assert_eq!(url.host_str(), Some("h.test"));
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4);
            prop_assert_eq!((segments[0], segments[1], segments[3]), ("v1", "a", "b"));
            prop_assert_eq!(url.fragment(), None);
            let names: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
            prop_assert_eq!(names, ["q", "key"]);
        }
    }

    #[test]
    fn nothing_that_is_described_or_given_makes_a_panic(
        parameters in prop::collection::vec(arbitrary::parameter(), 0..5),
        media in arbitrary::json(),
        given in arbitrary::json(),
        kind in 0..6_usize,
    ) {
        let media_type = [
            "application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "*/*",
            "image/png",
        ][kind];
        let body = json!({"content": {media_type: {"schema": media, "encoding": media}}});
        let given = json!({"a": given, "b": given, "name": given, "$ref": given, "body": given});
        if let Ok(request) = made_from("/x/{a}/{b}", &json!(parameters), &body, &given) {
            prop_assert_eq!(request.url.expose().host_str(), Some("h.test"));
            prop_assert!(request.url.expose().path().starts_with("/v1/x/"));
        }
    }
}
