//! Finding a route for a method and a path.

use super::{ROUTES, Route, Verb};

/// What was found.
#[derive(Debug)]
pub enum Found {
    /// A route, with the names in its path.
    Route(&'static Route, Vec<String>),
    /// The path exists with other methods.
    OtherVerbs(Vec<Verb>),
    /// No such path.
    Nothing,
}

/// Finds the route; `HEAD` counts as `GET`. Whole segments are compared, never prefixes or substrings (B4-55).
pub fn find(method: &str, path: &str) -> Found {
    let wanted = match method {
        "GET" | "HEAD" => Some(Verb::Get),
        "POST" => Some(Verb::Post),
        "PUT" => Some(Verb::Put),
        "DELETE" => Some(Verb::Delete),
        _ => None,
    };
    let mut others = Vec::new();
    for route in ROUTES {
        let Some(names) = match_path(route.path, path) else {
            continue;
        };
        if Some(route.verb) == wanted {
            return Found::Route(route, names);
        }
        if !others.contains(&route.verb) {
            others.push(route.verb);
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherVerbs(others) }
}

fn match_path(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut names = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(names),
            (Some(word), Some(segment)) if word.ends_with("*}") => {
                let rest = given.fold(segment.to_owned(), |rest, part| format!("{rest}/{part}"));
                names.push(unescape(&rest).filter(|name| !name.is_empty())?);
                return wanted.next().is_none().then_some(names);
            }
            (Some(word), Some(segment)) if word.starts_with('{') => {
                // An empty name is no name; `..` and the like are refused later, by the name's own rule.
                names.push(unescape(segment).filter(|name| !name.is_empty())?);
            }
            (Some(word), Some(segment)) if word == segment => {}
            _ => return None,
        }
    }
}

/// Undoes percent escapes; none if they are broken or do not give text.
pub(crate) fn unescape(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// Reads a query string into pairs; none if an escape is broken.
pub fn read_query(query: &str) -> Option<Vec<(String, String)>> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((unescape(name)?, unescape(&value.replace('+', " "))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Operation;

    fn operation(method: &str, path: &str) -> Option<(Operation, Vec<String>)> {
        match find(method, path) {
            Found::Route(route, names) => Some((route.operation, names)),
            _ => None,
        }
    }

    #[test]
    fn fixed_words_win_only_for_their_methods() {
        assert_eq!(operation("POST", "/v1/tasks/claim"), Some((Operation::Claim, vec![])));
        let shown = Some((Operation::ShowTask, vec!["claim".to_owned()]));
        assert_eq!(operation("GET", "/v1/tasks/claim"), shown);
        assert_eq!(operation("HEAD", "/healthz"), Some((Operation::Health, vec![])));
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(operation("GET", "/v1/tasks/a%2eb").unwrap().1, ["a.b"]);
        assert_eq!(operation("GET", "/v1/tasks/a%2Fb").unwrap().1, ["a/b"]);
        assert!(operation("GET", "/v1/tasks/a%2").is_none());
        assert!(operation("GET", "/v1/tasks/%ff").is_none());
    }

    #[test]
    fn the_name_of_an_object_is_all_that_follows() {
        let names = |path| operation("GET", path).map(|(_, names)| names);
        let found = |key: &str| Some(vec!["b".to_owned(), key.to_owned()]);
        assert_eq!(names("/v1/objects/b/x/y.txt"), found("x/y.txt"));
        assert_eq!(names("/v1/objects/b/x%2Fy%20z"), found("x/y z"));
        assert_eq!(names("/v1/objects/b/../etc"), found("../etc"), "refused later, by its rule");
        assert_eq!(names("/v1/objects/b/"), None);
        assert_eq!(operation("PUT", "/v1/objects/b/k").unwrap().0, Operation::PutObject);
        assert_eq!(operation("GET", "/v1/objects/b").unwrap().0, Operation::ListObjects);
    }

    // B4-55
    #[test]
    fn b4_55_paths_match_whole() {
        for path in [
            "/dashboard/",
            "/v1",
            "/v1/tasks/",
            "/v1/tasks/a/b",
            "/x/v1/tasks",
            "/v1/tasks/a/cancel/",
            "//v1/tasks",
        ] {
            assert!(matches!(find("GET", path), Found::Nothing | Found::OtherVerbs(_)), "{path}");
        }
        assert!(
            matches!(find("DELETE", "/v1/tasks"), Found::OtherVerbs(verbs) if verbs.len() == 2)
        );
    }

    #[test]
    fn queries_are_read() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let read = read_query("a=1&b=%20+x&c").unwrap();
        assert_eq!(read, vec![pair("a", "1"), pair("b", "  x"), pair("c", "")]);
        assert_eq!(read_query("a=%zz"), None);
    }
}
