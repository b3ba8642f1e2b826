//! Runs agents as a service: HTTP API, webhooks, events, a dashboard.
