//! Each document against each subject: facts, evidence, and its runs with their sequence diagrams.

use std::fmt::Write;

use proofhouse_detect::Message;

use super::content;
use super::overview::{badge, chips, close_table, open_table, twin_badge};
use super::participants::Lanes;
use super::untrusted::{code, escape, short};
use crate::report::text::{amount, duration, interval, of, plural, words};
use crate::report::view::{Pair, View};
use crate::result::{Evidence, RunRecord};

/// How many attack runs are shown with their messages, all pairs together, and how many of one pair. One
/// twin run of each pair comes on top.
const MOST_FULL_RUNS: usize = 200;
const MOST_FULL_RUNS_OF_PAIR: usize = 5;

/// How many runs of a pair are listed at all.
const MOST_RUNS_OF_PAIR: usize = 100;

/// How many messages of a run are shown, beside those with evidence.
const MOST_MESSAGES: usize = 60;

/// How many bytes all messages take together, so that a browser can still open the file.
const MOST_BYTES: usize = 16 << 20;

/// How many pieces of evidence of an indicator are shown.
const MOST_EVIDENCE: usize = 5;

/// What may still be shown in full.
pub(super) struct Budget {
    runs_of_pair: usize,
    bytes: usize,
}

impl Budget {
    /// Each pair has the same share, and one run at least.
    pub(super) fn new(view: &View<'_>) -> Self {
        let share = MOST_FULL_RUNS / view.summary.cells.len().max(1);
        Self {
            runs_of_pair: share.clamp(1, MOST_FULL_RUNS_OF_PAIR),
            bytes: MOST_BYTES,
        }
    }

    /// Which runs of a pair are shown with their messages, by position: those that tell most.
    fn choose(&self, view: &View<'_>, pair: &Pair<'_>) -> Vec<usize> {
        let recorded = |run: &RunRecord| view.input.traces.contains_key(&run.id);
        let runs = pair
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| recorded(run));
        let (twins, mut attacks): (Vec<_>, Vec<_>) = runs.partition(|(_, run)| run.twin);
        attacks.sort_by_key(|(position, run)| (run.outcome, *position));
        let chosen = attacks.into_iter().take(self.runs_of_pair);
        let chosen = chosen.chain(twins.into_iter().take(1));
        chosen.map(|(position, _)| position).collect()
    }
}

pub(super) fn write(view: &View<'_>, budget: &mut Budget, out: &mut String) {
    out.push_str("<section id=\"runs\"><h2>Runs</h2>\n");
    for pair in view.pairs() {
        write_pair(view, &pair, budget, out);
    }
    out.push_str("</section>\n");
}

fn write_pair(view: &View<'_>, pair: &Pair<'_>, budget: &mut Budget, out: &mut String) {
    let anchor = format!("pair-{}-{}", pair.document_number, pair.subject_number);
    let document = pair.document;
    let _ = write!(
        out,
        "<article id=\"{anchor}\" aria-labelledby=\"{anchor}-title\">\n<h3 id=\"{anchor}-title\"><code>{}</code> {} \
         <span class=\"muted\">against</span> {}</h3>\n<p>{}",
        short(&document.id),
        short(&document.name),
        short(&pair.subject.name),
        badge(pair.cell.outcome),
    );
    chips(pair, out);
    out.push_str("</p>\n");
    if !document.description.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"description\">{}</p>",
            escape(document.description.trim())
        );
    }
    facts(pair, out);
    findings(pair, out);
    let chosen = budget.choose(view, pair);
    for (position, run) in pair.runs.iter().take(MOST_RUNS_OF_PAIR).enumerate() {
        let trace = view.input.traces.get(&run.id).map(Vec::as_slice);
        let has_room = chosen.contains(&position) && budget.bytes > 0;
        let messages = match trace {
            None => Messages::Missing,
            Some(_) if !has_room => Messages::LeftOut,
            Some(messages) => Messages::There(messages),
        };
        let before = out.len();
        write_run(pair, run, &messages, out);
        budget.bytes = budget.bytes.saturating_sub(out.len() - before);
    }
    if pair.runs.len() > MOST_RUNS_OF_PAIR {
        let more = pair.runs.len() - MOST_RUNS_OF_PAIR;
        let _ = writeln!(out, "<p class=\"note\">{more} more runs are left out.</p>");
    }
    out.push_str("<p class=\"back\"><a href=\"#matrix\">Back to the matrix</a></p>\n</article>\n");
}

