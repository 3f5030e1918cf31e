//! An agent's side of MCP: `cairn mcp` as a host would start it, one call after the other.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::client::Client;

/// The protocol version that the demo speaks.
const PROTOCOL: &str = "2025-11-25";

/// A running shim.
pub struct Shim {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    calls: u64,
}

impl Shim {
    /// Starts the shim in a checkout and greets the server behind it.
    ///
    /// # Errors
    /// If it does not start or answer.
    pub fn start(client: &Client, checkout: &Path) -> anyhow::Result<Self> {
        let mut command = client.command(checkout);
        command
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("starting cairn mcp")?;
        let output = BufReader::new(child.stdout.take().context("a piped stdout")?);
        let mut shim = Self {
            input: child.stdin.take(),
            child,
            output,
            calls: 0,
        };
        let about = json!({"name": "cairn-demo", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about});
        shim.request("initialize", &hello)?;
        shim.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(shim)
    }

    /// Calls a tool; answers the text it gives to the model.
    ///
    /// # Errors
    /// If the call fails or the tool refuses; the refusal is quoted.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<String> {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        let text = text.with_context(|| format!("{tool} answered without text: {result}"))?;
        if result["isError"] == json!(true) {
            bail!("{tool} refused: {text}");
        }
        Ok(text.to_owned())
    }

    fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                bail!("cairn mcp ended instead of answering {method}");
            }
            let mut message: Value = serde_json::from_str(&line).context("a line of cairn mcp")?;
            if message["id"] == json!(id) {
                if let Some(error) = message.get("error") {
                    bail!("{method} failed: {error}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("cairn mcp has been closed")?;
        writeln!(input, "{message}")
            .and_then(|()| input.flush())
            .context("writing to cairn mcp")
    }
}

impl Drop for Shim {
    /// The end of its input is the shim's end.
    fn drop(&mut self) {
        drop(self.input.take());
        let time = std::time::Duration::from_secs(5);
        if !crate::process::wait_for(time, || !matches!(self.child.try_wait(), Ok(None))) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
