//! A page of the dashboard, and the pieces that pages are made of. The markup is written with `maud`, which
//! escapes everything that is put into it.

use axum::response::{Html, IntoResponse, Response};
use http::header;
use maud::{Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::api::Caller;

/// The longest JSON that a page shows of one thing.
const MAX_SHOWN: usize = 20_000;

/// What is written by its number in a piece of a path.
pub(super) const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The name of the field with the token of a form.
pub(super) const FORM_FIELD: &str = "form_token";

/// The pages that every page links to.
const SECTIONS: [(&str, &str); 5] = [
    ("/dashboard", "Tasks"),
    ("/dashboard/errors", "Errors"),
    ("/dashboard/events", "Events"),
    ("/dashboard/manifests", "Manifests"),
    ("/dashboard/campaigns", "Campaigns"),
];

/// JSON for reading, cut where it is long.
pub(super) fn json(value: &Value) -> Markup {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if text.len() > MAX_SHOWN {
        let mut end = MAX_SHOWN;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    html! { pre { (text) } }
}

/// A word with a colour of its own.
pub(super) fn badge(word: &str) -> Markup {
    html! { span class={ "badge " (word) } { (word) } }
}

/// The address of one of the things below a path of the dashboard; its id is somebody else's text.
pub(super) fn href(base: &str, id: &str) -> String {
    format!("{base}/{}", utf8_percent_encode(id, IN_PATH))
}

/// A link to it.
pub(super) fn link(base: &str, id: &str) -> Markup {
    html! { a href=(href(base, id)) { (id) } }
}

/// A table, or a word about there being nothing to put into it.
pub(super) fn table(caption: &str, headings: &[&str], rows: &[Vec<Markup>]) -> Markup {
    if rows.is_empty() {
        return html! { p { (caption) ": none." } };
    }
    html! {
        table {
            caption { (caption) }
            thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (at, cell) in row.iter().enumerate() {
                            // Narrow windows show each cell with its name instead of the row of headings.
                            td data-head=(headings.get(at).copied().unwrap_or_default()) { (cell) }
                        }
                    }
                }
            }
        }
    }
}

/// A link to older things, if there are any.
pub(super) fn older(href: Option<String>) -> Markup {
    html! { @if let Some(href) = href { p { a rel="next" href=(href) { "Older" } } } }
}

/// The field of a form that shows that it comes from a page of ours.
pub(super) fn form_field(token: &str) -> Markup {
    html! { input type="hidden" name=(FORM_FIELD) value=(token); }
}

/// A page that can be answered with.
pub(super) struct Page {
    title: String,
    body: Markup,
    signed_in: bool,
    /// The token of forms, where there is a session to sign out of.
    token: Option<String>,
    /// Where a browser goes on to by itself.
    leads_to: Option<&'static str>,
    /// Where the browser hears that there is something new.
    live: Option<String>,
    /// How often the browser loads it again without a script, in seconds.
    refresh: Option<u32>,
    /// The address of a page that keeps itself up to date.
    here: String,
}

/// What pages with the script may do: run what this server has, and ask this server.
const LIVE_POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; \
     img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

