//! Definitions that a person is asked about: the list, the instructions or the card is held, and judged again with the answer.
//!
//! A yes counts for this session and for what was shown, letter by letter; `guard approve` makes it last. What cannot be shown
//! as a whole is not asked about, but withheld; nor is what the policy blocks for another reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::open_calls::PendingCall;
use super::{GuardAction, GuardSession, OneMessage};
use crate::finding::{FindingCode, GuardDecision, GuardFinding};
use crate::pins::{PinChange, PinKind, diff_lines, visible};

/// How many characters of changes a person is shown in one question.
const MAX_SHOWN: usize = 4000;

/// How many answers are remembered.
const MAX_ANSWERS: usize = 1000;

/// How long a definition may be whose answer is remembered, as JSON.
const MAX_FORM: usize = 64 << 10;

/// What was found about a definition on its way to the client.
#[derive(Debug)]
pub(super) struct ExaminedDefinition {
    /// With what the policy decides.
    pub(super) finding: GuardFinding,
    /// The change, where it is one.
    pub(super) change: Option<PinChange>,
    /// The items of the page that it is about.
    pub(super) on_page: Vec<usize>,
}

impl ExaminedDefinition {
    /// As people are shown it; a new definition as a whole. Nothing where there is more than can be shown.
    fn lines(&self, form: &Value) -> Option<Vec<String>> {
        let Some(change) = &self.change else {
            return Some(vec![visible(&format!("! {}", self.finding.message))]);
        };
        if !change.is_whole() {
            return None;
        }
        let mut lines = diff_lines(change);
        if change.code == FindingCode::PinAdded {
            let text = form
                .as_str()
                .map_or_else(|| form.to_string(), str::to_owned);
            lines.extend(text.lines().map(|line| format!("  + {}", visible(line))));
        }
        Some(lines)
    }
}

/// A definition that a person is asked about.
#[derive(Debug)]
pub(super) struct AskedDefinition {
    key: PinKey,
    /// Its canonical form.
    form: Value,
    lines: Vec<String>,
}

/// What kind of definition it is, and its name.
type PinKey = (&'static str, String);

/// What waits for a person's answer about definitions.
#[derive(Debug)]
pub(super) struct HeldDefinitions {
    /// The request and its answer; nothing where a proxy judges the card again itself.
    waiting: Option<(PendingCall, Value)>,
    asked: Vec<AskedDefinition>,
    /// The answer as it came.
    pub(super) line: String,
}

impl HeldDefinitions {
    pub(super) fn call(&self) -> Option<&PendingCall> {
        self.waiting.as_ref().map(|(call, _)| call)
    }

    pub(super) fn question(&self, server: &str) -> String {
        let mut text = format!(
            "Proofhouse guard: the server `{}` does not say of itself what was approved. Allow it in this session? \
             (`proofhouse guard approve` allows it for good.)",
            visible(server)
        );
        for line in self.asked.iter().flat_map(|asked| &asked.lines) {
            text.push('\n');
            text.push_str(line);
        }
        text
    }
}

/// What people said about definitions in this session.
#[derive(Debug, Default)]
pub(super) struct PinAnswers {
    said: BTreeMap<PinKey, (Value, bool)>,
    /// Whether an answer is judged again: what is open now does not pass.
    is_closed: bool,
}

impl PinAnswers {
    /// What was said about a definition, if somebody was asked about this form of it.
    fn of(&self, noun: &'static str, name: &str, form: &Value) -> Option<bool> {
        let (asked, allowed) = self.said.get(&(noun, name.to_owned()))?;
        (asked == form).then_some(*allowed)
    }

    /// What becomes of definitions about which the policy decides; what nobody answered does not pass.
    pub(super) fn resolve<'d>(
        &self,
        decision: GuardDecision,
        noun: &'static str,
        mut definitions: impl Iterator<Item = (&'d str, &'d Value)>,
    ) -> GuardDecision {
        if decision != GuardDecision::Ask {
            return decision;
        }
        if definitions.all(|(name, form)| self.of(noun, name, form) == Some(true)) {
            GuardDecision::Log
        } else {
            GuardDecision::Block
        }
    }

    /// Whether somebody allowed a definition of this name.
    pub(super) fn has_allowed(&self, noun: &'static str, name: &str) -> bool {
        let answer = self.said.get(&(noun, name.to_owned()));
        answer.is_some_and(|(_, allowed)| *allowed)
    }

    fn keep(&mut self, asked: AskedDefinition, allowed: bool) {
        // What is not remembered does not pass.
        if self.said.len() < MAX_ANSWERS || self.said.contains_key(&asked.key) {
            self.said.insert(asked.key, (asked.form, allowed));
        }
    }
}

