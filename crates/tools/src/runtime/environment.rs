//! Environments: what a task knows beside the parameters of a call.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::{ActionCall, ActionError, ActionFailure};
use proofhouse_manifest::Tool;
use proofhouse_manifest::interpolate::{
    Root, Sealed, Secrets, TemplateReference, TemplateScope, TokenHosts, find_dotted,
};

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no token for `{provider}`: {reason}")]
pub struct TokenError {
    /// The provider.
    pub provider: String,
    /// What went wrong.
    pub reason: String,
    /// What becomes of the call that wanted it: [`ActionFailure::Token`], unless the failure is one that passes.
    pub failure: ActionFailure,
}

/// Where the tokens of `{auth.provider()}` come from.
pub trait TokenSource: Send + Sync {
    /// A token. With `fresh`, the one given before was refused.
    fn token<'a>(
        &'a self,
        provider: &'a str,
        fresh: bool,
    ) -> BoxFuture<'a, Result<String, TokenError>>;

    /// A token after a server refused this one. Who knows which token was refused can tell those who were
    /// refused with the same one from those who need yet another.
    fn token_instead_of<'a>(
        &'a self,
        provider: &'a str,
        _refused: &'a str,
    ) -> BoxFuture<'a, Result<String, TokenError>> {
        self.token(provider, true)
    }

    /// What a provider holds beside its tokens that must never be shown, such as a client's secret.
    fn secrets(&self, _provider: &str) -> Secrets {
        Secrets::default()
    }

    /// Where a tool may send the tokens of a provider. Unless a source says otherwise, everywhere.
    ///
    /// # Errors
    ///
    /// Returns an error when the tool may not have them.
    fn granted(&self, _provider: &str, _tool: &Tool) -> Result<TokenHosts, TokenError> {
        Ok(TokenHosts::any())
    }
}

/// No providers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTokens;

impl TokenSource for NoTokens {
    fn token<'a>(
        &'a self,
        provider: &'a str,
        _fresh: bool,
    ) -> BoxFuture<'a, Result<String, TokenError>> {
        let provider = provider.to_owned();
        Box::pin(async move {
            Err(TokenError {
                provider,
                reason: "no provider of that name is registered".to_owned(),
                failure: ActionFailure::Token,
            })
        })
    }
}

/// The files of an agent, which expressions read and write with `mount.read` and `mount.write`.
pub trait Files: Send + Sync {
    /// The text of a file.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    fn read(&self, path: &str) -> Result<String, MountError>;

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be written.
    fn write(&self, path: &str, content: &str) -> Result<(), MountError>;
}

/// Why a file of an agent cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The path leads out of the mount, or is none.
    #[error("`{path}` is not a path inside the mount")]
    Outside {
        /// The path as the expression gave it.
        path: String,
    },
    /// The reference names no scope that the agent has, or none where there are several.
    #[error("`{path}` does not start with a root of the agent; use one of: {roots}")]
    NoSuchRoot {
        /// The reference as the expression gave it.
        path: String,
        /// The roots that there are.
        roots: String,
    },
    /// The file is larger than an expression may read.
    #[error("`{path}` has more than {max_bytes} bytes")]
    TooLarge {
        /// The path as the expression gave it.
        path: String,
        /// What a file may have.
        max_bytes: u64,
    },
    /// The text is larger than an expression may write.
    #[error("`{path}` would have more than {max_bytes} bytes")]
    TooLargeToWrite {
        /// The path as the expression gave it.
        path: String,
        /// What a file may have.
        max_bytes: u64,
    },
    /// The file holds something else than text in UTF-8.
    #[error("`{path}` is not text")]
    NotText {
        /// The path as the expression gave it.
        path: String,
    },
    /// The system refuses.
    #[error("`{path}`: {source}")]
    Io {
        /// The path as the expression gave it.
        path: String,
        /// What it says.
        source: io::Error,
    },
}

/// Settings, and whose they are.
#[derive(Clone)]
enum SettingsGiven {
    /// Of the one tool that the environment is for.
    Own(Value),
    /// By the namespace and the name of tools, and those that go to whichever tool declares them.
    ByTool(Arc<Map<String, Value>>, Arc<Map<String, Value>>),
}

