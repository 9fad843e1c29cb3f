//! Lists the names of a bucket, a page at a time.

use hyper::Method;

use super::place::{Door, StorePlace};
use super::send::{Ask, Store, StoreError};
use super::xml;
use crate::azure;

/// Most names on a page: with the longest names it still is an answer that is read at once.
const KEYS_PAGE_MAX: usize = 250;

/// A page of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names of objects, in the store's order. One that is no good as text is left out.
    pub keys: Vec<String>,
    /// Where the next page begins; none after the last.
    pub next: Option<String>,
}

impl Store {
    /// Names that begin as the key of this place, after where an earlier page ended.
    pub async fn list(
        &self,
        beginning: &StorePlace,
        after: Option<&str>,
    ) -> Result<Listed, StoreError> {
        let bucket = StorePlace { key: String::new(), ..beginning.clone() };
        let mut ask = Ask::new(Method::GET, &bucket);
        if beginning.door == Door::Azure {
            ask.query = azure::list_query(&beginning.key, after, KEYS_PAGE_MAX);
            let (keys, next) = azure::read_list(&self.send(&ask).await?.text);
            return Ok(Listed { keys, next });
        }
        ask.query = vec![
            ("list-type", "2".to_owned()),
            ("max-keys", KEYS_PAGE_MAX.to_string()),
            ("prefix", beginning.key.clone()),
        ];
        ask.query.extend(after.map(|after| ("continuation-token", after.to_owned())));
        let page = self.send(&ask).await?.text;
        let keys = xml::elements(&page, "Key").into_iter().filter_map(xml::unescape).collect();
        Ok(Listed { keys, next: xml::first(&page, "NextContinuationToken") })
    }
}
