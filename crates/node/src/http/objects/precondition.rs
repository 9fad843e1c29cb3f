//! `If-Match` and `If-None-Match`: what must be true of an object.

use hyper::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};
use ikada_api::state::{Digest, PutCondition};

use crate::http::answer::Stop;
use crate::http::problems::bad_parameter;

/// Tags of one header.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Tags {
    /// `*`.
    Any,
    /// Those that can be tags of ours.
    These(Vec<Digest>),
}

impl Tags {
    /// Whether a digest is among them.
    pub(in crate::http) fn hold(&self, digest: &Digest) -> bool {
        match self {
            Tags::Any => true,
            Tags::These(tags) => tags.contains(digest),
        }
    }
}

/// The tags of a header; none if it is absent. A tag that cannot be ours matches nothing.
pub(in crate::http) fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Tags>, Stop> {
    let mut found = Vec::new();
    let mut given = false;
    for value in headers.get_all(name) {
        given = true;
        let text = value.to_str().map_err(|_| bad_parameter(name.as_str(), "is not plain text"))?;
        if text.trim() == "*" {
            return Ok(Some(Tags::Any));
        }
        for tag in text.split(',') {
            let tag = tag.trim();
            let tag = tag.strip_prefix("W/").unwrap_or(tag);
            found.extend(Digest::parse(tag.trim_matches('"')));
        }
    }
    Ok(given.then_some(Tags::These(found)))
}

/// What a change demands.
pub(in crate::http) fn condition(headers: &HeaderMap) -> Result<PutCondition, Stop> {
    let (wanted, unwanted) = (tags(headers, &IF_MATCH)?, tags(headers, &IF_NONE_MATCH)?);
    match (wanted, unwanted) {
        (None, None) => Ok(PutCondition::Any),
        (None, Some(Tags::Any)) => Ok(PutCondition::Absent),
        (Some(Tags::Any), None) => Ok(PutCondition::Present),
        (Some(Tags::These(tags)), None) if tags.len() == 1 => Ok(PutCondition::Match(tags[0])),
        (Some(_), None) => Err(bad_parameter("if-match", "must be * or one ETag").into()),
        (None, Some(_)) => Err(bad_parameter("if-none-match", "must be * for a change").into()),
        (Some(_), Some(_)) => {
            Err(bad_parameter("if-match", "give If-Match or If-None-Match, not both").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Option<PutCondition> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        condition(&headers).ok()
    }

    #[test]
    fn conditions_are_read_or_refused() {
        let tag = Digest([7; 32]);
        assert_eq!(read(&[]), Some(PutCondition::Any));
        assert_eq!(read(&[("if-none-match", "*")]), Some(PutCondition::Absent));
        assert_eq!(read(&[("if-match", "*")]), Some(PutCondition::Present));
        let quoted = format!("\"{tag}\"");
        assert_eq!(read(&[("if-match", &quoted)]), Some(PutCondition::Match(tag)));
        assert_eq!(read(&[("if-none-match", &quoted)]), None);
        assert_eq!(read(&[("if-match", "\"nonsense\"")]), None);
        assert_eq!(read(&[("if-match", "*"), ("if-none-match", "*")]), None);
    }
}
