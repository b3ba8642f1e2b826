//! The tests of running agents: models, tasks, and the protocols they are served by.

mod bindings;
mod mock_llm;
mod model_server;
mod players;
mod providers;
mod record;
mod remote;
mod serve_a2a;
mod serve_ag_ui;
mod serve_mcp;
mod serve_peers;
mod served;
mod simulations;
mod support;
mod task;
mod task_guest;
mod task_journal;
mod tasks;
mod vectors;
