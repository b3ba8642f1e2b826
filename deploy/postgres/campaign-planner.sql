-- What `proofhouse run --name` and `proofhouse campaigns` need beside the grants of campaign-worker.sql: to plan, cancel and remove
-- campaigns. Still no change of the schema, and nothing of what `proofhouse serve` keeps.
--
--   psql -v role=proofhouse_planner -f campaign-worker.sql -f campaign-planner.sql
GRANT INSERT, DELETE, UPDATE (total) ON campaigns TO :"role";
GRANT INSERT, DELETE ON campaign_blobs, campaign_blob_uses, campaign_runs, campaign_lanes TO :"role";
GRANT SELECT ON campaign_blob_uses TO :"role";
GRANT DELETE ON campaign_results, campaign_counts, campaign_workers TO :"role";
GRANT UPDATE (trace) ON campaign_results TO :"role";