/// What a task knows: settings, the runtime, the agent, tokens and the time.
#[derive(Clone)]
pub struct Environment {
    settings: Sealed<SettingsGiven>,
    roots: BTreeMap<Root, Value>,
    tokens: Arc<dyn TokenSource>,
    base: Option<Arc<Path>>,
    files: Option<Arc<dyn Files>>,
    now: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Environment {
    /// An environment with the settings of the one tool that it is for, and a clock that tells the time as RFC 3339 in UTC.
    ///
    /// ```
    /// use proofhouse_tools::runtime::Environment;
    /// use serde_json::json;
    ///
    /// let environment = Environment::new(json!({"api_key": "sk-1"}), || "2026-01-01T00:00:00.000Z".into());
    /// assert!(!format!("{environment:?}").contains("sk-1"));
    /// ```
    pub fn new(settings: Value, now: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self::given(SettingsGiven::Own(settings), now)
    }

    /// An environment for many tools. `by_tool` has their settings by namespace and name, such as
    /// `demo/weather`; `declared` has those that go to the tool that declares them
    /// ([`check_shared`](Self::check_shared)). No tool gets a setting that it does not declare.
    pub fn for_tools(
        by_tool: Map<String, Value>,
        declared: Map<String, Value>,
        now: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self::given(SettingsGiven::ByTool(by_tool.into(), declared.into()), now)
    }

    /// Makes sure that each setting that is given to whoever declares it is declared by one of these tools at most: a secret
    /// that is meant for one must not reach another that gives its setting the same name.
    ///
    /// # Errors
    ///
    /// Returns an error that names a setting and the tools.
    pub fn check_shared<'t>(
        &self,
        tools: impl Iterator<Item = &'t Arc<Tool>>,
    ) -> Result<(), ActionError> {
        let SettingsGiven::ByTool(_, shared) = self.settings.expose() else {
            return Ok(());
        };
        let tools: Vec<&Arc<Tool>> = tools.collect();
        for setting in shared.keys() {
            let declaring = tools.iter().filter(|tool| declares(tool, setting));
            let names = declaring.map(|tool| format!("{}/{}", tool.namespace, tool.name));
            let names: BTreeSet<String> = names.collect();
            if let (Some(first), true) = (names.first(), names.len() > 1) {
                let all: Vec<&str> = names.iter().map(String::as_str).collect();
                let message = format!(
                    "several tools declare the setting `{setting}`: {}; say whose it is, as in `{first}.{setting}`",
                    all.join(", ")
                );
                return Err(ActionError::new(ActionFailure::Setting, message));
            }
        }
        Ok(())
    }

    fn given(settings: SettingsGiven, now: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self {
            settings: Sealed::new(settings),
            roots: BTreeMap::new(),
            tokens: Arc::new(NoTokens),
            base: None,
            files: None,
            now: Arc::new(now),
        }
    }

    /// The same with the values of a root: `runtime`, `agent` or `mount`.
    #[must_use]
    pub fn with(mut self, root: Root, value: Value) -> Self {
        self.roots.insert(root, value);
        self
    }

