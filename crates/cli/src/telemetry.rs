//! What a long-running command tells its operator: lines on stderr, and spans to an OpenTelemetry collector.

use std::time::Duration;

use clap::{Args, ValueEnum};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use proofhouse_server::{OtlpCollector, otel_bridge};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::output::{CommandError, printable_line, talk};
use crate::proxies;

/// How long the collector may take.
const EXPORT_TIME: Duration = Duration::from_secs(10);

/// What is told while a command goes on.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct TelemetryOptions {
    /// What to log to stderr
    #[arg(long, value_enum, default_value_t = LogLevelFlag::Warn)]
    log: LogLevelFlag,

    /// Log as JSON lines
    #[arg(long)]
    pub(crate) log_json: bool,

    /// Send OpenTelemetry spans to this collector over HTTP, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogLevelFlag {
    /// Nothing
    Off,
    /// Errors
    Error,
    /// Errors and warnings
    Warn,
    /// The same and informational messages
    Info,
    /// The same and debug messages
    Debug,
}

impl LogLevelFlag {
    fn filter(self) -> tracing_subscriber::filter::LevelFilter {
        use tracing_subscriber::filter::LevelFilter;
        match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        }
    }
}

/// Ours only: libraries may write down whole messages, and those may hold secrets.
fn ours(level: tracing_subscriber::filter::LevelFilter) -> Targets {
    let crates = [
        "proofhouse",
        "proofhouse_agent",
        "proofhouse_guard",
        "proofhouse_server",
        "proofhouse_store",
        "proofhouse_tools",
    ];
    Targets::new().with_targets(crates.map(|name| (name, level)))
}

/// What must be finished before the process ends.
pub(crate) struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

impl TelemetryOptions {
    /// Spans alone, for a command that has lines of its own.
    pub(crate) fn spans_to(otlp: Option<String>) -> Self {
        let (log, log_json) = (LogLevelFlag::Off, false);
        Self {
            log,
            log_json,
            otlp,
        }
    }

    /// Says something to whoever runs the command: a person, or what reads the log.
    pub(crate) fn tell(&self, message: &str) {
        if self.log_json {
            tracing::info!("{message}");
        } else {
            talk(message);
        }
    }

    /// The same of something that is wrong.
    pub(crate) fn warn(&self, message: &str) {
        if self.log_json {
            tracing::warn!("{message}");
        } else {
            talk(message);
        }
    }

    /// Begins to tell.
    pub(crate) fn begin(&self) -> Result<Telemetry, CommandError> {
        let filter = ours(self.log.filter());
        let (lines, json) = if self.log_json {
            (None, Some(fmt::layer().json().with_writer(std::io::stderr)))
        } else {
            (
                Some(fmt::layer().with_writer(std::io::stderr).with_ansi(false)),
                None,
            )
        };
        let lines = lines.map(|layer| layer.with_filter(filter.clone()));
        let json = json.map(|layer| layer.with_filter(filter));
        let provider = self.provider()?;
        let spans = provider.as_ref().map(|provider| {
            let tracer = provider.tracer("proofhouse");
            let filter = ours(tracing_subscriber::filter::LevelFilter::INFO);
            tracing_opentelemetry::layer()
                .with_tracer(tracer)
                .with_filter(filter)
        });
        let subscriber = tracing_subscriber::registry()
            .with(lines)
            .with(json)
            .with(spans);
        // Somebody else may have set one up before, in tests.
        let _ = subscriber.try_init();
        if provider.is_some() {
            otel_bridge::install();
        }
        Ok(Telemetry { provider })
    }

    fn provider(&self) -> Result<Option<SdkTracerProvider>, CommandError> {
        let Some(url) = &self.otlp else {
            return Ok(None);
        };
        if !url.starts_with("http://") && !url.starts_with("https://") {
            let message = format!("--otlp {url}: write a URL that begins with http:// or https://");
            return Err(CommandError::usage(printable_line(&message)));
        }
        let endpoint = format!("{}/v1/traces", url.trim_end_matches('/'));
        let usage = |error: &dyn std::fmt::Display| {
            CommandError::usage(printable_line(&format!("--otlp: {error}")))
        };
        let collector = OtlpCollector::new(EXPORT_TIME, proxies::from_environment())
            .map_err(|error| usage(&error))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(collector)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(endpoint)
            .with_timeout(EXPORT_TIME)
            .build()
            .map_err(|error| usage(&error))?;
        let resource = Resource::builder().with_service_name("proofhouse").build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Some(provider))
    }
}

impl Telemetry {
    /// Sends what is left.
    pub(crate) fn finish(self) {
        if let Some(provider) = self.provider {
            // A collector that is away must not keep anybody from ending.
            let _ = provider.shutdown_with_timeout(EXPORT_TIME);
        }
    }
}
