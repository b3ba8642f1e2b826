//! A campaign whose workers run on Kubernetes: starts them, tells how far they are, and cleans up.

use proofhouse_fleet::kubernetes::{
    CampaignStanding, WorkerPods, WorkersNews, manifest, run_workers,
};
use proofhouse_fleet::name::shown;
use proofhouse_fleet::worker::WorkerSettings;
use proofhouse_source::to_yaml;
use proofhouse_store::Store;
use proofhouse_store::model::CampaignRow;
use proofhouse_wire::CancellationToken;

use crate::kubernetes_options::KubernetesOptions;
use crate::output::{CommandError, StdoutData, complain, printable_line, talk};

/// Prints the manifest of the Job.
pub(crate) fn print_manifest(pods: &WorkerPods, as_json: bool) -> Result<(), CommandError> {
    let job = manifest(pods);
    let mut data = StdoutData::new();
    if as_json {
        data.json(&job)?;
    } else {
        data.write(&to_yaml(&job))?;
    }
    data.finish()
}

/// Has a campaign of a store worked off by workers in a cluster, and gives it as it is then.
pub(crate) async fn work_on_kubernetes(
    (options, arguments): (&KubernetesOptions, Vec<String>),
    settings: &WorkerSettings,
    store: &Store,
    campaign: CampaignRow,
    cancel: &CancellationToken,
) -> Result<CampaignRow, CommandError> {
    let name = shown(&campaign);
    let pods = options.pods(&name, settings, arguments)?;
    let api = options.cluster().await?;
    let standing = async || CampaignStanding::read(store, campaign.id).await;
    let end = run_workers(api, &pods, cancel, standing, &|news| match news {
        WorkersNews::Progress(line) => talk(&printable_line(&line)),
        WorkersNews::Trouble(line) => complain(&printable_line(&line)),
    });
    let end = end.await.map_err(|error| CommandError::of(&error, false))?;
    let campaign = store.campaign(campaign.id).await;
    let campaign = campaign.map_err(|error| CommandError::of(&error, false))?;
    match end.unfinished(&name) {
        Some(why) if !campaign.state.is_over() => {
            Err(CommandError::cannot_run(printable_line(&why)))
        }
        _ => Ok(campaign),
    }
}
