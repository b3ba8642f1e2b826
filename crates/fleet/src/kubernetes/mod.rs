//! Workers on Kubernetes: an Indexed Job whose Pods join a campaign, and what becomes of it.
//!
//! An init container brings the program into a volume, and the image of the user runs unchanged beside it: its files, its
//! libraries and its agent are what is tested. Everything secret comes by reference to secrets of the namespace.

mod follow;
mod install;
mod job;
mod parse;
mod told;
mod view;
mod work;

pub use follow::{Follow, WorkersEnd, WorkersJob};
pub use install::{ProgramInstallError, install};
pub use job::{WorkerPods, fresh_suffix, given_flags, manifest};
pub use parse::{
    EnvironmentPair, InvalidPodSetting, PodLabel, PodToleration, Quantity, SecretVariable,
};
pub use told::{CampaignStanding, ProgressTeller};
pub use view::{JobView, PodTrouble};
pub use work::{WorkersError, WorkersNews, run_workers};
