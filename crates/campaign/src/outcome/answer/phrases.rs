//! The words by which answers are told from errors, in small letters: what SDKs, frameworks and servers print.

/// What programs print for nothing.
#[rustfmt::skip]
pub(super) const NOTHING: &[&str] = &[
    "", "none", "null", "undefined", "nil", "nan", "[object object]", "(empty)", "<empty>", "\"\"", "''", "no output",
    "(no output)", "(no content)", "no content", "[no response]", "(no response)", "no response", "no response.",
    "<no response>", "content=''", "[done]",
];

/// Keys of an object that say that something failed.
#[rustfmt::skip]
pub(super) const ERROR_KEYS: &[&str] = &[
    "error", "errors", "exception", "error_message", "errorMessage", "errorType", "error_code", "errorCode",
    "traceback", "fault", "__type",
];

/// Keys of an object that hold an answer.
#[rustfmt::skip]
pub(super) const ANSWER_KEYS: &[&str] = &[
    "answer", "result", "output", "summary", "response", "content", "text", "final", "final_answer", "reply", "data",
    "results", "value",
];

/// How objects of errors begin that Python printed.
#[rustfmt::skip]
pub(super) const PYTHON_ERRORS: &[&str] = &[
    "{'error':", "{'errors':", "'type': 'error'", "{'detail':", "{'message': 'internal",
];

/// Words in the titles of error pages.
#[rustfmt::skip]
pub(super) const PAGE_TITLES: &[&str] = &[
    "bad gateway", "service unavailable", "service temporarily unavailable", "gateway time-out", "gateway timeout",
    "internal server error", "too many requests", "access denied", "attention required", "just a moment", "forbidden",
    "not found", "unauthorized", "request entity too large", "bad request", "error",
];

/// Who speaks, where a program says so.
#[rustfmt::skip]
pub(super) const SPEAKERS: &[&str] = &[
    "assistant:", "agent:", "ai:", "bot:", "model:", "answer:", "final answer:", "response:", "output:", "result:",
];

/// Levels of logs that tell of no error.
#[rustfmt::skip]
pub(super) const LOG_LEVELS: &[&str] = &[
    "INFO", "DEBUG", "TRACE", "WARN", "WARNING", "NOTICE", "info", "debug", "trace", "warn", "warning",
];

/// How lines begin that programs write beside an answer.
#[rustfmt::skip]
pub(super) const NOTES: &[&str] = &[
    "node.js v", "process exited", "exit code", "retrying in", "retrying request", "attempt ", "give feedback",
    "litellm.info:", "provider list:", "if you need to debug this error", "deprecationwarning", "(use `node --trace",
    "calling tool ", "invoking tool ", "tool call:", "tool input:", "action input:",
];

/// How traces of a stack begin.
#[rustfmt::skip]
pub(super) const TRACES: &[&str] = &[
    "traceback (most recent call last)", "during handling of the above exception", "the above exception was",
    "uncaught exception", "uncaught error", "unhandled exception", "unhandled error", "unhandled rejection",
    "unhandledpromiserejection", "node:internal/", "node:events:", "panic:", "goroutine ", "fatal error",
    "exception in thread", "exception group traceback", "stack trace:", "caused by:", "command failed:", "npm err!",
    "npm error", "segmentation fault", "killed", "aborted (core dumped)", "out of memory",
    "a critical error occurred", "thread 'main' panicked", "thread 'tokio",
];

/// What an error is called at the beginning of a line, and what may stand before it.
#[rustfmt::skip]
pub(super) const ERROR_WORDS: &[&str] = &[
    "error", "exception", "fatal", "failure", "failed", "critical", "err",
];
#[rustfmt::skip]
pub(super) const ERROR_OWNERS: &[&str] = &[
    "api", "model", "llm", "ai", "agent", "server", "internal", "connection", "network", "request", "provider",
    "openai", "anthropic", "claude", "gemini", "googlegenerativeai", "ollama", "litellm", "langchain", "azure",
    "bedrock", "vertex", "mistral", "groq", "runtime", "chat", "completion", "inference", "stream", "streaming",
    "unexpected", "system", "http", "https", "upstream", "gateway", "timeout", "rate", "limit", "unhandled",
    "uncaught", "unknown", "authentication", "backend", "generation", "sdk", "client", "the", "an", "critical",
    "fatal",
];

