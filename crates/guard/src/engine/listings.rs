//! Definitions on their way to the client: compared with the lock, looked at, recorded, and withheld where they must be.

use std::collections::BTreeSet;

use proofhouse_source::printable_line;
use serde_json::{Value, json};

use super::mentions::texts_of_definition;
use super::open_calls::PendingCall;
use super::pin_asks::ExaminedDefinition;
use super::results::{unjudged, with_id};
use super::{GuardSession, OneMessage};
use crate::finding::{FindingCode, GuardDecision, GuardFinding};
use crate::pins::{
    Lock, LockFile, LockFileError, PinChange, PinKind, ServerPins, Suspicion, by_name, canonical,
    changes_of_item, changes_of_text, hidden_text, inspect,
};
use crate::share::SharedFact;
use crate::taint::{TaintLabel, texts_below};

/// What the origin of a value says that stands in the definition of a tool.
pub(super) const DEFINITION: &str = "definition of";

/// What instructions are called.
const INSTRUCTIONS: &str = "instructions";

/// How many tools are known whose definitions are followed.
const MAX_DESCRIBED: usize = 10_000;

/// How many definitions of one kind a server may have.
const MAX_ITEMS: usize = 10_000;

/// How many bytes of texts are kept that may name tools that are listed later.
const MAX_UNAPPROVED_BYTES: usize = 256 << 10;

/// How many lists may be under way.
const MAX_LISTINGS: usize = 16;

/// What was listed of a kind so far, page by page.
#[derive(Debug, Clone, Default)]
pub(super) struct PinnedListing {
    items: Vec<Value>,
    has_changes: bool,
    /// Names that do not pass.
    withheld: BTreeSet<String>,
    /// Whether its beginning is not known.
    is_partial: bool,
}

/// A list whose next page is expected.
#[derive(Debug)]
struct ExpectedPage {
    kind: PinKind,
    /// What it is asked for with.
    cursor: String,
    /// How many clients may ask for it: over HTTP, several may share a session.
    clients: usize,
    listing: PinnedListing,
}

/// The lists that go on, from the oldest.
#[derive(Debug, Default)]
pub(super) struct ExpectedPages(Vec<ExpectedPage>);

impl ExpectedPages {
    /// What was listed before the page that a request asks for.
    fn before(&mut self, kind: PinKind, params: &Value) -> PinnedListing {
        let Some(cursor) = params.get("cursor").filter(|cursor| !cursor.is_null()) else {
            return PinnedListing::default();
        };
        let cursor = cursor.to_string();
        let at = (self.0.iter()).position(|page| page.kind == kind && page.cursor == cursor);
        let Some(at) = at else {
            return PinnedListing {
                is_partial: true,
                ..PinnedListing::default()
            };
        };
        if self.0[at].clients > 1 {
            self.0[at].clients -= 1;
            return self.0[at].listing.clone();
        }
        self.0.remove(at).listing
    }

    /// The items that were listed before the page that a request asks for; it is still expected.
    fn items_before(&self, kind: PinKind, params: &Value) -> &[Value] {
        let cursor = params.get("cursor").filter(|cursor| !cursor.is_null());
        let cursor = cursor.map(Value::to_string);
        let mut pages = self.0.iter();
        let page = pages.find(|page| page.kind == kind && Some(&page.cursor) == cursor.as_ref());
        page.map_or(&[], |page| &page.listing.items)
    }

    /// A list goes on at a cursor.
    fn expect(&mut self, kind: PinKind, cursor: &Value, listing: PinnedListing) {
        let cursor = cursor.to_string();
        let same = self.0.iter_mut().find(|page| {
            let is_same = page.kind == kind && page.cursor == cursor;
            is_same && page.listing.items == listing.items
        });
        if let Some(same) = same {
            same.clients = (same.clients + 1).min(MAX_LISTINGS);
            same.listing = listing;
            return;
        }
        self.0
            .retain(|page| page.kind != kind || page.cursor != cursor);
        self.0.push(ExpectedPage {
            kind,
            cursor,
            clients: 1,
            listing,
        });
        if self.0.len() > MAX_LISTINGS {
            self.0.remove(0);
        }
    }

