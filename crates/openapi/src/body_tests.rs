//! Tests of request bodies: one table of what each media type makes of a value.

use super::*;
use crate::tree::Tree;

fn body(version: &str, content: &Value) -> (OpenApiDescription, Option<OperationBody>) {
    let value = json!({
        "openapi": version,
        "paths": {"/": {"post": {"requestBody": {"content": content}}}},
        "components": {"schemas": {"File": {"type": "string", "format": "binary"}}},
    });
    let description = OpenApiDescription::new(Tree::from_value(&value), None).unwrap();
    let body = OperationBody::new(&description, &description.operations[0]).unwrap();
    (description, body)
}

fn written(content: &Value, value: &Value) -> Result<(String, String), BodyError> {
    let (description, body) = body("3.1.0", content);
    let written = body.unwrap().write(&description, value)?;
    let text = String::from_utf8_lossy(&written.bytes).into_owned();
    Ok((written.content_type, text))
}

#[test]
fn every_media_type_has_its_bodies() {
    let object = json!({"type": "object"});
    for (media, schema, value, content_type, expected) in [
        (
            "application/json",
            object.clone(),
            json!({"a": 1}),
            "application/json",
            "{\"a\":1}",
        ),
        (
            "application/json",
            json!({}),
            json!([1, "x", null]),
            "application/json",
            "[1,\"x\",null]",
        ),
        (
            "application/json; charset=utf-8",
            json!({}),
            json!("t"),
            "application/json; charset=utf-8",
            "\"t\"",
        ),
        (
            "application/json",
            json!({}),
            json!(null),
            "application/json",
            "null",
        ),
        (
            "application/vnd.api+json",
            json!({}),
            json!(3),
            "application/vnd.api+json",
            "3",
        ),
        ("*/*", object.clone(), json!({}), "application/json", "{}"),
        (
            "application/x-www-form-urlencoded",
            object.clone(),
            json!({"a b": "c&d", "l": [1, 2], "o": {"k": "v"}, "n": null, "t": true}),
            "application/x-www-form-urlencoded",
            "a%20b=c%26d&l=1&l=2&o=%7B%22k%22%3A%22v%22%7D&t=true",
        ),
        (
            "text/plain",
            json!({"type": "string"}),
            json!("hé"),
            "text/plain",
            "hé",
        ),
        ("text/plain", json!({}), json!(7), "text/plain", "7"),
        (
            "application/xml",
            object,
            json!("<a/>"),
            "application/xml",
            "<a/>",
        ),
        (
            "application/octet-stream",
            json!({}),
            json!("aGk="),
            "application/octet-stream",
            "hi",
        ),
        (
            "image/png",
            json!({"$ref": "#/components/schemas/File"}),
            json!("aG k"),
            "image/png",
            "hi",
        ),
        (
            "image/*",
            json!({}),
            json!("aGk"),
            "application/octet-stream",
            "hi",
        ),
        (
            "application/graphql",
            json!({}),
            json!("{ a }"),
            "application/graphql",
            "{ a }",
        ),
        (
            "application/x-custom",
            json!({"type": "string"}),
            json!("t"),
            "application/x-custom",
            "t",
        ),
    ] {
        let made = written(&json!({media: {"schema": schema}}), &value);
        assert_eq!(
            made,
            Ok((content_type.to_owned(), expected.to_owned())),
            "{media}"
        );
    }
}

#[test]
fn json_is_chosen_first() {
    let (_, chosen) = body(
        "3.0.0",
        &json!({
            "application/octet-stream": {}, "multipart/form-data": {}, "application/x-www-form-urlencoded": {},
            "application/hal+json": {}, "application/json": {},
        }),
    );
    assert_eq!(chosen.unwrap().media, "application/hal+json");
    assert!(
        body("3.0.0", &json!({"no type": {}, "a\r\nb/c": {}}))
            .1
            .is_none()
    );
    assert!(body("3.0.0", &json!([])).1.is_none());
}