    /// The same with tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenSource>) -> Self {
        self.tokens = tokens;
        self
    }

    /// The same with the directory of the manifest, where its files are.
    #[must_use]
    pub fn with_base(mut self, directory: &Path) -> Self {
        self.base = Some(directory.into());
        self
    }

    /// The directory of the manifest, if it is known.
    pub(crate) fn base(&self) -> Option<&Path> {
        self.base.as_deref()
    }

    /// A setting, or the default that the tool declares for it.
    pub(crate) fn setting(&self, tool: &Tool, name: &str) -> Option<Value> {
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        find_dotted(&self.settings_of(tool), &path).cloned()
    }

    /// The same with files.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = Some(files);
        self
    }

    /// The files, if the agent has any.
    #[must_use]
    pub fn files(&self) -> Option<&Arc<dyn Files>> {
        self.files.as_ref()
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> String {
        (self.now)()
    }

    /// The values of a root that was given.
    #[must_use]
    pub fn root(&self, root: Root) -> Option<&Value> {
        self.roots.get(&root)
    }

    /// The secrets among a tool's settings. A setting is secret if its format is `password`, if it is
    /// write-only or not declared, or if its name says so.
    #[must_use]
    pub fn secrets(&self, tool: &Tool) -> Secrets {
        let mut secrets = Secrets::default();
        let declared = tool.settings.as_ref().map(|schema| schema.properties());
        for (name, value) in &self.own_settings(tool) {
            let schema = declared.and_then(|declared| declared.get(name));
            let marked = schema.is_none_or(|schema| {
                schema
                    .get("format")
                    .is_some_and(|format| format == "password")
                    || schema.get("writeOnly").is_some_and(|flag| flag == true)
            });
            if marked || sounds_secret(name) || value.is_object() {
                secrets.add_value(value);
            }
        }
        secrets
    }

    /// What the references of a call can name. Tokens are fetched for those that are used.
    pub(crate) async fn scope<'r>(
        &self,
        call: &ActionCall,
        references: impl Iterator<Item = &'r TemplateReference> + Send,
        fresh: bool,
    ) -> Result<TemplateScope, ActionError> {
        let references: Vec<&TemplateReference> = references.collect();
        let mut scope = self.scope_of(call, &references);
        for provider in providers(&references) {
            self.bind_token(&mut scope, &provider, call)?;
            let token = self.tokens.token(&provider, fresh).await;
            self.set_token(&mut scope, &provider, token)?;
        }
        Ok(scope)
    }

    /// The same after a server refused the tokens of an earlier scope.
    pub(crate) async fn scope_instead_of<'r>(
        &self,
        refused: &TemplateScope,
        call: &ActionCall,
        references: impl Iterator<Item = &'r TemplateReference> + Send,
    ) -> Result<TemplateScope, ActionError> {
        let references: Vec<&TemplateReference> = references.collect();
        let mut scope = self.scope_of(call, &references);
        for provider in providers(&references) {
            self.bind_token(&mut scope, &provider, call)?;
            let token = match refused.token(&provider) {
                Some(refused) => self.tokens.token_instead_of(&provider, refused).await,
                None => self.tokens.token(&provider, true).await,
            };
            self.set_token(&mut scope, &provider, token)?;
        }
        Ok(scope)
    }

    /// What all references of a call can name, but for tokens.
    pub(crate) fn scope_without_tokens(&self, call: &ActionCall) -> TemplateScope {
        self.scope_where(call, |_| true)
    }

    /// What these references can name, but for tokens. The rest is not copied: a context may be large.
    fn scope_of(&self, call: &ActionCall, references: &[&TemplateReference]) -> TemplateScope {
        self.scope_where(call, |root| {
            references.iter().any(|reference| reference.root == root)
        })
    }

    fn scope_where(&self, call: &ActionCall, named: impl Fn(Root) -> bool) -> TemplateScope {
        let mut scope = TemplateScope::default();
        if named(Root::Parameters) {
            scope.set(Root::Parameters, Value::Object(call.parameters.clone()));
        }
        if named(Root::Settings) {
            scope.set(Root::Settings, self.settings_of(&call.tool));
        }
        if named(Root::Context) {
            scope.set(Root::Context, call.context.clone());
        }
        for (root, value) in self.roots.iter().filter(|(root, _)| named(**root)) {
            scope.set(*root, value.clone());
        }
        scope
    }

    /// Asks whether the tool may have the tokens of a provider, before one is fetched.
    fn bind_token(
        &self,
        scope: &mut TemplateScope,
        provider: &str,
        call: &ActionCall,
    ) -> Result<(), ActionError> {
        let hosts = self.tokens.granted(provider, &call.tool);
        let hosts = hosts.map_err(|error| ActionError::new(error.failure, error.to_string()))?;
        scope.bind_token(provider, hosts);
        Ok(())
    }

    fn set_token(
        &self,
        scope: &mut TemplateScope,
        provider: &str,
        token: Result<String, TokenError>,
    ) -> Result<(), ActionError> {
        let token = token.map_err(|error| ActionError::new(error.failure, error.to_string()))?;
        scope.set_token(provider, token);
        scope.hide_all(&self.tokens.secrets(provider));
        Ok(())
    }

    /// The settings with the defaults of the tool's schema.
    pub(crate) fn settings_of(&self, tool: &Tool) -> Value {
        let mut settings = self.own_settings(tool);
        if let Some(schema) = &tool.settings {
            for (name, property) in schema.properties() {
                if let (false, Some(default)) =
                    (settings.contains_key(name), property.get("default"))
                {
                    settings.insert(name.clone(), default.clone());
                }
            }
        }
        Value::Object(settings)
    }

    /// What the operator configured for a tool.
    fn own_settings(&self, tool: &Tool) -> Map<String, Value> {
        let (by_tool, shared) = match self.settings.expose() {
            SettingsGiven::Own(settings) => {
                return settings.as_object().cloned().unwrap_or_default();
            }
            SettingsGiven::ByTool(by_tool, shared) => (by_tool, shared),
        };
        let own = by_tool.get(&format!("{}/{}", tool.namespace, tool.name));
        let own = own.and_then(Value::as_object).into_iter().flatten();
        // Who says it with a command means it now.
        own.chain(shared.iter())
            .filter(|(name, _)| declares(tool, name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// Whether a tool declares a setting, or one below it.
fn declares(tool: &Tool, name: &str) -> bool {
    let declared = tool.settings.iter();
    let mut names = declared.flat_map(|settings| settings.properties().keys());
    names.any(|known| {
        let rest = known.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The providers that references name, each once.
fn providers(references: &[&TemplateReference]) -> Vec<String> {
    let mut providers = Vec::new();
    let named = references.iter();
    for reference in named.filter(|reference| reference.root == Root::Auth) {
        let provider = reference.path.join(".");
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    providers
}

/// Whether a name says that its value is a secret.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let words = [
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "credential",
        "credentials",
        "auth",
        "private",
        "apikey",
        "pat",
    ];
    name.to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| words.contains(&word))
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