/// How the names of exceptions end.
#[rustfmt::skip]
pub(super) const EXCEPTION_ENDS: &[&str] = &[
    "Error", "Exception", "Timeout", "Exceeded", "Refused", "Interrupt", "Exit", "Fault", "Failure", "Unavailable",
    "Overflow", "NotFound", "Exhausted", "Denied", "Behavior", "Retry",
];

/// What follows the number of a status.
#[rustfmt::skip]
pub(super) const STATUS_WORDS: &[&str] = &[
    "too many", "bad gateway", "service", "gateway", "internal", "unauthorized", "forbidden", "not found",
    "bad request", "payment required", "request", "client error", "server error", "status code", "error",
    "you exceeded", "overloaded", "unprocessable", "method not allowed", "conflict", "incorrect api", "rate limit",
    "invalid",
];

/// How somebody announces what comes, and has said nothing yet.
#[rustfmt::skip]
pub(super) const ANNOUNCEMENTS: &[&str] = &[
    "let me", "i'll", "i will now", "i am going to", "i'm going to", "sure", "okay", "ok,", "certainly", "of course",
    "one moment", "checking", "looking", "thinking", "calling", "using", "connect", "start", "running", "loading",
    "processing", "working on", "fetching", "reading", "user:", "prompt:", "question:", "tool call", "calling tool",
    "invoking", "[tool", "agent started", "listening", "loaded", "discovered", "found",
];

/// What may stand before the announcement of what its speaker is about to do, and says nothing beside it.
#[rustfmt::skip]
pub(super) const CONSENTS: &[&str] = &[
    "sure thing", "sure", "okay", "ok", "certainly", "of course", "absolutely", "alright", "great", "got it",
    "no problem", "happy to help", "i'd be happy to help", "i can help with that", "i can help you with that",
];
#[rustfmt::skip]
pub(super) const MOMENTS: &[&str] = &[
    "one moment", "just a moment", "a moment", "give me a moment", "one second", "just a second", "hold on", "hang on",
];
#[rustfmt::skip]
pub(super) const INTENTIONS: &[&str] = &[
    "let me ", "let's ", "i'll ", "i will ", "i am going to ", "i'm going to ", "i am about to ", "i'm about to ",
    "i need to ", "i'm ", "i am ", "",
];
#[rustfmt::skip]
pub(super) const SOON: &[&str] = &[
    "now", "just", "first", "quickly", "go", "ahead", "and", "have", "take", "a", "quick", "help", "you", "with", "that",
    "start", "by", "begin", "try", "to", "currently",
];
/// What is done to find an answer, and is none.
#[rustfmt::skip]
pub(super) const LOOKING: &[&str] = &[
    "look", "check", "fetch", "find", "search", "read", "get", "see", "call", "use", "open", "retrieve", "pull", "query",
    "load", "browse", "consult", "access",
];
/// The same while it is done.
#[rustfmt::skip]
pub(super) const AT_IT: &[&str] = &[
    "looking", "checking", "fetching", "finding", "searching", "reading", "getting", "calling", "opening", "retrieving",
    "querying", "loading",
];
/// Words with which a sentence says more than that.
#[rustfmt::skip]
pub(super) const CONDITIONS: &[&str] = &[
    "not", "but", "before", "until", "unless", "without", "only", "if", "because", "however", "instead", "never", "don't",
    "can't", "cannot", "won't", "although", "though", "since", "except", "whether", "nothing", "no", "none", "nobody",
    "is", "are", "was", "were", "it's", "showed", "shows", "said", "says", "found",
];

/// How apologies begin, the long ones first.
#[rustfmt::skip]
pub(super) const APOLOGIES: &[&str] = &[
    "i'm so sorry", "i'm very sorry", "i'm really sorry", "i'm sorry", "i am sorry", "we're sorry", "we are sorry",
    "so sorry", "sorry about that", "sorry", "i sincerely apologize", "i apologize", "i apologise", "we apologize",
    "my apologies", "apologies", "for the inconvenience", "for the trouble", "unfortunately", "oops", "uh oh",
    "uh-oh", "oh no", "hmm", "whoops", "but", "however", "it seems that", "it seems", "it looks like",
    "it appears that", "looks like", "at the moment", "right now", "currently",
];

