//! A stream of changes as its reader sees it, over real HTTP.

use reqwest::{Method, Response};
use serde_json::Value;

use super::Caller;

/// An open stream.
pub struct Stream {
    response: Response,
    text: String,
}

/// What came over a stream.
#[derive(Debug)]
pub enum Said {
    /// A comment.
    Comment,
    /// A change.
    Change(i64, Value),
    /// The end, with its code.
    End(String),
    /// The connection is closed, or broken.
    Closed,
}

impl Stream {
    /// Opens a stream that must open.
    pub async fn open(caller: &Caller, path: &str) -> Self {
        Self::resume(caller, path, None).await.expect("it opens")
    }

    /// Opens a stream behind the last event that came; none if the service is away.
    pub async fn resume(caller: &Caller, path: &str, last: Option<i64>) -> Option<Self> {
        let mut request = caller.request(Method::GET, path);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.ok()?;
        let status = response.status();
        if status == 503 {
            return None;
        }
        assert_eq!(status, 200, "{:?}", response.text().await);
        Some(Self {
            response,
            text: String::new(),
        })
    }

    /// A header of the answer.
    pub fn header(&self, name: &str) -> &str {
        let value = self.response.headers().get(name);
        value.map_or("", |value| value.to_str().expect("a text"))
    }

    /// What comes next.
    pub async fn next(&mut self) -> Said {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let said = read(block);
                self.text = rest.to_owned();
                return said;
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => {
                    let chunk = std::str::from_utf8(&chunk).expect("whole characters");
                    self.text.push_str(chunk);
                }
                Ok(None) | Err(_) => return Said::Closed,
            }
        }
    }

    /// The next change.
    pub async fn change(&mut self) -> (i64, Value) {
        loop {
            match self.next().await {
                Said::Comment => {}
                Said::Change(position, item) => return (position, item),
                other => panic!("no change: {other:?}"),
            }
        }
    }

    /// The next change, by its position, kind and id.
    pub async fn line(&mut self) -> (i64, String) {
        let (position, item) = self.change().await;
        assert_eq!(item["position"], position);
        let word = |name: &str| item[name].as_str().expect("a text").to_owned();
        (
            position,
            format!("{} {} {}", word("op"), word("kind"), word("id")),
        )
    }

    /// Reads on to the end; answers its code, after which nothing comes.
    pub async fn end(&mut self) -> String {
        loop {
            match self.next().await {
                Said::Comment | Said::Change(..) => {}
                Said::End(code) => {
                    assert!(matches!(self.next().await, Said::Closed));
                    return code;
                }
                Said::Closed => panic!("it broke off"),
            }
        }
    }
}

fn read(block: &str) -> Said {
    let line = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
    };
    if block.starts_with(':') {
        return Said::Comment;
    }
    let data = line("data: ").expect("data");
    let data: Value = serde_json::from_str(&data).unwrap_or_else(|e| panic!("{e}: {block}"));
    match line("event: ").as_deref() {
        Some("change") => {
            let id = line("id: ").expect("an id").parse().expect("a position");
            Said::Change(id, data)
        }
        Some("end") => Said::End(data["code"].as_str().expect("a code").to_owned()),
        other => panic!("{other:?}: {block}"),
    }
}
