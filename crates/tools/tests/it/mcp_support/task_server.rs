//! An MCP server on the official SDK that answers calls with tasks, over HTTP and over stdio.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult, InputRequest, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, serve_server};
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::watch;

/// What a server was asked and what became of its tasks, in order.
pub(crate) type TaskDiary = Arc<dyn Fn(&str) + Send + Sync>;

const TOOLS: &[&str] = &[
    "steps", "now", "mistake", "fails", "stops", "asks", "samples", "hangs", "forgets", "nags",
];

/// A server whose tools are all tasks, but for `now`.
#[derive(Clone)]
pub(crate) struct TaskTools {
    tasks: TaskManager,
    /// How often a task was asked about.
    questions: watch::Sender<u64>,
    diary: TaskDiary,
}

impl TaskTools {
    pub(crate) fn new(diary: TaskDiary) -> Self {
        Self {
            tasks: TaskManager::new(),
            questions: watch::Sender::new(0),
            diary,
        }
    }

    /// What a tool does.
    async fn work(self, tool: String, context: TaskContext) -> Result<CallToolResult, TaskExit> {
        match tool.as_str() {
            // Over only after it was seen at work twice.
            "steps" => {
                let mut questions = self.questions.subscribe();
                let _ = questions.wait_for(|count| *count >= 2).await;
                Ok(text("done in steps"))
            }
            "mistake" => Ok(CallToolResult::error(vec![ContentBlock::text(
                "no luck with sk-secret/1",
            )])),
            "fails" => {
                Err(ErrorData::internal_error("the disk is full of sk-secret/1", None).into())
            }
            "stops" => Err(TaskExit::Cancelled),
            "asks" => {
                let user = context.request_input("user", elicitation()).await?;
                let files = request(json!({"method": "roots/list"}));
                let files = context.request_input("files", files).await?;
                Ok(text(&json!([user, files]).to_string()))
            }
            "samples" => {
                let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
                let params = json!({"messages": [message], "maxTokens": 5});
                let sampling =
                    request(json!({"method": "sampling/createMessage", "params": params}));
                let answer = context.request_input("model", sampling).await;
                self.note_cancelled(&context);
                answer.map(|answer| text(&answer.to_string()))
            }
            "nags" => {
                for number in 0.. {
                    let key = format!("key {number}");
                    let answer = context.request_input(key, elicitation()).await;
                    if answer.is_err() {
                        self.note_cancelled(&context);
                    }
                    answer?;
                }
                Ok(text("never"))
            }
            _ => {
                context.cancelled().await;
                self.note_cancelled(&context);
                Err(TaskExit::Cancelled)
            }
        }
    }

    fn note_cancelled(&self, context: &TaskContext) {
        if context.is_cancel_requested() {
            (self.diary)("cancelled");
        }
    }
}

fn text(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn request(value: Value) -> InputRequest {
    serde_json::from_value(value).unwrap()
}

fn elicitation() -> InputRequest {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"mode": "form", "message": "Really?", "requestedSchema": schema});
    request(json!({"method": "elicitation/create", "params": params}))
}

impl ServerHandler for TaskTools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap();
        let tool = |name: &&'static str| Tool::new(*name, "", schema.clone());
        let tools = TOOLS.iter().map(tool).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        (self.diary)("called");
        let tool = request.name.into_owned();
        if tool == "now" {
            return Ok(text("at once").into());
        }
        let own = self.clone();
        let options = TaskOptions::new().with_poll_interval_ms(1);
        let task = self
            .tasks
            .spawn(options, move |context| Box::pin(own.work(tool, context)));
        Ok(CreateTaskResult::new(task).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.tasks.get_task(&request.task_id)?;
        self.questions.send_modify(|count| *count += 1);
        if *self.questions.borrow() == 1 {
            (self.diary)("asked");
        }
        Ok(GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        (self.diary)("answered");
        let answers = request.input_responses;
        self.tasks.update_task(&request.task_id, answers)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

/// Serves on a loopback port until the runtime ends; yields the URL and what happens.
pub(crate) async fn over_http() -> (String, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&seen);
    let tools = TaskTools::new(Arc::new(move |what| {
        noting.lock().unwrap().push(what.to_owned());
    }));
    let config = StreamableHttpServerConfig::default();
    let sessions = LocalSessionManager::default().into();
    let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = axum::Router::new().nest_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://127.0.0.1:{port}/mcp"), seen)
}

/// Serves over the pipes of this process until the input ends.
pub(crate) fn over_stdio(diary: TaskDiary) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let input = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
        let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
        let input = pipe::Receiver::from_owned_fd(input).unwrap();
        let output = pipe::Sender::from_owned_fd(output).unwrap();
        let running = serve_server(TaskTools::new(diary), (input, output)).await;
        let _ = running.unwrap().waiting().await;
    });
}
