//! The report as one HTML file that needs nothing else: no scripts, no network.
//!
//! Everything from outside goes through [`untrusted`]. A policy in the file forbids scripts and all that
//! would have to be fetched, should anything get through all the same.

mod content;
mod coverage;
mod overview;
mod participants;
mod runs;
mod untrusted;

use std::fmt::Write;

use super::text::plural;
use super::view::View;
use runs::Budget;
use untrusted::{escape, short};

/// How the page looks, in light, dark and on paper.
const STYLE: &str = include_str!("style.css");

/// What the page may do: have its own style, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

pub(super) fn render(view: &View<'_>) -> String {
    let mut out = String::with_capacity(64 << 10);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>Proofhouse report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#matrix\">Skip to the matrix</a>\n"
    );
    header(view, &mut out);
    navigation(view, &mut out);
    out.push_str("<main>\n");
    overview::subjects(view, &mut out);
    overview::matrix(view, &mut out);
    overview::changes(view, &mut out);
    overview::categories(view, &mut out);
    coverage::write(view, &mut out);
    runs::write(view, &mut Budget::new(view), &mut out);
    let _ = write!(
        out,
        "</main>\n<footer><p>Made by proofhouse {}. Everything in this file came from documents, subjects and \
         models: it is shown, never run.</p></footer>\n</body>\n</html>\n",
        escape(&view.result.proofhouse)
    );
    out
}

fn header(view: &View<'_>, out: &mut String) {
    let overall = &view.summary.overall;
    let verdict = match (overall.documents_exploited, overall.documents_counted) {
        (0, 0) => "Nothing is proved: no attack reached a subject.".to_owned(),
        (0, all) => format!("None of {} got through.", plural(all, "attack")),
        (some, all) => format!("{some} of {} got through.", plural(all, "attack")),
    };
    let _ = write!(
        out,
        "<header>\n<h1>Proofhouse report</h1>\n<p class=\"lead\">{verdict}</p>\n<dl class=\"facts\">"
    );
    let ended = view.result.finished_at.as_deref().unwrap_or("not yet");
    for (name, value) in [
        ("Documents", view.result.documents.len().to_string()),
        ("Subjects", view.result.subjects.len().to_string()),
        ("Runs each", view.result.repeats.to_string()),
        ("Unproved", overall.documents_unproved.to_string()),
        ("Flaky", overall.flaky.to_string()),
        ("Spared runs", view.result.spared.to_string()),
        ("Seed", view.result.seed.to_string()),
        ("Began", escape(&view.result.started_at)),
        ("Ended", escape(ended)),
    ] {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl>\n");
    if !view.result.complete {
        out.push_str("<p class=\"notice\"><strong>Incomplete.</strong> Not every planned run was made.</p>\n");
    }
    let simulations = view.simulations();
    if !simulations.is_empty() {
        let names: Vec<String> = simulations.iter().map(|subject| short(subject)).collect();
        let _ = writeln!(
            out,
            "<p class=\"notice\"><strong>Simulated:</strong> {}. Simulations follow simple rules; they are no real \
             agents.</p>",
            names.join(", ")
        );
    }
    if let Some(comparison) = view.input.comparison {
        let regressions = comparison.regressions();
        if regressions > 0 {
            let _ = writeln!(
                out,
                "<p class=\"notice bad\"><strong>{}</strong> since the baseline: \
                 <a href=\"#changes\">see what changed</a>.</p>",
                plural(regressions as u64, "regression")
            );
        }
    }
    out.push_str("</header>\n");
}

fn navigation(view: &View<'_>, out: &mut String) {
    out.push_str("<nav aria-label=\"Contents\"><ul>");
    for (id, name, there) in [
        ("subjects", "Subjects", true),
        ("matrix", "Matrix", true),
        ("changes", "Changes", view.input.comparison.is_some()),
        ("categories", "Categories", true),
        ("coverage", "Coverage", true),
        ("runs", "Runs", true),
    ] {
        if there {
            let _ = write!(out, "<li><a href=\"#{id}\">{name}</a></li>");
        }
    }
    out.push_str("</ul></nav>\n");
}
