//! A search that can be stopped at any time: an automaton that is driven byte by byte.
//!
//! All engines for regular expressions are linear in the text, but by factors that differ a thousandfold, and none of
//! them can be interrupted. Long texts therefore go to a lazy automaton that gives up as soon as it does not pay, and
//! from there to one that we step ourselves, with an eye on the clock.

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use super::{MatchBudget, RegexTimeout};

/// What the states of one automaton may take, in bytes. Until it is full the quick automaton does not give up.
const CACHE: usize = 1 << 18;

/// How many states of the pattern are looked at between two looks at the clock.
const STATES_PER_LOOK: usize = 64 * 1024;

/// The automata of one pattern for long texts.
#[derive(Debug)]
pub(super) struct Stepped {
    /// Quick, but gives up where a state is made every few bytes.
    eager: DFA,
    /// Never gives up: finds whether there is a match.
    any: DFA,
    /// Finds where the first match ends.
    first: DFA,
    /// Finds, from its end, where a match begins.
    backward: DFA,
    /// Bytes between two looks at the clock.
    interval: usize,
}

impl Stepped {
    /// `None` where the pattern is too large for an automaton, which its limit on size excludes.
    pub(super) fn new(hir: &Hir) -> Option<Self> {
        let forward = nfa(hir, false)?;
        let backward = nfa(hir, true)?;
        let states = forward.states().len();
        let patient = DFA::config()
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true);
        let impatient = patient
            .clone()
            .minimum_cache_clear_count(Some(1))
            // Making a state takes time by the states of the pattern; so many bytes make that little per byte.
            .minimum_bytes_per_state(Some(states.max(32)))
            .prefilter(Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, hir));
        let build = |config, nfa: &NFA| {
            let mut builder = DFA::builder();
            builder.configure(config).build_from_nfa(nfa.clone()).ok()
        };
        let all = patient.clone().match_kind(MatchKind::All);
        Some(Self {
            eager: build(impatient, &forward)?,
            any: build(all.clone(), &forward)?,
            first: build(patient, &forward)?,
            backward: build(all, &backward)?,
            interval: (STATES_PER_LOOK / states.max(1)).clamp(1, 64),
        })
    }

    /// Whether there is a match.
    pub(super) fn is_match(
        &self,
        text: &str,
        splits: bool,
        budget: &mut MatchBudget,
    ) -> Result<bool, RegexTimeout> {
        // The quick automaton would also find what lies inside a character.
        if !splits {
            let mut cache = self.eager.create_cache();
            let input = Input::new(text).earliest(true);
            if let Ok(found) = self.eager.try_search_fwd(&mut cache, &input) {
                budget.look()?;
                return Ok(found.is_some());
            }
        }
        let found = self.walk(&self.any, text, 0, true, budget)?;
        Ok(found.is_some())
    }

    /// The first match.
    pub(super) fn find(
        &self,
        text: &str,
        budget: &mut MatchBudget,
    ) -> Result<Option<std::ops::Range<usize>>, RegexTimeout> {
        let mut from = 0;
        loop {
            let Some(end) = self.walk(&self.first, text, from, false, budget)? else {
                return Ok(None);
            };
            let start = self.walk_back(text, from, end, budget)?.unwrap_or(end);
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                return Ok(Some(start..end));
            }
            // Only an empty match can lie inside a character, and it is none.
            from = text.ceil_char_boundary(end);
        }
    }

    /// Where a match ends that is looked for from `from`: any one, or the first.
    fn walk(
        &self,
        dfa: &DFA,
        text: &str,
        from: usize,
        any: bool,
        budget: &mut MatchBudget,
    ) -> Result<Option<usize>, RegexTimeout> {
        let mut cache = dfa.create_cache();
        let input = Input::new(text).range(from..);
        let Ok(mut state) = dfa.start_state_forward(&mut cache, &input) else {
            return Err(budget.timeout());
        };
        let mut end = None;
        for (at, byte) in text.as_bytes().iter().enumerate().skip(from) {
            if (at - from).is_multiple_of(self.interval) {
                budget.look()?;
            }
            state = step(dfa, &mut cache, state, *byte, budget)?;
            if state.is_tagged() {
                // An automaton knows of a match one byte late.
                if state.is_match() {
                    if any && text.is_char_boundary(at) {
                        return Ok(Some(at));
                    }
                    if !any {
                        end = Some(at);
                    }
                } else if state.is_dead() {
                    return Ok(end);
                }
            }
        }
        budget.look()?;
        match dfa.next_eoi_state(&mut cache, state) {
            Ok(state) if state.is_match() => Ok(Some(text.len())),
            Ok(_) => Ok(end),
            Err(_) => Err(budget.timeout()),
        }
    }

    /// Where the match that ends at `end` begins.
    fn walk_back(
        &self,
        text: &str,
        from: usize,
        end: usize,
        budget: &mut MatchBudget,
    ) -> Result<Option<usize>, RegexTimeout> {
        let dfa = &self.backward;
        let mut cache = dfa.create_cache();
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        let Ok(mut state) = dfa.start_state_reverse(&mut cache, &input) else {
            return Err(budget.timeout());
        };
        let mut start = None;
        for at in (from..end).rev() {
            if (end - at).is_multiple_of(self.interval) {
                budget.look()?;
            }
            state = step(dfa, &mut cache, state, text.as_bytes()[at], budget)?;
            if state.is_match() {
                start = Some(at + 1);
            } else if state.is_dead() {
                return Ok(start);
            }
        }
        let last = match from.checked_sub(1) {
            Some(before) => step(dfa, &mut cache, state, text.as_bytes()[before], budget)?,
            None => dfa
                .next_eoi_state(&mut cache, state)
                .map_err(|_| budget.timeout())?,
        };
        Ok(if last.is_match() { Some(from) } else { start })
    }
}

fn step(
    dfa: &DFA,
    cache: &mut Cache,
    state: regex_automata::hybrid::LazyStateID,
    byte: u8,
    budget: &MatchBudget,
) -> Result<regex_automata::hybrid::LazyStateID, RegexTimeout> {
    // It fails where it may give up, which it is not told to.
    dfa.next_state(cache, state, byte)
        .map_err(|_| budget.timeout())
}

fn nfa(hir: &Hir, reverse: bool) -> Option<NFA> {
    NFA::compiler()
        .configure(
            thompson::Config::new()
                .utf8(false)
                .reverse(reverse)
                .which_captures(WhichCaptures::None),
        )
        .build_from_hir(hir)
        .ok()
}