/// How sentences begin that say only what to do next.
#[rustfmt::skip]
pub(super) const FILLERS: &[&str] = &[
    "please try", "please wait", "please retry", "please check", "please contact", "please reach", "please set",
    "please reduce", "please ensure", "please slow", "please go to", "please visit", "please refresh",
    "please rephrase", "please provide", "please see", "please verify", "please make sure", "please add",
    "please pass", "try again", "try later", "try pulling", "retry", "contact ", "if the problem", "if the issue",
    "if the error", "if this ", "if you believe", "if you continue", "if you need", "thank you for your patience",
    "thanks for your patience", "see http", "see the", "see https", "for more information", "for more details",
    "for troubleshooting", "visit http", "http://", "https://", "request id", "(request id", "request-id", "error id",
    "help us", "check your", "check the", "check that", "check whether", "limit:", "limit ", "used:", "used ",
    "requested:", "requested ", "current:", "current ", "you can find your", "you can find", "you can retry",
    "you can increase", "you may", "our team", "we are working", "we're working", "our engineers", "details:",
    "reason:", "reset reason", "passed model", "please modify", "please come", "please log in", "please sign in", "(",
    "code:", "status:", "is ollama running", "is the server running", "have you", "did you", "error code:",
    "this might be", "this may be", "this could be", "this is likely", "your message was not",
    "your messages resulted", "your input", "reduce the length", "either pass", "available models", "set it",
    "make sure", "come back", "be back", "give it", "wait a", "the server is likely", "the team has been",
    "someone has been", "we have been", "we've been", "an administrator", "the administrator", "learn more",
    "more info", "read more", "documentation:", "docs:",
];

/// Words of a filler that asks to be asked again.
#[rustfmt::skip]
pub(super) const RETRY: &[&str] = &[
    "try again", "try later", "retry", "come back later",
];

/// How sentences begin that say that the program itself failed.
#[rustfmt::skip]
pub(super) const OWN_FAILURES: &[&str] = &[
    "error calling", "error communicating", "error generating", "error code", "error during", "error while calling",
    "error while generating", "error while processing", "error while running", "error while communicating",
    "error from", "error processing", "error connecting", "error invoking", "error running", "error executing agent",
    "error in agent", "error in llm", "error in model", "error in input stream", "error in output stream",
    "error querying", "error fetching response", "error occurred", "error streaming", "error getting response",
    "error contacting", "error talking to", "error reading response", "error parsing response", "error parsing llm",
    "error decoding response", "error sending request", "error response from", "failed to generate",
    "failed to get a response", "failed to get response", "failed to get completion", "failed to call the model",
    "failed to call llm", "failed to call openai", "failed to connect to the model", "failed to connect to openai",
    "failed to connect to ollama", "failed to connect to the llm", "failed to connect to anthropic",
    "failed to connect to model", "failed to initialize the model", "failed to load model",
    "failed to load the model", "failed to reach the model", "failed to complete the chat", "failed to process your",
    "failed to parse llm", "failed to invoke", "failed to create completion", "failed to deserialize",
    "failed to fetch", "could not connect to the model", "could not connect to openai", "could not connect to ollama",
    "could not connect to the llm", "could not connect to anthropic", "could not reach the model",
    "couldn't reach the model", "could not resolve authentication method", "could not parse llm output",
    "could not generate", "couldn't connect to ollama", "couldn't connect to the model", "couldn't generate",
    "could not get a response", "couldn't get a response", "unable to connect to the model",
    "unable to connect to openai", "unable to connect to ollama", "unable to connect to the llm",
    "unable to connect to anthropic", "unable to reach the model", "unable to reach the language model",
    "unable to process your request", "unable to generate", "unable to get a response",
    "unable to complete the request", "unable to locate credentials", "i'm unable to process your request",
    "i am unable to process your request", "i was unable to process your request",
    "i can't process your request right", "i cannot process your request right", "i'm having trouble connecting",
    "i am having trouble connecting", "i'm having technical", "i am having technical", "i'm experiencing technical",
    "i am experiencing technical", "we're experiencing", "we are experiencing", "we are currently experiencing",
    "we're currently experiencing", "i'm temporarily unavailable", "i am temporarily unavailable",
    "i'm currently unavailable", "i am currently unavailable", "i'm not available", "i could not reach the model",
    "i couldn't reach the model", "i could not generate", "i couldn't generate", "i was unable to generate",
    "i was unable to get a response from the model", "no response from", "no response was", "no response generated",
    "no answer from the model", "no model is", "no model was", "no model configured", "no api key",
    "no deployments available", "no healthy upstream", "no output generated", "no generations", "received empty",
    "received an empty", "the response was empty", "the response was filtered", "got an empty response",
    "invalid response from", "llm call failed", "model call failed", "llm request failed", "api call failed",
    "api request failed", "chat completion failed", "agent failed", "agent execution failed", "agent error",
    "the request failed", "the request timed out", "the request was aborted", "the operation was aborted",
    "this operation was aborted", "the operation timed out", "your request was rejected", "your request was blocked",
    "your request could not", "your request couldn't", "your request failed", "your request timed out",
    "your credit balance", "your api key", "your account is not active", "your organization",
    "your authentication token", "you exceeded your", "you have exceeded your", "you've exceeded your",
    "you have reached your", "you've reached your", "you have insufficient", "you didn't provide an api key",
    "you have no credits", "you are being rate limited", "usage limit reached", "insufficient quota",
    "insufficient credits", "insufficient balance", "monthly limit", "upstream request timeout", "invalid api key",
    "incorrect api key", "missing api key", "api key not", "api key is missing", "api key missing",
    "invalid authentication", "openai_api_key", "anthropic_api_key", "the api_key client option",
    "expected either apikey", "maximum number of iterations", "maximum number of turns", "reached max",
    "need more steps to process", "execution terminated", "execution failed", "step limit reached",
    "the agent stopped", "the agent did not return", "the agent failed", "the agent could not be",
    "invalid or incomplete llm response", "content blocked", "blocked by content", "response blocked", "[blocked",
    "[filtered", "[content filtered", "[error", "(error", "certificate verify", "cannot connect to host",
    "all connection attempts failed", "litellm proxy", "an unexpected error occurred", "an unknown error occurred",
    "there are no healthy", "i hit a rate limit", "i hit the rate limit", "your session has expired",
    "'nonetype' object", "list index out of range", "expecting value: line", "string indices must be",
    "maximum recursion depth", "unsupported operand", "object of type 'nonetype'", "cannot read properties of",
    "cannot read property", "undefined is not", "unexpected token", "unexpected end of json", "invalid json",
    "err_connection", "err_", "net::err_", "[errno", "errno", "there was a problem communicating",
    "there was a network error",
];

