//! The report as one HTML file that needs nothing else: no scripts, no network.
//!
//! The markup is written with `maud`, which escapes everything that is put into it; texts from outside go
//! through [`untrusted`] as well, which shows what is hidden in them. A policy in the file forbids scripts and
//! all that would have to be fetched, should anything get through all the same. Line ends stand in the markup
//! where a person who reads the source of the page wants them.

mod content;
mod coverage;
mod elements;
mod overview;
mod participants;
mod runs;
mod sequence;
mod untrusted;

use maud::{Markup, PreEscaped, html};

use super::text::plural;
use super::view::ReportView;
use elements::facts;
use untrusted::{name, text};

/// How the page looks, in light, dark and on paper.
const STYLE: &str = include_str!("style.css");

/// What the page may do: have its own style, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

pub(super) fn render(view: &ReportView<'_>) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" { "\n"
            head { "\n"
                meta charset="utf-8"; "\n"
                meta http-equiv="Content-Security-Policy" content=(POLICY); "\n"
                meta name="viewport" content="width=device-width, initial-scale=1"; "\n"
                meta name="referrer" content="no-referrer"; "\n"
                meta name="color-scheme" content="light dark"; "\n"
                link rel="icon" href="data:,"; "\n"
                title { "Proofhouse report" } "\n"
                style { "\n" (PreEscaped(STYLE)) } "\n"
            } "\n"
            body { "\n"
                a.skip href="#matrix" { "Skip to the matrix" } "\n"
                (header(view))
                (navigation(view))
                main { "\n"
                    (overview::subjects(view))
                    (overview::matrix(view))
                    (overview::changes(view))
                    (overview::categories(view))
                    (coverage::section(view))
                    (runs::section(view))
                } "\n"
                footer { p {
                    "Made by proofhouse " (text(&view.result.proofhouse)) ". Everything in this file came from \
                     documents, subjects and models: it is shown, never run."
                } } "\n"
            } "\n"
        } "\n"
    };
    page.into_string()
}

fn header(view: &ReportView<'_>) -> Markup {
    let overall = &view.summary.overall;
    let verdict = match (overall.documents_exploited, overall.documents_counted) {
        (0, 0) => "Nothing is proved: no attack reached a subject.".to_owned(),
        (0, all) => format!("None of {} got through.", plural(all, "attack")),
        (some, all) => format!("{some} of {} got through.", plural(all, "attack")),
    };
    let ended = view.result.finished_at.as_deref().unwrap_or("not yet");
    let simulations = view.simulations();
    let regressions = view
        .input
        .comparison
        .map_or(0, |comparison| comparison.regressions());
    html! {
        header { "\n"
            h1 { "Proofhouse report" } "\n"
            p.lead { (verdict) } "\n"
            (facts(&[
                ("Documents", html! { (view.result.documents.len()) }),
                ("Subjects", html! { (view.result.subjects.len()) }),
                ("Runs each", html! { (view.result.repeats) }),
                ("Unproved", html! { (overall.documents_unproved) }),
                ("Flaky", html! { (overall.flaky) }),
                ("Spared runs", html! { (view.result.spared) }),
                ("Seed", html! { (view.result.seed) }),
                ("Began", text(&view.result.started_at)),
                ("Ended", text(ended)),
            ]))
            @if !view.result.complete {
                p.notice { strong { "Incomplete." } " Not every planned run was made." } "\n"
            }
            @if !simulations.is_empty() {
                p.notice {
                    strong { "Simulated:" } " "
                    @for (number, subject) in simulations.iter().enumerate() {
                        @if number > 0 { ", " }
                        (name(subject))
                    }
                    ". Simulations follow simple rules; they are no real agents."
                } "\n"
            }
            @if regressions > 0 {
                p.notice.bad {
                    strong { (plural(regressions as u64, "regression")) } " since the baseline: "
                    a href="#changes" { "see what changed" } "."
                } "\n"
            }
        } "\n"
    }
}

fn navigation(view: &ReportView<'_>) -> Markup {
    let sections = [
        ("subjects", "Subjects", true),
        ("matrix", "Matrix", true),
        ("changes", "Changes", view.input.comparison.is_some()),
        ("categories", "Categories", true),
        ("coverage", "Coverage", true),
        ("runs", "Runs", true),
    ];
    html! {
        nav aria-label="Contents" { ul {
            @for (id, title, is_there) in sections {
                @if is_there { li { a href={ "#" (id) } { (title) } } }
            }
        } } "\n"
    }
}
