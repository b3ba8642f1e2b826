//! `openapi`: the operations of an API as actions, from the description that the API gives of itself.

mod load;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use proofhouse_wire::sync::lock;
use serde_json::{Map, Value, json};
use url::Url;

use super::response;
use crate::http::{EgressPolicy, HttpClient, ToolRequest};
use crate::runtime::{
    ActionCall, ActionError, ActionFailure, ActionRuntime, ActionSession, Environment, Preview,
    Setup, ToolLimits,
};
use proofhouse_manifest::interpolate::{Root, Secrets, TemplateReference, TemplateScope};
use proofhouse_manifest::{
    DescriptionPlace, Execute, OpenApi, OperationPattern, ParameterSchema, ToolAction,
};
use proofhouse_openapi::{
    CallError, Offered, OpenApiDescription, Operation, OperationCredential, OperationInput,
    OperationRequest, Replies, Surroundings, search,
};

/// How many bytes the schema of one operation may have, when there are few.
const MAX_SCHEMA: usize = 128 << 10;

/// How many bytes the schemas of all operations may have together, since a task may ask for all of them.
const MAX_SCHEMAS: usize = 32 << 20;

/// How much of a body that is not JSON a preview shows.
const MAX_SHOWN_BODY: usize = 4096;

/// How many bytes a schema may always have.
const MIN_SCHEMA: usize = 8 << 10;

/// The runtime, as far as it needs nothing from an operator.
pub(super) fn runtime(setup: &Setup<'_>) -> Result<Arc<dyn ActionRuntime>, ActionError> {
    let client = Arc::clone(&setup.client);
    let runtime = OpenApiRuntime::new(client, setup.limits, setup.egress.clone())?;
    Ok(Arc::new(runtime))
}

/// Carries out the operations of OpenAPI descriptions.
#[derive(Debug, Clone)]
struct OpenApiRuntime {
    client: Arc<HttpClient>,
    /// The same for descriptions, which may be larger than what models read.
    descriptions: Arc<HttpClient>,
    /// How many operations are functions of their own.
    max_functions: usize,
}

/// A description that was loaded.
#[derive(Debug)]
struct Loaded {
    description: OpenApiDescription,
    api: OpenApi,
    /// Parameters that the tool declares for all its actions.
    common: ParameterSchema,
    /// Those of the operations that can be called.
    usable: Vec<String>,
    /// Why one that was meant cannot be.
    unusable: Option<String>,
    /// There are so many that they are searched for, instead of all being functions.
    is_searched: bool,
    max_schema: usize,
    /// Actions that were asked for; their schemas are compiled once.
    actions: Mutex<HashMap<String, KnownOperation>>,
    replies: Replies,
}

/// An action as it can be called.
#[derive(Debug, Clone)]
struct KnownOperation {
    action: Arc<ToolAction>,
    /// What the manifest fills in where nothing is given.
    defaults: Arc<Map<String, Value>>,
}

impl OpenApiRuntime {
    /// A runtime that sends through this client, and fetches descriptions under the same rules.
    fn new(
        client: Arc<HttpClient>,
        limits: &ToolLimits,
        egress: EgressPolicy,
    ) -> Result<Self, ActionError> {
        let limits = ToolLimits {
            max_response_bytes: proofhouse_openapi::MAX_BYTES,
            ..limits.clone()
        };
        let descriptions = Arc::new(HttpClient::new(&limits, egress)?);
        Ok(Self {
            client,
            descriptions,
            max_functions: limits.max_functions,
        })
    }

