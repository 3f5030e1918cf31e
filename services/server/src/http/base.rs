//! Base: the path that stands before every path of ours where the service is one of several behind
//! a name. A balancer may take it off or leave it on.

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use tower::ServiceExt;

/// The same routes with and without `base` before their paths.
pub fn below(base: &str, routes: Router) -> Router {
    if base.is_empty() {
        return routes;
    }
    let base = base.to_owned();
    // Routes are chosen by the path, so it is changed before.
    let bare = routes.map_request(move |request| without(&base, request));
    Router::new().fallback_service(bare)
}

fn without(base: &str, mut request: Request) -> Request {
    if let Some(uri) = strip(base, request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn strip(base: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix(base)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let path = if rest.is_empty() { "/" } else { rest };
    let query = uri.query().map(|query| format!("?{query}"));
    let both = format!("{path}{}", query.unwrap_or_default());
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(both).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_segment_is_taken_off() {
        let of = |text: &str| {
            let uri = text.parse().expect("an address");
            strip("/team", &uri).map(|uri| uri.to_string())
        };
        assert_eq!(of("/team/mcp?a=1").as_deref(), Some("/mcp?a=1"));
        assert_eq!(of("/team").as_deref(), Some("/"));
        for other in ["/mcp", "/teams/mcp", "/v1/team/mcp"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
