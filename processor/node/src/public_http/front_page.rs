//! `GET /` for a browser: a page of links. Other clients get what the schema registry serves there.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};

/// A path of this address and what it has.
pub type Link = (&'static str, &'static str);

/// Links of every node.
pub const REGISTRY: &[Link] = &[
    ("/subjects", "the subjects of the schema registry"),
    ("/schemas", "their schemas"),
    ("/config", "the compatibility level"),
];

/// Links of a node with an embedded log. A command is no link: `POST /commands`.
pub const TOPICS: &[Link] = &[
    ("/events", "events of workflows, of partition 0"),
    ("/replies", "outcomes of commands, of partition 0"),
    ("/rejections", "commands that were refused, of partition 0"),
];

/// Answers a browser that opens the root, and passes on everything else.
pub async fn for_browsers(State(page): State<Arc<str>>, request: Request, next: Next) -> Response {
    let is_page =
        |accept: &header::HeaderValue| accept.to_str().is_ok_and(|types: &str| types.contains("text/html"));
    let is_asked = *request.method() == Method::GET
        && request.uri().path() == "/"
        && request.headers().get(header::ACCEPT).is_some_and(is_page);
    if is_asked { Html(page.to_string()).into_response() } else { next.run(request).await }
}

/// The page, of constant text only.
pub fn render(links: &[&[Link]]) -> String {
    let item = |(path, what): &Link| format!("<li><a href=\"{path}\">{path}</a>: {what}</li>\n");
    let items: String = links.concat().iter().map(item).collect();
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Everlog</title>\n<h1>Everlog {version}</h1>\n<ul>\n{items}</ul>\n\
         <p>SDKs connect to the address of gRPC. docs/http.md describes this one.</p>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_is_on_the_page() {
        let page = render(&[REGISTRY, TOPICS]);
        for (path, _) in REGISTRY.iter().chain(TOPICS) {
            assert_eq!(page.matches(&format!("<a href=\"{path}\">")).count(), 1, "{page}");
        }
        assert!(!render(&[REGISTRY]).contains("/events"));
    }
}
