//! A real Kubernetes for tests: the programs that `scripts/kubernetes build` made, and a node that runs Pods as processes.
//!
//! The API server, the controllers, the scheduler and etcd are the real ones, so that validation, admission, quotas, RBAC,
//! Jobs and garbage collection are too. The node is ours: there are no containers, so a Pod sees the files of this machine.

mod certificates;
mod client;
mod container;
mod control_plane;
mod images;
mod logs;
mod node;
mod pod;
mod reaper;

pub use client::{ClusterClient, Refused};
pub use control_plane::{ControlPlane, Undisturbed};
pub use images::{Image, Images};
pub use node::Node;