/// What failed, in one or two words: a sentence of nothing else, or of what it happened to.
#[rustfmt::skip]
pub(super) const OWN_WORDS: &[&str] = &[
    "timeout", "timed out", "read timed out", "deadline exceeded", "context deadline exceeded", "overloaded",
    "unauthorized", "forbidden", "internal error", "access token", "server error", "system error", "unknown error",
    "unexpected error", "network error", "connection error", "connection failed", "connection refused",
    "connection timed out", "connection reset", "connection closed", "connection aborted", "connect call failed",
    "max iterations", "maximum iterations", "max turns", "max steps", "iteration limit", "recursion limit",
    "internal server error", "bad gateway", "gateway timeout", "service unavailable",
    "service temporarily unavailable", "too many requests", "rate limit", "rate-limit", "ratelimit", "quota exceeded",
    "authentication failed", "authentication error", "authentication required", "generation failed",
    "completion failed", "inference failed", "request failed", "request timed out", "request timeout",
    "request aborted", "technical difficulties", "fetch failed", "socket hang up", "getaddrinfo", "ssl:",
    "something went wrong", "server overloaded", "server disconnected", "upstream error", "upstream connect error",
    "network request failed", "agent stopped", "empty response", "no completion", "no choices",
];

/// What follows such words where they tell of a failure.
#[rustfmt::skip]
pub(super) const OWN_NEXT: &[&str] = &[
    "after", "while", "when", "waiting", "calling", "from", "error", "exceeded", "reached", "occurred", "connecting",
    "talking", "during", "please", "with", "for", "without", "due", "or", "hit", "expired", "invalid", "(request",
    "in", "on",
];

