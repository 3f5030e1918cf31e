//! A browser of a test: follows nowhere by itself, keeps one cookie, fills in forms.

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder};

use super::caller::{Caller, Reply};

/// A browser.
pub struct Browser {
    http: Client,
    /// The replica that it talks to.
    pub base: String,
    /// What it keeps.
    pub cookie: Option<String>,
}

impl Browser {
    /// One that was never here.
    pub fn new(base: &str) -> Self {
        // Installs what encrypts, once.
        drop(Caller::new(base, None));
        let http = Client::builder().redirect(reqwest::redirect::Policy::none());
        Self {
            http: http.build().expect("a client"),
            base: base.to_owned(),
            cookie: None,
        }
    }

    /// A request as a browser sends it, to be filled.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(cookie) = &self.cookie {
            request = request.header(COOKIE, cookie);
        }
        request
    }

    pub async fn send(&mut self, request: RequestBuilder) -> Reply {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        if let Some(set) = headers.get(SET_COOKIE) {
            let set = set.to_str().expect("a text");
            self.cookie = set.split(';').next().map(str::to_owned);
        }
        Reply {
            status,
            headers,
            text: response.text().await.expect("a body"),
        }
    }

    pub async fn get(&mut self, path: &str) -> Reply {
        let request = self.request(Method::GET, path);
        self.send(request).await
    }

    /// Sends a form with what the page `on` has hidden in its first form, and these fields.
    pub async fn submit(&mut self, on: &Reply, path: &str, fields: &[(&str, &str)]) -> Reply {
        let mut all = hidden(&on.text);
        for (name, value) in fields {
            all.retain(|(known, _)| known != name);
            all.push(((*name).to_owned(), (*value).to_owned()));
        }
        let request = self.request(Method::POST, path);
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form(&all));
        self.send(request).await
    }

    /// Signs in with a code on the page that is shown at `path`; what is shown there then.
    pub async fn sign_in(&mut self, path: &str, code: &str) -> Reply {
        let page = self.get(path).await;
        assert!(page.text.contains("One-time sign-in code"), "{page:?}");
        let done = self
            .submit(&page, "/oauth/sign-in", &[("code", code)])
            .await;
        assert_eq!(done.status, 303, "{done:?}");
        let next = location(&done);
        self.get(&next).await
    }
}

/// Where an answer leads.
pub fn location(reply: &Reply) -> String {
    let to = reply.headers.get(LOCATION);
    let to = to.unwrap_or_else(|| panic!("leads nowhere: {reply:?}"));
    to.to_str().expect("a text").to_owned()
}

/// Fields as a form sends them.
pub fn form(fields: &[(String, String)]) -> String {
    let mut url = reqwest::Url::parse("http://form/").expect("an address");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

/// Hidden fields of the first form of a page.
pub fn hidden(page: &str) -> Vec<(String, String)> {
    let first = page.split("</form>").next().unwrap_or_default();
    let fields = first.split("<input type=\"hidden\" name=\"").skip(1);
    let read = |field: &str| {
        let (name, rest) = field.split_once("\" value=\"")?;
        let (value, _) = rest.split_once('"')?;
        Some((
            name.to_owned(),
            value.replace("&#38;", "&").replace("&amp;", "&"),
        ))
    };
    fields.filter_map(read).collect()
}