#[test]
fn fields_of_forms_have_styles() {
    let content = json!({"application/x-www-form-urlencoded": {"encoding": {
        "deep": {"style": "deepObject", "explode": true}, "pipe": {"style": "pipeDelimited"},
        "row": {"explode": false}, "json": {"contentType": "application/json"},
    }}});
    let value = json!({
        "deep": {"a": {"b": [1]}}, "pipe": [1, 2], "row": [1, 2], "json": [1, 2],
    });
    assert_eq!(
        written(&content, &value).unwrap().1,
        "deep%5Ba%5D%5Bb%5D%5B0%5D=1&pipe=1%7C2&row=1,2&json=%5B1%2C2%5D"
    );
}

#[test]
fn parts_are_framed() {
    let content = json!({"multipart/form-data; boundary=theirs": {
        "schema": {"allOf": [{"properties": {
            "file": {"$ref": "#/components/schemas/File"},
            "files": {"type": "array", "items": {"format": "binary"}},
            "logo": {"type": "string", "contentMediaType": "image/png"},
        }}]},
        "encoding": {"meta": {"contentType": "application/json"}, "bad": {"contentType": "a/b\r\nX: y"}},
    }});
    let value = json!({
        "file": "aGk=", "files": ["YQ==", "Yg=="], "text": "t", "object": {"a": 1}, "meta": [1],
        "logo": "aGk=", "bad\"\r\nname": "n", "bad": "v", "nothing": null,
    });
    let (content_type, text) = written(&content, &value).unwrap();
    let boundary = content_type
        .strip_prefix("multipart/form-data; boundary=")
        .unwrap();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    let part = |disposition: &str, rest: &str| {
        format!("\r\nContent-Disposition: form-data; {disposition}\r\n{rest}\r\n")
    };
    assert_eq!(parts[0], "");
    assert_eq!(
        parts[1],
        part(
            "name=\"file\"; filename=\"file\"",
            "Content-Type: application/octet-stream\r\n\r\nhi"
        )
    );
    assert!(parts[2].ends_with("\r\n\r\na\r\n") && parts[3].ends_with("\r\n\r\nb\r\n"));
    assert_eq!(parts[4], part("name=\"text\"", "\r\nt"));
    assert_eq!(
        parts[5],
        part(
            "name=\"object\"",
            "Content-Type: application/json\r\n\r\n{\"a\":1}"
        )
    );
    assert_eq!(
        parts[6],
        part("name=\"meta\"", "Content-Type: application/json\r\n\r\n[1]")
    );
    assert!(parts[7].contains("filename=\"logo\"") && parts[7].ends_with("\r\n\r\nhi\r\n"));
    assert_eq!(parts[8], part("name=\"bad%22%0D%0Aname\"", "\r\nn"));
    assert_eq!(parts[9], part("name=\"bad\"", "\r\nv"));
    assert_eq!(parts[10], "--\r\n");
}

#[test]
fn what_cannot_be_written_is_told() {
    for (media, value, message) in [
        (
            "application/octet-stream",
            json!("*"),
            "the body: this is not base64",
        ),
        (
            "application/octet-stream",
            json!(7),
            "the body: bytes are given as a text in base64",
        ),
        (
            "application/x-www-form-urlencoded",
            json!([1]),
            "the body must be an object",
        ),
        (
            "multipart/form-data",
            json!("x"),
            "the body must be an object",
        ),
        (
            "application/json",
            json!("x".repeat(MAX_BODY)),
            "the body has more than 10485760 bytes",
        ),
        (
            "multipart/form-data",
            json!({"a": "x".repeat(MAX_BODY)}),
            "the body has more than 10485760 bytes",
        ),
    ] {
        assert_eq!(
            written(&json!({media: {}}), &value)
                .unwrap_err()
                .to_string(),
            message,
            "{media}"
        );
    }
}
