//! One keep-alive connection to the service, as lean as pgbench's to Postgres: load generator and
//! service share the machine, so what the generator costs is missing from the service's figures.

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::operation::{Call, Operation};

/// A connection that carries one call at a time.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
    line: String,
    body: Vec<u8>,
}

impl Connection {
    /// Connects to the service at an address like `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub async fn open(url: &str) -> anyhow::Result<Self> {
        let host = url
            .strip_prefix("http://")
            .context("the service speaks plain HTTP here")?;
        let stream = TcpStream::connect(host)
            .await
            .context("connecting to the service")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::new(stream),
            host: host.to_owned(),
            line: String::new(),
            body: Vec::new(),
        })
    }

    /// Calls an operation and reads its answer whole.
    ///
    /// # Errors
    /// If the service does not answer with success, quoting its problem.
    pub async fn call(&mut self, operation: &Operation) -> anyhow::Result<()> {
        let request = match &operation.call {
            Call::Get(path) => self.request("GET", path, operation, "", ""),
            Call::GetAnew(path) => {
                self.request("GET", path, operation, "Cache-Control: no-cache\r\n", "")
            }
            Call::Post(path, body) => self.request("POST", path, operation, "", body),
            Call::Batch(items) => {
                let (body, _) = Operation::batch_body(&operation.project, items);
                self.request("POST", "/v1/events", operation, "", &body)
            }
        };
        self.stream
            .write_all(request.as_bytes())
            .await
            .context("calling the service")?;
        let status = self.read_answer().await.context("reading an answer")?;
        // 207 says that something of the request was refused.
        if status != 200 {
            bail!("{status} {}", String::from_utf8_lossy(&self.body));
        }
        Ok(())
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        operation: &Operation,
        header: &str,
        body: &str,
    ) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Cairn-Project: {}\r\nContent-Type: application/json\r\n{header}\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            operation.key,
            operation.encoded_project(),
            body.len(),
        )
    }

    /// The status; the body stays in `self.body`.
    async fn read_answer(&mut self) -> anyhow::Result<u16> {
        self.next_line().await?;
        let status = self
            .line
            .split(' ')
            .nth(1)
            .context("a status line")?
            .parse()?;
        let mut length = None;
        loop {
            self.next_line().await?;
            let line = self.line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
        self.body
            .resize(length.context("an answer of known length")?, 0);
        self.stream.read_exact(&mut self.body).await?;
        Ok(status)
    }

    async fn next_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        if self.stream.read_line(&mut self.line).await? == 0 {
            bail!("the service closed the connection");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Answers each of two calls on one connection, the second with a problem.
    async fn double(listener: TcpListener) {
        let (stream, _) = listener.accept().await.expect("a connection");
        let mut stream = BufReader::new(stream);
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n\r\nok",
            "HTTP/1.1 503 Gone\r\nContent-Length: 4\r\n\r\nbusy",
        ] {
            let mut line = String::from("-");
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).await.expect("a line");
            }
            stream.write_all(answer.as_bytes()).await.expect("written");
        }
    }

    #[tokio::test]
    async fn answers_are_read_to_their_end_and_refusals_are_quoted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let served = tokio::spawn(double(listener));
        let operation = Operation {
            key: "k".to_owned(),
            project: "name:p".to_owned(),
            call: Call::Get("/v1/context".to_owned()),
        };
        let mut connection = Connection::open(&url).await.expect("connected");
        connection.call(&operation).await.expect("answered");
        let refused = connection.call(&operation).await.expect_err("refused");
        assert_eq!(refused.to_string(), "503 busy");
        served.await.expect("served");
    }
}