fn facts(pair: &Pair<'_>, out: &mut String) {
    let cell = pair.cell;
    let mut facts: Vec<(&str, String)> = vec![
        (
            "Attack success",
            format!(
                "{} runs, 95% interval {}",
                of(&cell.attacks.success),
                interval(&cell.attacks.success)
            ),
        ),
        ("Not reached", cell.attacks.not_reached.to_string()),
        ("Without verdict", cell.attacks.errors.to_string()),
    ];
    let twins = &cell.twins;
    facts.push((
        "Twin, without attack",
        if twins.runs == 0 {
            "not run".to_owned()
        } else {
            format!(
                "task done {}, false positives {}",
                of(&twins.task_success),
                of(&twins.false_positives)
            )
        },
    ));
    if let Some(change) = pair.change {
        let before = change.before.as_ref().map_or_else(|| "–".to_owned(), of);
        let p = change
            .p_value
            .map_or_else(String::new, |p| format!(", p = {p:.3}"));
        facts.push((
            "Since the baseline",
            format!("{} (was {before}{p})", change.change.word()),
        ));
    }
    let tokens = cell
        .cost
        .tokens
        .map_or_else(String::new, |tokens| format!(", {} tokens", amount(tokens)));
    facts.push((
        "Cost",
        format!("{}{tokens}", duration(cell.cost.milliseconds)),
    ));
    facts.push(("Document", code(&pair.document.path)));
    if let Some(prompt) = &pair.document.prompt {
        facts.push(("Prompt", escape(prompt)));
    }
    out.push_str("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl>\n");
}

fn findings(pair: &Pair<'_>, out: &mut String) {
    let findings = pair.findings();
    if findings.is_empty() {
        return;
    }
    open_table("Evidence", &["Indicator", "Tier", "Runs", "Evidence"], out);
    for finding in &findings {
        let about = finding
            .info
            .and_then(|info| info.description.as_deref())
            .unwrap_or_default();
        let tier = finding
            .info
            .and_then(|info| info.tier.as_deref())
            .unwrap_or("–");
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}<br><small>{}</small></th><td>{}</td><td>{}</td><td>",
            code(&finding.indicator.id),
            escape(about),
            short(&words(tier)),
            finding.runs,
        );
        if let Some(evidence) = finding.evidence {
            quote(evidence, out);
        }
        out.push_str("</td></tr>\n");
    }
    close_table(out);
}

/// A piece of evidence: where, and what.
fn quote(evidence: &Evidence, out: &mut String) {
    let _ = write!(out, "message {}", evidence.seq);
    if let Some(path) = evidence.path.as_deref().filter(|path| !path.is_empty()) {
        let _ = write!(out, " at {}", code(path));
    }
    if let Some(text) = &evidence.text {
        let _ = write!(out, ": <mark>{}</mark>", escape(text));
    }
}

/// The messages of a run.
enum Messages<'a> {
    There(&'a [Message]),
    Missing,
    LeftOut,
}