    /// Carries out `search` or `call`.
    async fn searched(
        &self,
        loaded: &Loaded,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Value, ActionError> {
        let text = |name: &str| call.parameters.get(name).and_then(Value::as_str);
        if call.action.name == search::SEARCH {
            let query = text("query").unwrap_or_default();
            let found = search::search(&loaded.description, &loaded.usable, query);
            let told = found.into_iter().map(|operation| {
                let known = loaded.known(&operation.name, None)?;
                let action = &known.action;
                Ok(search::told(
                    operation,
                    &action.description,
                    &action.parameters.json_schema(),
                ))
            });
            let told: Vec<Value> = told.collect::<Result<_, ActionError>>()?;
            return Ok(json!({"operations": told}));
        }
        let call = loaded.undone(call)?;
        self.exchange(loaded, &call, environment).await
    }

    async fn load(
        &self,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Loaded, ActionError> {
        let Execute::OpenApi(api) = &call.action.execute else {
            return Err(foreign());
        };
        let description = load::load(&self.descriptions, api, call, environment).await?;
        let mut usable = Vec::new();
        let mut unusable = None;
        for operation in &description.operations {
            if !is_meant(api, &description, operation) {
                continue;
            }
            match OperationInput::new(&description, operation) {
                Ok(_) => usable.push(operation.name.clone()),
                Err(reason) => {
                    tracing::warn!(operation = %operation.name, %reason, "an operation is left out");
                    unusable.get_or_insert_with(|| format!("`{}`: {reason}", operation.name));
                }
            }
        }
        let fair = MAX_SCHEMAS / description.operations.len().max(1);
        Ok(Loaded {
            api: api.clone(),
            common: call.tool.parameters.clone(),
            is_searched: usable.len() > self.max_functions,
            usable,
            unusable,
            max_schema: fair.clamp(MIN_SCHEMA, MAX_SCHEMA),
            description,
            actions: Mutex::default(),
            replies: Replies::default(),
        })
    }

    /// Everything of a request that is known before any token is.
    fn prepare<'l>(
        &self,
        loaded: &'l Loaded,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<PreparedOperation<'l>, ActionError> {
        let description = &loaded.description;
        let operation = loaded.operation(&call.action.name)?;
        let input = OperationInput::new(description, operation)
            .map_err(|error| broken(&error.to_string()))?;
        let Execute::OpenApi(api) = &call.action.execute else {
            return Err(foreign());
        };
        let mut parameters = call.parameters.clone();
        for (name, default) in loaded.defaults(&call.action.name).iter() {
            if !parameters.contains_key(name) {
                parameters.insert(name.clone(), default.clone());
            }
        }
        let settings = |name: &str| environment.setting(&call.tool, name);
        let sent = api.headers.iter().map(|header| header.name.clone());
        let sent: Vec<_> = sent.collect();
        let offered = Offered {
            credentials: &api.credentials,
            headers: &sent,
        };
        Ok(PreparedOperation {
            operation,
            input,
            parameters,
            api: api.clone(),
            credentials: proofhouse_openapi::credentials(description, operation, &offered)?,
            base: proofhouse_openapi::base(description, operation, &settings)?,
        })
    }

    async fn exchange(
        &self,
        loaded: &Loaded,
        call: &ActionCall,
        environment: &Environment,
    ) -> Result<Value, ActionError> {
        let prepared = self.prepare(loaded, call, environment)?;
        // Headers and credentials may name parameters that only have defaults.
        let call = &ActionCall {
            parameters: prepared.parameters.clone(),
            ..call.clone()
        };
        let (description, operation) = (&loaded.description, prepared.operation);
        let used = prepared.references();
        let uses_token = used.iter().any(|reference| reference.root == Root::Auth);
        let mut secrets = call.secrets.clone();
        let mut fresh = false;
        loop {
            let scope = environment.scope(call, used.iter().copied(), fresh).await;
            let scope = scope.map_err(|error| error.redacted(&secrets))?;
            secrets.extend(scope.secrets());
            let request = prepared
                .request(loaded, &scope, &mut secrets)
                .map_err(|error| error.redacted(&secrets))?;
            let answer = self.client.send(&request).await;
            let answer = answer.map_err(|error| error.redacted(&secrets))?;
            if answer.status.as_u16() == 401 && uses_token && !fresh {
                fresh = true;
                continue;
            }
            let result = response::result(&answer, None)
                .map_err(|error| response::cut_body(error.redacted(&secrets)))?;
            let violation = loaded
                .replies
                .violation(description, operation, &answer, &result);
            if let Some(violation) = violation {
                let violation = secrets.redact(&violation);
                tracing::warn!(
                    operation = %operation.name,
                    status = answer.status.as_u16(),
                    %violation,
                    "the response is not what the description says"
                );
            }
            return Ok(secrets.redact_value(result));
        }
    }
}

impl ActionRuntime for OpenApiRuntime {
    fn initialize<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Arc<dyn ActionSession>, ActionError>> {
        Box::pin(async move {
            let loaded = self.load(call, environment).await?;
            let runtime = self.clone();
            Ok(Arc::new(OpenApiSession { runtime, loaded }) as Arc<dyn ActionSession>)
        })
    }

    fn completes_actions(&self) -> bool {
        true
    }

    fn previews_by_session(&self) -> bool {
        true
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let Execute::OpenApi(api) = &preview.call.action.execute else {
            return Err(foreign());
        };
        let place = match &api.url {
            Some(DescriptionPlace::Url(url)) => preview.url(Some(url))?,
            Some(DescriptionPlace::File(path)) => path.as_str().into(),
            None => Value::Null,
        };
        Ok(json!({
            "description": {"url": place, "headers": preview.headers(&api.headers)?},
            "operation": preview.call.action.name,
            "arguments": preview.call.parameters,
        }))
    }
}

/// An operation that is about to be called.
struct PreparedOperation<'l> {
    operation: &'l Operation,
    input: OperationInput,
    parameters: Map<String, Value>,
    api: OpenApi,
    credentials: Vec<OperationCredential>,
    base: Url,
}

impl PreparedOperation<'_> {
    /// What its headers and credentials refer to.
    fn references(&self) -> Vec<&TemplateReference> {
        let headers = self.api.headers.iter();
        let headers = headers.flat_map(|header| header.value.references());
        let credentials = self.credentials.iter();
        let credentials = credentials.flat_map(|credential| credential.value.references());
        headers.chain(credentials).collect()
    }

