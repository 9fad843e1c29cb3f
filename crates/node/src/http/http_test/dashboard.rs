//! The page for people: its bytes, its headers, and who may load it.

use hyper::StatusCode;

use super::Bench;
use super::roles::guarded;
use crate::http::HttpLimits;

#[tokio::test]
async fn the_page_comes_with_a_strict_policy_and_a_tag() {
    let bench = Bench::guarded(HttpLimits::default(), guarded());
    let page = bench.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let policy = page.header("content-security-policy");
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(!text.contains("http://") && !text.contains("https://"), "nothing from elsewhere");
    for address in text.split('"').filter(|part| part.starts_with("/dashboard/")) {
        let file = bench.get(address).await;
        assert_eq!(file.status, StatusCode::OK, "{address}");
        let again = [("if-none-match", file.header("etag"))];
        let known = bench.send("GET", address, &again, "").await;
        assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0), "{address}");
        let changed = bench.send("GET", address, &[("if-none-match", "\"other\"")], "").await;
        assert_eq!(changed.body, file.body);
    }
}

#[tokio::test]
async fn only_files_of_the_page_are_served() {
    let bench = Bench::new();
    for path in [
        "/dashboard/nothing.js",
        "/dashboard/../Cargo.toml",
        "/dashboard/%2e%2e/Cargo.toml",
        "/dashboard//etc/passwd",
        "/dashboard/tests/chrome.mjs",
    ] {
        assert_eq!(bench.get(path).await.code(), "no_route", "{path}");
    }
    assert_eq!(bench.post("/", "{}").await.status, StatusCode::METHOD_NOT_ALLOWED);
    // X14: a name that a stranger's name server points at this node
    let rebound = [("host", "evil.example:7400"), ("sec-fetch-site", "same-origin")];
    assert_eq!(bench.send("GET", "/", &rebound, "").await.code(), "foreign_origin");
}

/// Names of metrics in a text.
fn metrics_in(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    parts.filter(|part| part.starts_with("ikada_")).collect()
}

async fn assert_metrics_exist(names: &[&str]) {
    let page = String::from_utf8(Bench::new().get("/metrics").await.body.to_vec()).unwrap();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("# TYPE {name} ")), "{name} is no metric");
    }
}

#[tokio::test]
async fn the_file_for_grafana_names_metrics_that_exist() {
    let grafana = include_str!("../../../../../deploy/grafana/ikada.json");
    assert_metrics_exist(&metrics_in(grafana)).await;
}

// TQ-24, TQ-31
#[tokio::test]
async fn tq_24_the_rules_for_prometheus_name_metrics_that_exist() {
    let rules = include_str!("../../../../../docs/prometheus/ikada.rules.yml");
    let expressions: Vec<&str> = rules.lines().filter(|line| line.contains("expr:")).collect();
    let mut names: Vec<&str> = expressions.iter().flat_map(|line| metrics_in(line)).collect();
    // Those of schedules and certificates are only shown where there are some.
    let seldom =
        [include_str!("../../metrics/schedules.rs"), include_str!("../../metrics/security.rs")];
    let is_seldom =
        |name: &str| seldom.iter().any(|source| source.contains(&format!("\"{name}\"")));
    assert!(names.iter().any(|name| is_seldom(name)), "{names:?}");
    names.retain(|name| !is_seldom(name));
    assert_metrics_exist(&names).await;
}

#[test]
fn every_alert_has_a_runbook() {
    let rules = include_str!("../../../../../docs/prometheus/ikada.rules.yml");
    let runbooks = include_str!("../../../../../docs/runbooks.md");
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let parts: Vec<&str> = runbooks.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(alerts.len() > 15, "{alerts:?}");
    assert_eq!(alerts, parts, "in the same order");
}
