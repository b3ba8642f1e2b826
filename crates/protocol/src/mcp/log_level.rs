//! How urgent a log message is.

names! {
    /// How urgent a log message is, the least urgent first.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpLogLevel;
    ///
    /// assert!(McpLogLevel::parse("error") > Some(McpLogLevel::Info));
    /// ```
    pub enum McpLogLevel {
        /// For those who look for errors in the server.
        Debug = "debug",
        /// What is usual.
        Info = "info",
        /// What is usual and worth noting.
        Notice = "notice",
        /// What may become an error.
        Warning = "warning",
        /// What failed.
        Error = "error",
        /// A part of the server that failed.
        Critical = "critical",
        /// What somebody must do something about.
        Alert = "alert",
        /// The server cannot be used.
        Emergency = "emergency",
    }
}
