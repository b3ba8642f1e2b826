//! The report as one HTML file that needs nothing else: no scripts, no network.
//!
//! The markup is written with `maud`, which escapes everything that is put into it; texts from outside go
//! through [`untrusted`] as well, which shows what is hidden in them. A policy in the file forbids scripts and
//! all that would have to be fetched, should anything get through all the same. Line ends stand in the markup
//! where a person who reads the source of the page wants them.

mod content;
mod coverage;
mod elements;
mod findings;
mod guards;
mod overview;
mod participants;
mod runs;
mod sequence;
mod untrusted;

use maud::{Markup, PreEscaped, html};

use super::text::{clock_time, interval, percent, plural, time_between};
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
                a.skip href="#findings" { "Skip to the findings" } "\n"
                (header(view))
                (navigation(view))
                main { "\n"
                    (findings::section(view))
                    (overview::subjects(view))
                    (guards::section(view))
                    (overview::matrix(view))
                    (overview::changes(view))
                    (overview::categories(view))
                    (coverage::section(view))
                    (runs::section(view))
                } "\n"
                footer { p {
                    "Made by proofhouse " (text(&view.result.proofhouse)) ". Everything in this file came from attacks, \
                     agents and models. It is shown and never run."
                } } "\n"
            } "\n"
        } "\n"
    };
    page.into_string()
}

fn header(view: &ReportView<'_>) -> Markup {
    let overall = &view.summary.overall;
    let is_several = view.result.subjects.len() > 1;
    let verdict = match (overall.documents_exploited, overall.documents_counted) {
        (0, 0) => "No attack gave a conclusive result".to_owned(),
        (0, 1) => "The attack did not get through".to_owned(),
        (0, all) if !is_several => format!("None of {all} attacks got through"),
        (0, _) => "No attack got through".to_owned(),
        (1, 1) => "The attack got through".to_owned(),
        (some, all) if !is_several => format!("{some} of {all} attacks got through"),
        (1, _) => "1 attack got through".to_owned(),
        (some, _) => format!("{some} attacks got through"),
    };
    let unproved = match overall.documents_unproved {
        1 => "1 attack proved nothing, because its runs are inconclusive.".to_owned(),
        many => format!("{many} attacks proved nothing, because their runs are inconclusive."),
    };
    let simulations = view.simulations();
    let regressions = view
        .input
        .comparison
        .map_or(0, |comparison| comparison.regressions());
    html! {
        header { "\n"
            p.eyebrow { "Proofhouse report" } "\n"
            h1 { (verdict) } "\n"
            @if is_several { (by_agent(view)) }
            @if overall.documents_unproved > 0 { p.lead { (unproved) } "\n" }
            (findings::roll_up(view))
            (facts(&facts_of_campaign(view)))
            p.note { (when(view)) } "\n"
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
                    ". Simulations follow simple rules; they are not real agents."
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

fn facts_of_campaign(view: &ReportView<'_>) -> Vec<(&'static str, Markup)> {
    let (result, overall) = (view.result, &view.summary.overall);
    let success = &overall.attacks.success;
    let mut facts = vec![
        (
            "Attack success rate",
            html! { (percent(success)) " (95% interval " (interval(success)) ")" },
        ),
        ("Attacks", html! { (result.documents.len()) }),
        ("Agents tested", html! { (result.subjects.len()) }),
        ("Runs per attack", html! { (result.repeats) }),
        (
            "Inconclusive attacks",
            html! { (overall.documents_unproved) },
        ),
        ("Flaky attacks", html! { (overall.flaky) }),
    ];
    if result.spared > 0 {
        facts.push(("Runs skipped", html! { (result.spared) }));
    }
    facts
}

/// When the campaign ran, and what it takes to run it again.
fn when(view: &ReportView<'_>) -> Markup {
    let result = view.result;
    let took = result.finished_at.as_deref();
    let took = took.and_then(|end| time_between(&result.started_at, end));
    html! {
        "Started " (text(&clock_time(&result.started_at))) " · "
        @match took {
            Some(took) => { "took " (took) }
            None => { "not finished" }
        }
        " · random seed " (result.seed)
    }
}

/// What got through against each of several agents, as far as they fit below a headline.
fn by_agent(view: &ReportView<'_>) -> Markup {
    const MOST: usize = 8;
    let agents = view.result.subjects.iter().zip(&view.summary.subjects);
    let more = view.result.subjects.len().saturating_sub(MOST);
    html! {
        p.lead {
            @for (number, (subject, group)) in agents.take(MOST).enumerate() {
                @if number > 0 { " · " }
                (name(&subject.name)) ": " b { (group.documents_exploited) } " of " (group.documents_counted)
            }
            @if more > 0 { " · " (more) " more" }
        } "\n"
    }
}

fn navigation(view: &ReportView<'_>) -> Markup {
    let sections = [
        ("findings", "Findings", true),
        ("subjects", "Agents", true),
        ("guards", "Guard", !view.summary.guards.is_empty()),
        ("matrix", "All attacks", true),
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
