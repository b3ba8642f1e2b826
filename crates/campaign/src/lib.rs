//! Many attacks on one subject: the results of the runs, and what can be said from them.
//!
//! A [`CampaignResult`](result::CampaignResult) is everything a campaign found, in a form that is kept in
//! a file. [`statistics`] says how sure the rates in it are.

pub mod result;
pub mod statistics;
