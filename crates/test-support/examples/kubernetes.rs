//! Runs the control plane with a node until standard input ends: `scripts/kubernetes run`.

use std::io::{Read as _, Write as _};

use proofhouse_test_support::kubernetes::{ControlPlane, Image, Images, Node};

fn main() {
    let plane = ControlPlane::own();
    // Every name of an image that examples use; there are no containers, so each has the programs of this machine.
    let images = ["busybox:1.36", "proofhouse:0.1.0"].map(Image::new);
    let node = Node::start(&plane, "node-1", Images::new(images));
    let kubeconfig = plane.admin_kubeconfig();
    let _ = writeln!(std::io::stdout(), "{}", kubeconfig.display());
    let mut byte = [0];
    while std::io::stdin()
        .read(&mut byte)
        .is_ok_and(|count| count > 0)
    {}
    drop(node);
}