    /// The request, with what is secret in it noted.
    fn request(
        &self,
        loaded: &Loaded,
        scope: &TemplateScope,
        secrets: &mut Secrets,
    ) -> Result<ToolRequest, ActionError> {
        scope.check_hosts(&self.base)?;
        let around = surroundings(&self.api, &self.credentials, &self.base, scope, secrets)?;
        let request = proofhouse_openapi::request(
            &loaded.description,
            self.operation,
            &self.input,
            &self.parameters,
            &around,
        )?;
        Ok(request.into())
    }
}

/// The description that a task loaded, and what sends its requests.
struct OpenApiSession {
    runtime: OpenApiRuntime,
    loaded: Loaded,
}

impl ActionSession for OpenApiSession {
    fn why_none(&self) -> Option<String> {
        let loaded = &self.loaded;
        let description = &loaded.description;
        let mut reason = match (description.operations.len(), &loaded.unusable) {
            (0, _) => "the OpenAPI description has no operation".to_owned(),
            (count, Some(unusable)) => format!(
                "none of the {count} operations of the OpenAPI description can be called; for example: {unusable}"
            ),
            (count, None) => format!(
                "`include` and `exclude` of the manifest leave none of the {count} operations of the OpenAPI description"
            ),
        };
        if let Some(left_out) = description.left_out() {
            reason.push_str(&format!("; some of its paths cannot be used: {left_out}"));
        }
        Some(reason)
    }

