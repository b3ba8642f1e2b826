-- The least that a worker of campaigns needs (`proofhouse worker`): it is handed runs and writes what came of them. It cannot plan,
-- cancel or remove campaigns, change the schema, or see anything that `proofhouse serve` keeps.
--
--   psql -v role=proofhouse_worker -f campaign-worker.sql
--
-- Make the role first (CREATE ROLE proofhouse_worker LOGIN PASSWORD '…'), and run this as the owner of the tables, in the
-- schema that they are in, after a `proofhouse` of this version has opened the database once.
GRANT SELECT ON meta TO :"role";
GRANT SELECT ON campaigns, campaign_blobs, campaign_runs, campaign_results, campaign_counts, campaign_lanes, campaign_workers TO :"role";
GRANT UPDATE (state, ended_at, remark) ON campaigns TO :"role";
GRANT UPDATE (state, gate, due_at, owner, until, started_at, fence, second_owner, second_fence, losses, retries) ON campaign_runs TO :"role";
GRANT INSERT ON campaign_results TO :"role";
GRANT INSERT, UPDATE ON campaign_counts TO :"role";
GRANT UPDATE (used_tokens, used_cost, used_requests, next_request_at, slow_until, slowed) ON campaign_lanes TO :"role";
GRANT INSERT, UPDATE ON campaign_workers TO :"role";