    /// How much was listed of a kind whose list goes on.
    fn listed(&self, kind: PinKind) -> usize {
        let pages = self.0.iter().filter(|page| page.kind == kind);
        pages
            .map(|page| page.listing.items.len())
            .max()
            .unwrap_or_default()
    }

    /// Whether a list of a kind goes on.
    pub(super) fn has(&self, kind: PinKind) -> bool {
        self.0.iter().any(|page| page.kind == kind)
    }
}

impl GuardSession {
    /// A list that was begun and did not end is neither recorded nor complete. It is told once for each kind.
    pub(super) fn note_unfinished(&mut self, kind: PinKind) {
        let listed = self.listings.listed(kind);
        if listed == 0 || self.setup.lock.is_none() || !self.unfinished.insert(kind) {
            return;
        }
        let message = format!(
            "the list of {} goes on after {} that were read, so it is neither recorded nor complete",
            kind.key(),
            count(listed, kind),
        );
        self.tell(self.finding(FindingCode::PinUnfinished, GuardDecision::Log, message));
    }

    pub(super) fn judge_listing(
        &mut self,
        call: &PendingCall,
        kind: PinKind,
        mut result: Value,
        value: &Value,
    ) -> OneMessage {
        let items = match result.get_mut(kind.key()).map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(_) => {
                let reason = format!("`{}` of this list is no list", kind.key());
                self.refused(&reason);
                return unjudged(call, &reason);
            }
            // Nothing is listed, but something may be said.
            None => {
                let all = json!([result]);
                return self.judge_content(call, result, Some(&all), value);
            }
        };
        let items = items.as_slice();
        if kind == PinKind::Tool {
            self.note_annotations(items);
            self.note_texts(items);
        } else {
            self.note_texts_of(kind, items);
        }
        let file = self.setup.lock.clone();
        let lock = match file.as_ref().map(LockFile::read).transpose() {
            Ok(lock) => lock,
            Err(error) => return self.lock_failed(call, &error),
        };
        if self.setup.policy.pins.asks()
            && let Some(held) = self.ask_about(call, (kind, items), lock.as_ref(), value)
        {
            return held;
        }
        let next = result.get("nextCursor").filter(|next| !next.is_null());
        let mut listing = self.listings.before(kind, &call.params);
        match self.compare(kind, items, lock.as_ref(), (&mut listing, next.is_none())) {
            Ok(withheld) => {
                if let Some(next) = next {
                    self.listings.expect(kind, next, listing);
                } else if let (Some(file), Some(lock), false) = (&file, &lock, listing.is_partial)
                    && let Err(error) = self.keep(file, lock, kind, &listing)
                {
                    return self.lock_failed(call, &error);
                }
                if next.is_none() && kind == PinKind::Tool {
                    self.lock_failure = None;
                }
                if withheld.is_empty() {
                    return OneMessage::Pass;
                }
                let kept = items.iter().enumerate();
                let kept = kept.filter(|(index, _)| !withheld.contains(index));
                let mut answer = with_id(value, call);
                answer["result"][kind.key()] = kept.map(|(_, item)| item.clone()).collect();
                OneMessage::Replace(answer)
            }
            Err(reason) => unjudged(call, reason),
        }
    }

    /// Holds a page with definitions that a person must be asked about.
    fn ask_about(
        &mut self,
        call: &PendingCall,
        (kind, page): (PinKind, &[Value]),
        lock: Option<&Lock>,
        value: &Value,
    ) -> Option<OneMessage> {
        let mut all = self.listings.items_before(kind, &call.params).to_vec();
        let before = all.len();
        if before + page.len() > MAX_ITEMS {
            return None;
        }
        all.extend_from_slice(page);
        let (keys, _) = unique_names(kind, &all);
        let examined = self.examine(kind, (&all, &keys, before), lock);
        let definitions: Vec<(String, Value)> = (keys.into_iter().zip(&all).skip(before))
            .map(|(key, item)| (key, canonical(kind, item)))
            .collect();
        let asked = self.questions(kind.noun(), &examined, &definitions);
        (!asked.is_empty()).then(|| self.hold_definitions(call, asked, value))
    }

    /// What is found about the items of a page, which begins at `before`.
    fn examine(
        &self,
        kind: PinKind,
        (all, keys, before): (&[Value], &[String], usize),
        lock: Option<&Lock>,
    ) -> Vec<ExaminedDefinition> {
        let (has_lock, none) = (lock.is_some(), Lock::default());
        let lock = lock.unwrap_or(&none);
        let (server, policy) = (&self.setup.server, &self.setup.policy.pins);
        let pinned = lock.servers.get(server).and_then(|pins| pins.listed(kind));
        let mut examined = Vec::new();
        let mut approved: BTreeSet<usize> = BTreeSet::new();
        for (index, (item, key)) in all.iter().zip(keys).enumerate().skip(before) {
            let now = canonical(kind, item);
            let change = match pinned {
                Some(pinned) => changes_of_item(kind, key, pinned.get(key), Some(&now))
                    .map(|change| (change, policy.on_change)),
                None if policy.records_first_use || !has_lock => None,
                None => changes_of_item(kind, key, None, Some(&now))
                    .map(|change| (change, GuardDecision::Block)),
            };
            match change {
                Some((change, decision)) => examined.push(ExaminedDefinition {
                    finding: self.pin_finding(&change, decision),
                    change: Some(change),
                    on_page: vec![index - before],
                }),
                // What somebody approved was looked at.
                None if pinned.is_some() => {
                    approved.insert(index);
                }
                None => {}
            }
        }
        let approved_names: BTreeSet<&str> = approved
            .iter()
            .filter_map(|index| kind.name_of(&all[*index]))
            .collect();
        for found in inspect(kind, server, all, lock) {
            let decision = match found.kind {
                Suspicion::HiddenText | Suspicion::DuplicateName => policy.on_hidden,
                Suspicion::LookalikeName => policy.on_lookalike,
                Suspicion::ShadowedName => policy.on_shadow,
            };
            let on_page: Vec<usize> = (before..all.len())
                .filter(|index| name_or_number(kind, *index, &all[*index]) == found.name)
                .map(|index| index - before)
                .collect();
            if on_page.is_empty() || approved_names.contains(found.name.as_str()) {
                continue;
            }
            let mut finding = self
                .finding(found.kind.code(), decision, found.message)
                .about(&*found.name);
            finding.path = found.path;
            examined.push(ExaminedDefinition {
                finding,
                change: None,
                on_page,
            });
        }
        examined
    }

    /// Compares a page with the lock, and looks at it; without a lock, it is looked at alone. Returns which of its items must not pass, by their numbers.
    fn compare(
        &mut self,
        kind: PinKind,
        page: &[Value],
        lock: Option<&Lock>,
        (listing, is_last): (&mut PinnedListing, bool),
    ) -> Result<BTreeSet<usize>, &'static str> {
        let is_whole = is_last && !listing.is_partial;
        let before = listing.items.len();
        if before + page.len() > MAX_ITEMS {
            return Err("the server lists more definitions than can be judged");
        }
        listing.items.extend_from_slice(page);
        let all = listing.items.clone();
        let (keys, seen) = unique_names(kind, &all);
        let mut told: Vec<GuardFinding> = Vec::new();
        let mut withheld_items: BTreeSet<usize> = BTreeSet::new();
        let mut withheld_names: BTreeSet<String> = BTreeSet::new();
        for one in self.examine(kind, (&all, &keys, before), lock) {
            let mut finding = one.finding;
            if finding.decision == GuardDecision::Ask {
                let forms: Vec<(&str, Value)> = (one.on_page.iter())
                    .map(|index| (&*keys[before + index], canonical(kind, &page[*index])))
                    .collect();
                let forms = forms.iter().map(|(key, form)| (*key, form));
                finding.decision = self
                    .pin_answers
                    .resolve(finding.decision, kind.noun(), forms);
            }
            if finding.decision == GuardDecision::Block {
                let names = one.on_page.iter().map(|index| &page[*index]);
                withheld_names.extend(
                    names
                        .filter_map(|item| kind.name_of(item))
                        .map(str::to_owned),
                );
                withheld_items.extend(one.on_page);
            }
            told.push(finding);
        }
        let pinned = lock.and_then(|lock| lock.servers.get(&self.setup.server)?.listed(kind));
        if let (true, Some(pinned)) = (is_whole, pinned) {
            for name in pinned.keys().filter(|name| !seen.contains(*name)) {
                if let Some(change) = changes_of_item(kind, name, pinned.get(name), None) {
                    told.push(self.pin_finding(&change, GuardDecision::Log));
                }
            }
        }
        // All of one name go together: a call could mean any of them.
        for (index, item) in page.iter().enumerate() {
            if kind
                .name_of(item)
                .is_some_and(|name| withheld_names.contains(name))
            {
                withheld_items.insert(index);
            }
        }
        let has_changes = told
            .iter()
            .any(|finding| finding.code != FindingCode::ShadowedName);
        listing.has_changes |= has_changes;
        listing.withheld.extend(withheld_names);
        // What was withheld before may stand on a page that comes later.
        let names = self.withheld.entry(kind).or_default();
        if is_whole {
            names.clone_from(&listing.withheld);
        } else {
            names.extend(listing.withheld.iter().cloned());
        }
        for finding in told {
            self.tell(finding);
        }
        if kind == PinKind::Tool && lock.is_some() {
            if before == 0 && !listing.is_partial {
                self.compared.clear();
            }
            self.note_compared(page, &withheld_items);
        }
        Ok(withheld_items)
    }

    /// Tools were compared. Of one that must not be called and already was, it is told.
    fn note_compared(&mut self, page: &[Value], withheld: &BTreeSet<usize>) {
        for (index, item) in page.iter().enumerate() {
            let Some(name) = PinKind::Tool.name_of(item) else {
                continue;
            };
            if self.called_early.remove(name) && withheld.contains(&index) {
                let message = "it was called in this session before its definition was compared with the lock, \
                               and the definition is not approved";
                let finding =
                    self.finding(FindingCode::UncomparedCall, GuardDecision::Log, message);
                self.tell(finding.about(name));
            }
            self.compared.insert(name.to_owned());
        }
    }

    /// Writes down what was listed: as pins the first time, as an offer where it differs.
    fn keep(
        &mut self,
        file: &LockFile,
        lock: &Lock,
        kind: PinKind,
        listing: &PinnedListing,
    ) -> Result<(), LockFileError> {
        let server = self.setup.server.clone();
        let origin = self.setup.origin.clone();
        let pins = lock.servers.get(&server);
        if kind == PinKind::Tool {
            self.pinned_tools = tools_of(lock, &server);
        }
        let is_known = pins.is_some_and(|pins| pins.listed(kind).is_some());
        let offered = by_name(kind, &listing.items);
        if !is_known && self.setup.policy.pins.records_first_use {
            let withheld = &listing.withheld;
            let passed = listing.items.iter();
            let passed = passed.filter(|item| {
                kind.name_of(item)
                    .is_none_or(|name| !withheld.contains(name))
            });
            let passed: Vec<Value> = passed.cloned().collect();
            let named = by_name(kind, &passed);
            let message = format!(
                "recorded {} in {}",
                count(named.len(), kind),
                file.path().display()
            );
            let lock = file.update(|lock| {
                let pins = lock.servers.entry(server.clone()).or_default();
                pins.origin = pins.origin.take().or(origin.clone());
                pins.items.insert(kind, named);
            })?;
            if kind == PinKind::Tool {
                self.pinned_tools = tools_of(&lock, &server);
            }
            self.tell(self.finding(FindingCode::PinRecorded, GuardDecision::Log, message));
        }
        if listing.has_changes {
            file.pending().update(|pending| {
                let pins = pending.servers.entry(server).or_default();
                pins.origin = origin;
                pins.items.insert(kind, offered);
            })?;
        }
        Ok(())
    }

    pub(super) fn judge_instructions(
        &mut self,
        call: &PendingCall,
        result: &Value,
        value: &Value,
    ) -> OneMessage {
        let file = self.setup.lock.clone();
        let now = match result.get("instructions") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.note_instructions(&now);
        let lock = match file.as_ref().map(LockFile::read).transpose() {
            Ok(lock) => lock,
            Err(error) => return self.lock_failed(call, &error),
        };
        let definition = [(String::new(), Value::from(now))];
        let examined = self.examine_instructions(lock.as_ref(), &definition[0].1);
        let asked = self.questions(INSTRUCTIONS, &examined, &definition);
        if !asked.is_empty() {
            return self.hold_definitions(call, asked, value);
        }
        let [(_, now)] = definition;
        match self.compare_instructions((file.as_ref(), lock), examined, &now) {
            Ok(GuardDecision::Block) => {
                let mut answer = with_id(value, call);
                if let Some(result) = answer["result"].as_object_mut() {
                    result.remove("instructions");
                }
                OneMessage::Replace(answer)
            }
            Ok(_) => OneMessage::Pass,
            Err(error) => self.lock_failed(call, &error),
        }
    }

    /// What is found about instructions.
    fn examine_instructions(&self, lock: Option<&Lock>, now: &Value) -> Vec<ExaminedDefinition> {
        let policy = &self.setup.policy.pins;
        let text = now.as_str().unwrap_or_default();
        let pinned = lock.and_then(|lock| lock.servers.get(&self.setup.server));
        let pinned = pinned.and_then(|pins| pins.instructions.as_deref());
        let change =
            match pinned {
                Some(before) => changes_of_text(INSTRUCTIONS, before, text)
                    .map(|change| (change, policy.on_change)),
                None if policy.records_first_use || lock.is_none() => None,
                None => changes_of_text(INSTRUCTIONS, "", text)
                    .map(|change| (change, GuardDecision::Block)),
            };
        let mut examined = Vec::new();
        if let Some((change, decision)) = change {
            examined.push(ExaminedDefinition {
                finding: self.pin_finding(&change, decision),
                change: Some(change),
                on_page: vec![0],
            });
        }
        if let (true, Some((_, c))) = (pinned != Some(text), hidden_text(now)) {
            let message = format!(
                "the instructions have the hidden character U+{:04X}",
                u32::from(c)
            );
            examined.push(ExaminedDefinition {
                finding: self.finding(FindingCode::HiddenText, policy.on_hidden, message),
                change: None,
                on_page: vec![0],
            });
        }
        examined
    }

    fn compare_instructions(
        &mut self,
        (file, lock): (Option<&LockFile>, Option<Lock>),
        examined: Vec<ExaminedDefinition>,
        now: &Value,
    ) -> Result<GuardDecision, LockFileError> {
        let server = self.setup.server.clone();
        let pinned = lock
            .and_then(|mut lock| lock.servers.remove(&server))
            .and_then(|pins| pins.instructions);
        let (mut decision, offers) = (GuardDecision::Allow, !examined.is_empty());
        for mut one in examined {
            let form = std::iter::once(("", now));
            let answers = &self.pin_answers;
            one.finding.decision = answers.resolve(one.finding.decision, INSTRUCTIONS, form);
            decision = decision.max(one.finding.decision);
            self.tell(one.finding);
        }
        let Some(file) = file else {
            return Ok(decision);
        };
        let origin = self.setup.origin.clone();
        let set = |lock: &mut Lock| {
            let pins: &mut ServerPins = lock.servers.entry(server).or_default();
            pins.origin = pins.origin.take().or(origin);
            pins.instructions = now.as_str().map(str::to_owned);
        };
        if offers {
            file.pending().update(set)?;
        } else if pinned.is_none() && self.setup.policy.pins.records_first_use {
            file.update(set)?;
        }
        Ok(decision)
    }

    /// Without the lock nothing can be compared, so nothing passes that should be.
    fn lock_failed(&mut self, call: &PendingCall, error: &LockFileError) -> OneMessage {
        let message = printable_line(&error.to_string());
        self.lock_failure = Some(message.clone());
        self.refused_for_lock(call, &message)
    }

    /// A call while the lock cannot be used: what the server offers could not be compared, so the call does not pass either.
    pub(super) fn judge_lock(&mut self, call: &PendingCall) -> Option<OneMessage> {
        let file = self.setup.lock.clone()?;
        // With pins, and no failure since, a call needs no file.
        if self.lock_failure.is_none() && self.pinned_tools.is_some() {
            return None;
        }
        let lock = match file.read() {
            Ok(lock) => lock,
            Err(error) => return Some(self.lock_failed(call, &error)),
        };
        let message = self.lock_failure.take()?;
        // It can be read again. Without pins, it was not written, and nothing was compared.
        let Some(pinned) = tools_of(&lock, &self.setup.server) else {
            self.lock_failure = Some(message.clone());
            return Some(self.refused_for_lock(call, &message));
        };
        self.pinned_tools = Some(pinned);
        None
    }

    fn refused_for_lock(&mut self, call: &PendingCall, message: &str) -> OneMessage {
        self.tell(self.finding(FindingCode::PinFailed, GuardDecision::Block, message));
        unjudged(
            call,
            &format!("the definitions could not be compared with the lock: {message}"),
        )
    }

    pub(super) fn pin_finding(&self, change: &PinChange, decision: GuardDecision) -> GuardFinding {
        let mut finding = self.finding(change.code, decision, change.to_string());
        finding.item = Some(if change.name.is_empty() {
            change.noun.to_owned()
        } else {
            change.name.clone()
        });
        let first = change.differences.first();
        finding.path = first
            .map(|difference| difference.path.clone())
            .filter(|path| !path.is_empty());
        finding
    }

    /// What a definition says that nobody approved before this session may come from anybody.
    fn note_texts(&mut self, items: &[Value]) {
        let names = items.iter().filter_map(|item| PinKind::Tool.name_of(item));
        let names: Vec<String> = names.filter_map(|name| self.mentions.know(name)).collect();
        self.fact(|| SharedFact::Tools { names });
        for item in items {
            let Some(name) = PinKind::Tool.name_of(item) else {
                continue;
            };
            if self.is_approved(PinKind::Tool, name) {
                continue;
            }
            let texts = Value::Array(texts_of_definition(item));
            let origin = format!("{}/{DEFINITION} {name}", self.setup.server);
            self.mentions.read(&origin, &texts, Some(name));
            if self.described.contains(name) {
                continue;
            }
            // A server that invents names for ever is followed, and no longer remembered.
            if self.described.len() < MAX_DESCRIBED {
                self.described.insert(name.to_owned());
            }
            self.follow_unapproved(origin, &texts);
        }
        // These may have come before the tools that they name.
        for (origin, texts) in &self.unapproved_texts {
            self.mentions.read(origin, texts, None);
        }
    }

    /// The same for prompts and templates.
    fn note_texts_of(&mut self, kind: PinKind, items: &[Value]) {
        for item in items {
            let name = kind.name_of(item).unwrap_or_default();
            if !self.is_approved(kind, name) {
                let origin = format!("{}/{DEFINITION} {name}", self.setup.server);
                self.note_unapproved(origin, &Value::Array(texts_of_definition(item)));
            }
        }
    }

    /// The same for instructions.
    fn note_instructions(&mut self, now: &str) {
        let approved = self.approved.as_ref();
        let approved = approved.and_then(|pins| pins.instructions.as_deref());
        if approved != Some(now) {
            let origin = format!("{}/{DEFINITION} the instructions", self.setup.server);
            self.note_unapproved(origin, &json!([now]));
        }
    }

    fn note_unapproved(&mut self, origin: String, texts: &Value) {
        self.mentions.read(&origin, texts, None);
        // What is said again is known.
        if self.unapproved_texts.get(&origin) == Some(texts) {
            return;
        }
        let bytes = |texts: &Value| texts_below(texts).iter().map(String::len).sum::<usize>();
        let held: usize = self.unapproved_texts.values().map(bytes).sum();
        if held + bytes(texts) <= MAX_UNAPPROVED_BYTES && self.unapproved_texts.len() < MAX_ITEMS {
            self.unapproved_texts.insert(origin.clone(), texts.clone());
        }
        self.follow_unapproved(origin, texts);
    }

    fn follow_unapproved(&mut self, origin: String, texts: &Value) {
        self.taint.remember(TaintLabel::Untrusted, &origin, texts);
        self.fact(|| SharedFact::Texts {
            label: TaintLabel::Untrusted,
            origin,
            texts: texts_below(texts),
        });
    }

    /// Whether the lock had a definition when the session began.
    fn is_approved(&self, kind: PinKind, name: &str) -> bool {
        let approved = self.approved.as_ref();
        approved
            .and_then(|pins| pins.listed(kind))
            .is_some_and(|listed| listed.contains_key(name))
    }

    fn note_annotations(&mut self, items: &[Value]) {
        for item in items {
            if let (Some(name), Some(annotations)) =
                (PinKind::Tool.name_of(item), item.get("annotations"))
                && self.annotations.len() < MAX_ITEMS
            {
                self.annotations
                    .insert(name.to_owned(), annotations.clone());
            }
        }
    }
}

