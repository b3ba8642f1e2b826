//! Templates of tools: the first line is a template, the rest a value that a model gives. Nothing
//! panics, nothing is expanded twice, and a value stays in its place, whatever it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofhouse_manifest::interpolate::{
    BodyTemplate, HeaderTemplate, Root, TemplateScope, Template, UrlTemplate,
};
use proofhouse_wire::HeaderName;
use serde_json::json;

const SECRET: &str = "NEVER-SHOWN";

fn scope(value: &str) -> TemplateScope {
    let mut scope = TemplateScope::default();
    scope.set(
        Root::Parameters,
        json!({"x": value, "list": [1, {"k": value}]}),
    );
    scope.set(
        Root::Settings,
        json!({"base": "https://h.test:81/v1", "host": "h.test", "scheme": "http", "none": "", "half": "https://", "s": SECRET}),
    );
    scope
}

fuzz_target!(|text: &str| {
    let (source, value) = text.split_once('\n').unwrap_or((text, "{settings.s}"));
    let template = Template::parse(source);
    let mut last = 0;
    for reference in template.references() {
        let inside = source.get(reference.range.clone());
        assert!(inside.is_some_and(|text| text.starts_with('{') && text.ends_with('}')));
        assert!(last <= reference.range.start, "{source:?} is out of order");
        last = reference.range.end;
    }
    for odd in template.odd() {
        assert!(source.get(odd.clone()).is_some(), "{source:?}: {odd:?}");
    }
    if !source.contains('{') {
        assert!(template.is_literal());
    }
    let scope_of_value = scope(value);
    let text = scope_of_value.text(&template);
    let names_settings = template
        .references()
        .any(|reference| reference.root == Root::Settings);
    if let Ok(text) = &text
        && !names_settings
        && !source.contains(SECRET)
        && !value.contains(SECRET)
    {
        assert!(!text.expose().contains(SECRET), "{source:?} told a secret");
    }
    let header = HeaderTemplate {
        name: HeaderName::from_static("x-test"),
        value: template.clone(),
    };
    if let Ok(header) = header.render(&scope_of_value) {
        assert!(!header.expose().as_bytes().contains(&b'\n'));
    }
    let body = BodyTemplate::new(&json!([source, {"k": source}]));
    if let Ok(body) = body.render(&scope_of_value) {
        let whole = scope_of_value.value(&template).expect("it was rendered");
        assert_eq!(
            *body.expose(),
            json!([whole.expose(), {"k": whole.expose()}])
        );
    }
    url(&template, value);
});

/// Whatever the value is, the request goes to the same place, and the path keeps its shape.
fn url(template: &Template, value: &str) {
    let Ok(url) = UrlTemplate::new(template) else {
        return;
    };
    let (Ok(one), Ok(other)) = (url.render(&scope(value)), url.render(&scope("x"))) else {
        return;
    };
    let (one, other) = (one.expose(), other.expose());
    let told = format!("{:?} with {value:?}: {one} and {other}", template.source());
    assert_eq!(one.scheme(), other.scheme(), "{told}");
    assert_eq!(one.host_str(), other.host_str(), "{told}");
    assert_eq!(one.port(), other.port(), "{told}");
    assert_eq!(one.username(), other.username(), "{told}");
    assert_eq!(one.password(), other.password(), "{told}");
    let segments = |path: &str| path.matches('/').count();
    assert_eq!(segments(one.path()), segments(other.path()), "{told}");
    assert_eq!(one.query().is_some(), other.query().is_some(), "{told}");
    assert_eq!(
        one.fragment().is_some(),
        other.fragment().is_some(),
        "{told}"
    );
}