impl GuardSession {
    /// What a person must be asked about before definitions can be judged; nothing where it is known what becomes of them.
    /// `definitions` are the names and canonical forms of the items.
    pub(super) fn questions(
        &mut self,
        noun: &'static str,
        examined: &[ExaminedDefinition],
        definitions: &[(String, Value)],
    ) -> Vec<AskedDefinition> {
        let mut asked: BTreeMap<usize, Option<Vec<String>>> = BTreeMap::new();
        // A yes would change nothing about what the policy withholds anyway.
        let blocked = examined
            .iter()
            .filter(|one| one.finding.decision == GuardDecision::Block);
        let blocked: BTreeSet<usize> = blocked
            .flat_map(|one| one.on_page.iter().copied())
            .collect();
        let is_asked = |one: &&ExaminedDefinition| one.finding.decision == GuardDecision::Ask;
        let open = examined.iter().filter(|_| !self.pin_answers.is_closed);
        for one in open.filter(is_asked) {
            for index in one.on_page.iter().filter(|index| !blocked.contains(*index)) {
                let Some((name, form)) = definitions.get(*index) else {
                    continue;
                };
                if self.pin_answers.of(noun, name, form).is_some() {
                    continue;
                }
                let lines = asked.entry(*index).or_insert_with(|| Some(Vec::new()));
                match (one.lines(form), lines) {
                    (Some(more), Some(lines)) => lines.extend(more),
                    (_, lines) => *lines = None,
                }
            }
        }
        let (mut shown, mut questions) = (0, Vec::new());
        for (index, lines) in asked {
            let (name, form) = definitions[index].clone();
            let length = |lines: &Vec<String>| {
                lines
                    .iter()
                    .map(|line| line.chars().count() + 1)
                    .sum::<usize>()
            };
            let fits = lines
                .as_ref()
                .is_some_and(|lines| shown + length(lines) <= MAX_SHOWN)
                && form.to_string().len() <= MAX_FORM;
            let asked = AskedDefinition {
                key: (noun, name),
                lines: lines.unwrap_or_default(),
                form,
            };
            if fits {
                shown += length(&asked.lines);
                questions.push(asked);
            } else {
                let why = "there is more to read than one question can show; run `proofhouse guard approve`";
                self.note_answer(asked, false, why);
            }
        }
        questions
    }

    /// Holds the answer to a request until somebody says whether definitions in it may pass.
    pub(super) fn hold_definitions(
        &mut self,
        call: &PendingCall,
        asked: Vec<AskedDefinition>,
        value: &Value,
    ) -> OneMessage {
        // Calls of them must not pass before.
        for one in &asked {
            if one.key.0 == PinKind::Tool.noun() {
                let withheld = self.withheld.entry(PinKind::Tool).or_default();
                withheld.insert(one.key.1.clone());
            }
        }
        OneMessage::Hold(Box::new(super::HeldAsk::Definitions(HeldDefinitions {
            waiting: Some((call.clone(), value.clone())),
            asked,
            line: String::new(),
        })))
    }

    /// Asks about a card that a proxy judges once somebody answered.
    pub(super) fn ask_about_card(&mut self, asked: Vec<AskedDefinition>) -> Vec<GuardAction> {
        let held = HeldDefinitions {
            waiting: None,
            asked,
            line: String::new(),
        };
        self.hold(super::HeldAsk::Definitions(held), b"")
    }

    /// Somebody said whether definitions may pass, or nobody did: what they came in is judged again.
    pub(super) fn settle_definitions(
        &mut self,
        held: HeldDefinitions,
        allowed: bool,
        why: &str,
    ) -> Vec<GuardAction> {
        for one in held.asked {
            if one.key.0 == PinKind::Tool.noun()
                && let Some(withheld) = self.withheld.get_mut(&PinKind::Tool)
            {
                withheld.remove(&one.key.1);
            }
            self.note_answer(one, allowed, why);
        }
        let Some((call, value)) = held.waiting else {
            return Vec::new();
        };
        self.span = call.span.clone();
        let result = value.get("result").cloned().unwrap_or_default();
        self.pin_answers.is_closed = true;
        let judged = self.judge_result(&call, result, &value);
        self.pin_answers.is_closed = false;
        let text = match judged {
            OneMessage::Pass if held.line.is_empty() => proofhouse_protocol::rpc::to_text(&value),
            OneMessage::Pass => held.line.trim_end_matches(['\r', '\n']).to_owned(),
            OneMessage::Replace(value) | OneMessage::Answer(value) => {
                proofhouse_protocol::rpc::to_text(&value)
            }
            OneMessage::Actions(actions) => return actions,
            // Everything was answered.
            OneMessage::Hold(_) | OneMessage::Drop => return Vec::new(),
        };
        vec![GuardAction::ToClient(text)]
    }

    fn note_answer(&mut self, asked: AskedDefinition, allowed: bool, why: &str) {
        let (code, decision, message) = if allowed {
            (
                FindingCode::AskAllowed,
                GuardDecision::Allow,
                "the user allowed it",
            )
        } else {
            (FindingCode::AskDenied, GuardDecision::Block, why)
        };
        let (noun, name) = &asked.key;
        let item = if name.is_empty() { *noun } else { name };
        self.tell(self.finding(code, decision, message).about(item));
        self.pin_answers.keep(asked, allowed);
    }
}