impl Page {
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            body,
            signed_in: true,
            token: None,
            leads_to: None,
            live: None,
            refresh: None,
            here: String::new(),
        }
    }

    /// A page that a browser leaves for another one.
    pub(super) fn leading_to(mut self, path: &'static str) -> Self {
        self.leads_to = Some(path);
        self
    }

    /// The page as it is for whoever looks at it.
    pub(super) fn of(mut self, caller: &Caller) -> Self {
        self.token = caller.form_token();
        self
    }

    /// The same page, which keeps itself up to date: by what it hears from this address, or, without scripts, by being loaded
    /// again every so many seconds if somebody wants that.
    pub(super) fn live(mut self, address: String, here: String, refresh: Option<u32>) -> Self {
        self.live = Some(address);
        self.here = here;
        self.refresh = refresh;
        self
    }

    /// A page for somebody who has not signed in.
    pub(super) fn signed_out(title: impl Into<String>, body: Markup) -> Self {
        Self {
            signed_in: false,
            ..Self::new(title, body)
        }
    }

    /// The text of the page. Control characters can hide what is there, so none gets into it.
    fn into_text(self) -> String {
        let page = html! {
            (PreEscaped("<!doctype html>"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    @if let Some(path) = self.leads_to { meta http-equiv="refresh" content={ "0;url=" (path) }; }
                    @if let Some(seconds) = self.refresh { meta http-equiv="refresh" content=(seconds); }
                    title { (self.title) " · Proofhouse" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/dashboard/style.css";
                    @if self.live.is_some() && self.refresh.is_none() {
                        script src="/dashboard/live.js" defer {}
                    }
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    header {
                        strong { "Proofhouse" }
                        nav aria-label="Dashboard" {
                            @if self.signed_in {
                                @for (href, name) in SECTIONS {
                                    a href=(href) aria-current=[current(&self.title, name)] { (name) }
                                }
                                @if let Some(token) = &self.token {
                                    form method="post" action="/dashboard/sign-out" {
                                        (form_field(token)) button { "Sign out" }
                                    }
                                }
                            }
                        }
                    }
                    main #main data-live=[self.live.as_deref()] {
                        h1 { (self.title) }
                        @if self.live.is_some() { (freshness(&self.here, self.refresh)) }
                        (self.body)
                    }
                }
            }
        };
        let is_hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
        page.into_string().replace(is_hidden, "\u{fffd}")
    }
}

/// Whether a page is the one that a section begins with, or belongs to it: `Tasks` and `Task 7`.
fn current(title: &str, section: &str) -> Option<&'static str> {
    let one = section.strip_suffix('s').unwrap_or(section);
    let belongs = title
        .strip_prefix(one)
        .is_some_and(|rest| rest.starts_with(' '));
    if title == section {
        Some("page")
    } else {
        belongs.then_some("true")
    }
}

/// How fresh a page is, and what there is to do about it.
fn freshness(here: &str, refresh: Option<u32>) -> Markup {
    let next = if here.contains('?') { '&' } else { '?' };
    html! {
        p.freshness {
            @if let Some(seconds) = refresh {
                "Loaded again every " (seconds) " seconds. " a href=(here) { "Stop" }
            } @else {
                span #live role="status" {}
                noscript {
                    "This page does not update by itself. " a href=(here) { "Load again" } " · "
                    a href={ (here) (next) "refresh=15" } { "Every 15 seconds" }
                }
            }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let policy = (header::CONTENT_SECURITY_POLICY, LIVE_POLICY);
        let policy = self.live.is_some().then_some([policy]);
        let answer = Html(self.into_text());
        match policy {
            Some(policy) => (policy, answer).into_response(),
            None => answer.into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let nasty = "<script>alert('x')</script>\u{1b}[31m\"&";
        let rows = [vec![link("/dashboard/tasks", nasty), badge(nasty)]];
        let body = html! {
            p { (nasty) }
            (table(nasty, &[nasty], &rows))
            (older(Some(nasty.to_owned())))
            (json(&Value::from(nasty)))
        };
        let page = Page::new(nasty, body).into_text();
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\u{1b}'), "{page}");
        for attribute in page.split("=\"").skip(1) {
            let value = attribute.split('"').next().unwrap_or_default();
            assert!(!value.contains(['<', '>']), "{value}");
        }
    }

    #[test]
    fn the_section_of_a_page_is_marked() {
        assert_eq!(current("Tasks", "Tasks"), Some("page"));
        assert_eq!(current("Task task-7", "Tasks"), Some("true"));
        assert_eq!(current("Events", "Tasks"), None);
        assert_eq!(current("That did not work", "Tasks"), None);
    }

    #[test]
    fn ids_are_encoded_in_links() {
        assert_eq!(
            link("/dashboard/tasks", "a-b_c.1/ü").into_string(),
            "<a href=\"/dashboard/tasks/a-b_c.1%2F%C3%BC\">a-b_c.1/ü</a>"
        );
    }

    #[test]
    fn long_json_is_cut_between_characters() {
        let long = Value::String("ä".repeat(MAX_SHOWN));
        assert!(json(&long).into_string().len() < MAX_SHOWN + 100);
    }
}