    fn preview(&self, mut preview: Preview<'_>) -> Result<Value, ActionError> {
        let loaded = &self.loaded;
        let mut call = preview.call.clone();
        if loaded.is_searched && call.action.name == search::SEARCH {
            // It looks into what is here already.
            return Ok(json!({"search": call.parameters}));
        }
        if loaded.is_searched && call.action.name == search::CALL {
            call = loaded.undone(&call)?;
        }
        let prepared = self.runtime.prepare(loaded, &call, preview.environment)?;
        preview.set_parameters(&prepared.parameters);
        let used = prepared.references();
        let scope = preview.scope_of(used.into_iter());
        let mut secrets = call.secrets.clone();
        let request = prepared.request(loaded, scope, &mut secrets)?;
        let mut shown = preview.sent(&request);
        let body = request.body.expose();
        if !body.is_empty() {
            shown["body"] = match serde_json::from_slice(body) {
                Ok(json) => json,
                Err(_) => match std::str::from_utf8(body) {
                    Ok(text) => text.chars().take(MAX_SHOWN_BODY).collect::<String>().into(),
                    Err(_) => format!("{} bytes", body.len()).into(),
                },
            };
        }
        shown["operation"] = call.action.name.as_str().into();
        Ok(secrets.redact_value(shown))
    }

    fn derived(&self) -> Vec<String> {
        if self.loaded.is_searched {
            return vec![search::SEARCH.to_owned(), search::CALL.to_owned()];
        }
        self.loaded.usable.clone()
    }

    fn action(
        &self,
        name: &str,
        declared: Option<&Arc<ToolAction>>,
    ) -> Result<Option<Arc<ToolAction>>, ActionError> {
        let loaded = &self.loaded;
        // Operations that are only searched for can be called by their names all the same: whoever knows one, such as an
        // agent's manifest or who undoes a `call`, need not search.
        if declared.is_none()
            && loaded.is_searched
            && let Some((description, schema)) = search::described(name, loaded.usable.len())
        {
            return Ok(Some(Arc::new(ToolAction {
                name: name.to_owned(),
                description,
                parameters: ParameterSchema::given(schema),
                execute: Execute::OpenApi(loaded.api.clone()),
            })));
        }
        let operation = loaded.description.operation(name);
        let is_there = |found| is_meant(&loaded.api, &loaded.description, found);
        if declared.is_none() && !operation.is_some_and(is_there) {
            return Ok(None);
        }
        loaded.known(name, declared).map(|known| Some(known.action))
    }

    fn invoke<'a>(
        &'a self,
        call: &'a ActionCall,
        environment: &'a Environment,
    ) -> BoxFuture<'a, Result<Value, ActionError>> {
        let is_declared = call
            .tool
            .actions
            .iter()
            .any(|action| action.name == call.action.name);
        let is_search = matches!(call.action.name.as_str(), search::SEARCH | search::CALL);
        if self.loaded.is_searched && !is_declared && is_search {
            return Box::pin(self.runtime.searched(&self.loaded, call, environment));
        }
        Box::pin(self.runtime.exchange(&self.loaded, call, environment))
    }
}

impl Loaded {
    fn operation(&self, name: &str) -> Result<&Operation, ActionError> {
        let found = self.description.operation(name);
        found.ok_or_else(|| broken(&self.description.unknown(name)))
    }

    /// The call of an operation that a `call` stands for.
    fn undone(&self, call: &ActionCall) -> Result<ActionCall, ActionError> {
        let wrong = |message| ActionError::new(ActionFailure::Arguments, message);
        let name = call.parameters.get("operation").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        if !self.usable.iter().any(|known| known == name) {
            return Err(wrong(self.description.unknown(name)));
        }
        let known = self.known(name, None)?;
        let given = call.parameters.get("arguments").and_then(Value::as_object);
        let given = given.cloned().unwrap_or_default();
        let parameters = known.action.parameters.complete(given);
        Ok(ActionCall {
            parameters: parameters.map_err(|problems| wrong(problems.join("; ")))?,
            action: known.action,
            ..call.clone()
        })
    }