/// The tools that a lock has for a server, if it has a list of them.
pub(super) fn tools_of(lock: &Lock, server: &str) -> Option<BTreeSet<String>> {
    tools_of_pins(lock.servers.get(server)?)
}

/// The tools among pins, if they have a list of them.
pub(super) fn tools_of_pins(pins: &ServerPins) -> Option<BTreeSet<String>> {
    let tools = pins.listed(PinKind::Tool)?;
    Some(tools.keys().cloned().collect())
}

fn count(number: usize, kind: PinKind) -> String {
    format!(
        "{number} {}{}",
        kind.noun(),
        if number == 1 { "" } else { "s" }
    )
}

fn name_or_number(kind: PinKind, index: usize, item: &Value) -> String {
    let name = kind.name_of(item).map(str::to_owned);
    name.unwrap_or_else(|| format!("#{}", index + 1))
}

/// The keys of all that were listed, in order and as a set.
fn unique_names(kind: PinKind, all: &[Value]) -> (Vec<String>, BTreeSet<String>) {
    let mut seen = BTreeSet::new();
    let items = all.iter().enumerate();
    let keys = items
        .map(|(index, item)| unique_name(kind, index, item, &mut seen))
        .collect();
    (keys, seen)
}

/// The key that an item has among all that were listed; see [`by_name`].
fn unique_name(kind: PinKind, index: usize, item: &Value, seen: &mut BTreeSet<String>) -> String {
    let name = name_or_number(kind, index, item);
    let mut key = name.clone();
    let mut number = 1;
    while !seen.insert(key.clone()) {
        number += 1;
        key = format!("{name} #{number}");
    }
    key
}