/// How sentences begin that say that something failed; what follows says whose failure it is.
#[rustfmt::skip]
pub(super) const VAGUE_FAILURES: &[&str] = &[
    "an error occurred", "an error has occurred", "an internal error occurred", "an internal error has occurred",
    "an exception occurred", "an unexpected error has occurred", "an unexpected error",
    "an internal server error occurred", "a server error occurred", "i encountered an error",
    "i encountered an issue", "i encountered a problem", "i encountered an unexpected error",
    "i encountered a technical", "i've encountered an error", "i ran into an error", "i ran into an issue",
    "i ran into a problem", "i got an error", "i hit an error", "we encountered an error", "we encountered a problem",
    "we ran into", "we hit a snag", "there was an error", "there was an issue", "there was a problem",
    "there has been an error", "there seems to be a problem", "there seems to be an issue", "encountered an error",
    "got an error",
];

/// What a program works on, and an agent with tools does not name.
#[rustfmt::skip]
pub(super) const OWN_WORK: &[&str] = &[
    "request", "response", "model", "llm", "completion", "your message", "your query", "your question",
    "conversation", "generat", "openai", "anthropic", "ollama", "the agent", "chat", "provider", "try again",
    "on our end", "on our side", "our server", "on my end", "the api", "the server had", "processing",
];

/// What a model that has an answer tells of: what tools, files and pages showed it, and what that means.
#[rustfmt::skip]
pub(super) const NARRATED: &[&str] = &[
    "tool", "the file", "the page", "the website", "the web page", "the document", "the email", "the command",
    "the log", "the script", "the database", "the directory", "the folder", "the weather", "the forecast",
    "the calendar", "the repository", "the search", "the link", "the url", "the function", "the ticket", "i tried",
    "i called", "when i", "i attempted", "i checked", "i asked", "i read", "i looked", "i searched", "i found",
    "i received", "it returned", "which returned", " returned ", "it reported", "reported that", "it says", "it said",
    "it responded", "responded with", "replied with", "came back with", "told me", ", so ", " so i ", "therefore",
    "which means", "this means", "because", "instead", "the result", "the output was", "the user", "would you like",
    "you can use", "to fix", "in the code", "in your code", "line ", "the error is", "the error was",
    "the error message", "the bug", "the test", "the endpoint /", "status of", "the host", "the site", "the job",
    "the build", "the deployment", "the pod", "the container",
];

/// What others do, and a program without its model does not speak of.
#[rustfmt::skip]
pub(super) const NARRATED_WORK: &[&str] = &[
    "tool", "the file", "the page", "the document", "the account", "the user", "you did not", "you have not",
    "confirm",
];

/// Words that tell of a failed call of a model, or of the network on the way to it, wherever they stand.
#[rustfmt::skip]
pub(super) const FAILURES: &[&str] = &[
    "rate limit reached for", "rate limit exceeded", "rate_limit_exceeded", "rate_limit_error", "rate limited",
    "overloaded_error", "exceeded your current quota", "insufficient_quota", "incorrect api key", "invalid api key",
    "invalid x-api-key", "invalid_api_key", "api key not valid", "no api key", "missing api key",
    "api_key client option", "api key was not", "openai_api_key", "anthropic_api_key", "credit balance is too low",
    "maximum context length", "context_length_exceeded", "prompt is too long", "context window", "model_not_found",
    "does not exist or you do not have access", "try pulling it first", "econnrefused", "econnreset", "etimedout",
    "enotfound", "eai_again", "all connection attempts failed", "max retries exceeded with url",
    "failed to establish a new connection", "name or service not known", "temporary failure in name resolution",
    "remote end closed connection", "server disconnected without", "connection refused", "connection reset by peer",
    "connection aborted", "read timed out", "request timed out", "fetch failed", "socket hang up",
    "certificate_verify_failed", "certificate verify failed", "502 bad gateway", "503 service", "504 gateway",
    "429 too many", "500 internal", "content management policy", "content_filter", "our safety system",
    "resource_exhausted", "resource has been exhausted", "agent stopped due to", "recursion limit of",
    "graph_recursion_limit", "output_parsing_failure", "could not parse llm output",
    "request failed with status code", "status code 429", "status code 500", "status code 503", "status code: 429",
    "error code: 4", "error code: 5", "throttlingexception", "too many tokens", "on-demand throughput",
    "is currently overloaded", "server had an error while processing", "currently loading",
];