    /// The action of an operation, with the defaults that the manifest gives its parameters.
    fn known(
        &self,
        name: &str,
        declared: Option<&Arc<ToolAction>>,
    ) -> Result<KnownOperation, ActionError> {
        let operation = self.operation(name)?;
        let name = declared.map_or(&operation.name, |action| &action.name);
        let mut actions = lock(&self.actions);
        if let Some(known) = actions.get(name) {
            return Ok(known.clone());
        }
        let input = OperationInput::new(&self.description, operation)
            .map_err(|error| broken(&error.to_string()))?;
        let mut schema = input.schema(&self.description, self.max_schema);
        let own = declared.map_or(&self.common, |action| &action.parameters);
        let defaults = overlay(&mut schema, own.properties());
        let description = match declared {
            Some(action) if !action.description.is_empty() => action.description.clone(),
            _ => proofhouse_openapi::about(&self.description, operation),
        };
        let execute = match declared {
            Some(action) => action.execute.clone(),
            None => Execute::OpenApi(self.api.clone()),
        };
        let action = ToolAction {
            name: name.clone(),
            description,
            parameters: ParameterSchema::given(schema),
            execute,
        };
        let known = KnownOperation {
            action: Arc::new(action),
            defaults: Arc::new(defaults),
        };
        actions.insert(name.clone(), known.clone());
        Ok(known)
    }

    /// The defaults of an action that is being called.
    fn defaults(&self, action: &str) -> Arc<Map<String, Value>> {
        let actions = lock(&self.actions);
        let known = actions.get(action);
        known
            .map(|known| Arc::clone(&known.defaults))
            .unwrap_or_default()
    }
}

/// Whether the manifest wants an operation to be derived.
fn is_meant(api: &OpenApi, description: &OpenApiDescription, operation: &Operation) -> bool {
    let tags = search::tags(description, operation);
    let is_named =
        |pattern: &OperationPattern| pattern.matches(&operation.name, &operation.path, &tags);
    let is_included = api.include.is_empty() || api.include.iter().any(is_named);
    is_included && !api.exclude.iter().any(is_named)
}

/// Puts what the manifest says of parameters over what the description says; returns its defaults.
fn overlay(schema: &mut Value, own: &Map<String, Value>) -> Map<String, Value> {
    let mut defaults = Map::new();
    for (name, property) in own {
        let mut merged = match schema["properties"].get(name) {
            Some(Value::Object(derived)) => derived.clone(),
            _ => Map::new(),
        };
        merged.extend(property.as_object().cloned().unwrap_or_default());
        merged.shift_remove("require_binding");
        if let Value::Array(required) = &mut schema["required"] {
            required.retain(|known| known != name);
            match merged
                .get("default")
                .filter(|_| property.get("default").is_some())
            {
                Some(default) => {
                    defaults.insert(name.clone(), default.clone());
                }
                // A parameter of a manifest that has no default is needed.
                None => required.push(name.clone().into()),
            }
        }
        schema["properties"][name] = merged.into();
    }
    defaults
}

/// The credentials and headers of a request, filled in; what is secret among them is noted.
fn surroundings(
    api: &OpenApi,
    wanted: &[OperationCredential],
    base: &Url,
    scope: &TemplateScope,
    secrets: &mut Secrets,
) -> Result<Surroundings, ActionError> {
    let mut credentials = Vec::new();
    for credential in wanted {
        let value = credential.render(scope, secrets)?;
        credentials.push((credential.place.clone(), value));
    }
    let mut headers = Vec::new();
    for header in &api.headers {
        headers.push((header.name.clone(), header.render(scope)?));
    }
    Ok(Surroundings {
        base: base.clone(),
        credentials,
        headers,
    })
}

fn broken(reason: &str) -> ActionError {
    ActionError::new(ActionFailure::Manifest, reason)
}

fn foreign() -> ActionError {
    broken("this is not an `openapi` action")
}

impl From<CallError> for ActionError {
    fn from(error: CallError) -> Self {
        let failure = match error {
            CallError::Template(error) => return error.into(),
            CallError::Setting(_) => ActionFailure::Setting,
            CallError::Arguments(_) => ActionFailure::Arguments,
            CallError::TooLarge(_) => ActionFailure::TooLarge,
            CallError::Manifest(_) => ActionFailure::Manifest,
        };
        Self::new(failure, error.to_string())
    }
}

impl From<OperationRequest> for ToolRequest {
    fn from(request: OperationRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body,
        }
    }
}