fn write_run(pair: &Pair<'_>, run: &RunRecord, messages: &Messages<'_>, out: &mut String) {
    let kind = if run.twin { "Twin run" } else { "Run" };
    let _ = writeln!(
        out,
        "<details class=\"run\"><summary>{kind} {} {} <span class=\"muted\">{}, {}{}</span></summary>",
        run.repeat,
        if run.twin {
            twin_badge(run.outcome)
        } else {
            badge(Some(run.outcome))
        },
        plural(run.messages, "message"),
        duration(run.milliseconds),
        run.tokens
            .map_or_else(String::new, |tokens| format!(", {} tokens", amount(tokens))),
    );
    let exposure = if run.reached {
        format!(
            "reached: {} of {} carriers delivered",
            run.carriers.0, run.carriers.1
        )
    } else {
        format!(
            "not reached: {} of {} carriers delivered",
            run.carriers.0, run.carriers.1
        )
    };
    out.push_str("<dl class=\"facts\">");
    let mut fact = |name: &str, value: &str| {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    fact("Run", &code(&run.id));
    fact("Exposure", &exposure);
    if let Some(tier) = &run.tier {
        fact("Tier", &short(&words(tier)));
    }
    if let Some(done) = run.task_done {
        fact("Task", if done { "done" } else { "not done" });
    }
    if let Some(answer) = &run.answer {
        fact("Answer", &escape(answer));
    }
    if let Some(error) = &run.error {
        fact("Error", &escape(error));
    }
    for warning in run.warnings.iter().take(MOST_EVIDENCE) {
        fact("Warning", &escape(warning));
    }
    if let Some(trace) = &run.trace {
        fact("Recording", &code(trace));
    }
    out.push_str("</dl>\n");
    indicators(run, out);
    match messages {
        Messages::There(messages) => diagram(pair, run, messages, out),
        Messages::Missing => out.push_str("<p class=\"note\">No messages were recorded.</p>\n"),
        Messages::LeftOut => out.push_str(
            "<p class=\"note\">The messages are left out to keep this file small; the recording has them.</p>\n",
        ),
    }
    out.push_str("</details>\n");
}

fn indicators(run: &RunRecord, out: &mut String) {
    if run.indicators.is_empty() {
        return;
    }
    out.push_str("<ul class=\"indicators\">");
    for indicator in &run.indicators {
        let _ = write!(
            out,
            "<li>{} {}",
            code(&indicator.id),
            short(&words(&indicator.result))
        );
        for evidence in indicator.evidence.iter().take(MOST_EVIDENCE) {
            out.push_str("<br>");
            quote(evidence, out);
        }
        out.push_str("</li>");
    }
    out.push_str("</ul>\n");
}

/// The messages in order, each an arrow between two lanes that unfolds to its content.
fn diagram(pair: &Pair<'_>, run: &RunRecord, messages: &[Message], out: &mut String) {
    let lanes = Lanes::new(&pair.subject.name, pair.document, messages);
    let count = lanes.names.len();
    let _ = write!(
        out,
        "<div class=\"sequence\" style=\"--lanes:{count}\">\n<div class=\"lanes\">"
    );
    for (number, name) in lanes.names.iter().enumerate() {
        let role = if number == 0 { "subject" } else { "actor" };
        let _ = write!(
            out,
            "<div class=\"lane {role}\"><b>{}</b><small>{role}</small></div>",
            escape(name)
        );
    }
    out.push_str("</div>\n<ol>\n");
    let mut left_out = 0;
    for (position, message) in messages.iter().enumerate() {
        let evidence: Vec<&Evidence> = run
            .indicators
            .iter()
            .filter(|indicator| indicator.result == "matched")
            .flat_map(|indicator| &indicator.evidence)
            .filter(|evidence| evidence.seq == message.sequence)
            .collect();
        if position >= MOST_MESSAGES && evidence.is_empty() {
            left_out += 1;
            continue;
        }
        step(&lanes, message, &evidence, out);
    }
    out.push_str("</ol>\n</div>\n");
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"note\">{} left out.</p>",
            plural(left_out, "message")
        );
    }
}

fn step(lanes: &Lanes<'_>, message: &Message, evidence: &[&Evidence], out: &mut String) {
    let arrow = lanes.arrow(message);
    let (low, high) = (arrow.from.min(arrow.to), arrow.from.max(arrow.to));
    let way = match (arrow.directed, arrow.from < arrow.to) {
        (false, _) => "unknown",
        (true, true) => "right",
        (true, false) => "left",
    };
    let name = |lane: usize| lanes.names.get(lane).copied().unwrap_or_default();
    let direction = message.direction.map_or("", |direction| direction.as_str());
    let mut details = vec![short(&message.protocol)];
    details.extend((!direction.is_empty()).then(|| direction.to_owned()));
    details.extend(message.phase.as_deref().map(escape));
    let _ = write!(
        out,
        "<li class=\"{}\"><details{}><summary><span class=\"arrow {way}\" style=\"grid-column:{}/{};--span:{}\">\
         <span class=\"label\"><span class=\"number\">{}</span> <b>{}</b> <small>{}</small>\
         {}</span></span><span class=\"unseen\">from {} to {}</span></summary>\n<pre tabindex=\"0\">",
        if evidence.is_empty() {
            "step"
        } else {
            "step found"
        },
        if evidence.is_empty() { "" } else { " open" },
        low + 1,
        high + 2,
        high - low + 1,
        message.sequence,
        short(&message.operation),
        details.join(" · "),
        if evidence.is_empty() {
            ""
        } else {
            " <span class=\"chip bad\">evidence</span>"
        },
        escape(name(arrow.from)),
        escape(name(arrow.to)),
    );
    let marked = content::write(&message.content, evidence, out);
    out.push_str("</pre>");
    if !marked {
        for evidence in evidence {
            out.push_str("<p class=\"note\">Found: ");
            quote(evidence, out);
            out.push_str("</p>");
        }
    }
    out.push_str("</details></li>\n");
}
