//! Many attacks on subjects: the plan, the runs, their results, and what can be said from them.
//!
//! A [`Plan`](plan::Plan) says which document meets which [`Subject`](proofhouse_subjects::Subject) how often.
//! [`execute`](engine::execute) asks what the subjects read ([`probes`]), makes the runs, side by side, and gives a
//! [`CampaignResult`](result::CampaignResult): everything a campaign found, in a form that is kept in a
//! [file](store). [`summary`] counts it, [`statistics`] says how sure the rates are, [`baseline`] what
//! changed since an earlier one, and [`sensitivity`] what change could be found. [`preflight`] finds out beforehand whether the subjects are wired up. [`guard_effect`] says what a guard changed. [`gates`] decides whether it failed, except for [`accepted`] risks; the crate
//! `report` tells all that, in every [format](report_format), [`drive`] lets another program run the agent, and [`replay`] judges a recorded run again. What a project's campaigns are stands in its
//! [`proofhouse.yaml`](config); the built-in threat library is [`library`], and what its documents must say of
//! known traffic stands in their [labelled cases](cases).

pub mod accepted;
pub mod archive;
pub mod baseline;
pub mod canaries;
pub mod cases;
pub mod ci;
pub mod comparison;
pub mod config;
pub mod conformance;
pub mod control_text;
pub mod document;
pub mod drive;
pub mod engine;
pub mod file_kind;
pub mod filters;
pub mod gates;
pub mod guard_effect;
mod judging;
pub mod library;
pub mod load;
pub mod matchable;
pub mod message_origin;
pub mod outcome;
pub mod plan;
pub mod planted;
pub mod preflight;
pub mod probes;
pub mod replay;
pub mod report_format;
pub mod repository;
pub mod result;
pub mod results_directory;
mod run;
pub mod run_maker;
pub mod scratch;
pub mod sensitivity;
pub mod setup;
pub mod statistics;
pub mod store;
pub mod summary;
mod trace_digest;
