//! Many attacks on one subject: the results of the runs, and what can be said from them.
//!
//! A [`CampaignResult`](result::CampaignResult) is everything a campaign found, in a form that is kept in
//! a file. [`summary`] counts it, [`statistics`] says how sure the rates are, and [`comparison`] what
//! changed since an earlier one. [`report`] tells all that, to people and to programs.

pub mod comparison;
pub mod report;
pub mod result;
pub mod statistics;
pub mod summary;