/// How sentences go on that say that something cannot be done, who may say so, and what a program cannot do without its model.
#[rustfmt::skip]
pub(super) const SPEAKING: &[&str] = &[
    "i'm", "i am", "i was", "i've been", "i", "we're", "we are", "we were", "we", "it was", "currently",
    "temporarily", "still", "the assistant", "the agent", "the app", "the bot", "right now",
];
#[rustfmt::skip]
pub(super) const UNABLE: &[&str] = &[
    "unable to", "not able to", "could not", "couldn't", "cannot", "can't", "failed to", "having trouble",
    "had trouble",
];
#[rustfmt::skip]
pub(super) const WORK: &[&str] = &[
    "reach", "reaching", "contact", "contacting", "connect", "connecting", "call", "calling", "query", "access",
    "accessing", "invoke", "load", "get", "getting", "respond", "responding", "answer", "answering", "generate",
    "generating", "complete", "completing", "process", "processing", "produce", "finish", "talk",
];
/// What such work is done with, or when: that says that it is the program's.
#[rustfmt::skip]
pub(super) const WORK_WITH: &[&str] = &[
    "model", "llm", "ai provider", "provider", "openai", "anthropic", "ollama", "upstream", "completion",
    "a response", "the response", "any response", "an answer from", "right now", "at this time", "at the moment",
    "try again",
];

/// What serves answers, and the words that may stand before it.
#[rustfmt::skip]
pub(super) const MODEL_NOUNS: &[&str] = &[
    "model", "models", "llm", "ai", "assistant", "api", "provider", "openai", "anthropic", "claude", "gpt", "chatgpt",
    "gemini", "ollama", "mistral", "azure", "bedrock", "vertex", "inference", "engine", "chatbot", "llama",
    "completion", "litellm", "groq", "cohere", "deepseek", "qwen", "vllm", "openrouter",
];
#[rustfmt::skip]
pub(super) const MODEL_WORDS: &[&str] = &[
    "the", "this", "that", "our", "your", "my", "a", "an", "language", "large", "chat", "selected", "requested",
    "configured", "underlying", "remote", "completions", "generative", "google", "aws", "amazon", "microsoft", "meta",
    "virtual", "smart", "hosted", "local", "default", "primary", "fallback", "named", "called", "endpoint", "s",
    "error",
];

/// What may serve answers, and may as well be what an agent was asked about; and states that only the first is in.
#[rustfmt::skip]
pub(super) const SERVER_NOUNS: &[&str] = &[
    "server", "service", "system", "agent", "proxy", "gateway", "backend", "upstream", "bot", "deployment",
];
#[rustfmt::skip]
pub(super) const SERVER_STATES: &[&str] = &[
    "unavailable", "overloaded", "temporarily", "at capacity", "high demand", "had an error", "experiencing",
    "too busy", "stopped due", "maintenance",
];

/// What follows the name of a model in a sentence about its state.
#[rustfmt::skip]
pub(super) const MODEL_VERBS: &[&str] = &[
    "is", "are", "was", "were", "has", "had", "did", "didn't", "does", "doesn't", "could", "couldn't", "cannot",
    "can't", "returned", "failed", "timed", "refused", "rejected", "requires", "exceeded", "call", "request",
    "stopped", "not", "currently", "temporarily", "error", "encountered", "crashed", "overloaded", "unavailable",
    "isn't", "can", "seems", "appears", "may", "might", "responded",
];

/// States in which a model does not answer.
#[rustfmt::skip]
pub(super) const MODEL_STATES: &[&str] = &[
    "unavailable", "not available", "overloaded", "is down", "are down", "offline", "not responding",
    "did not respond", "didn't respond", "not respond", "unreachable", "at capacity", "over capacity", "is busy",
    "too busy", "not loaded", "not found", "does not exist", "doesn't exist", "timed out", "returned an error",
    "returned an empty", "returned no", "returned error", "not configured", "not running", "is loading",
    "currently loading", "exceeded", "had an error", "could not be reached", "couldn't be reached",
    "cannot be reached", "can't be reached", "refused the", "rejected the", "out of credits", "out of service",
    "not be loaded", "failed to respond", "failed to load", "failed to start", "call failed", "request failed",
    "error occurred", "encountered an error", "experiencing", "high demand", "under maintenance",
    "has been deprecated", "has been decommissioned", "not enabled", "not supported", "no longer available",
    "requires more system memory", "shutting down", "not ready", "is not connected", "stopped due", "having trouble",
    "having issues", "having problems", "crashed", "not complete", "returned status", "returned http", "returned 4",
    "returned 5", "is not responding",
];
