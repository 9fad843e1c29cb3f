//! Lists the names of a bucket, a page at a time.

use hyper::Method;

use super::place::{Door, StorePlace};
use super::send::{Ask, Store, StoreError};
use super::xml;
use crate::azure;

/// Most names on a page: with the longest names it still is an answer that is read at once.
const KEYS_PAGE_MAX: usize = 250;

/// Letters of an unreadable name that are shown.
const SHOWN_MAX: usize = 200;

/// A page of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names of objects, in the store's order.
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
            return Ok(Listed { keys: self.read_keys(keys)?, next });
        }
        ask.query = vec![
            ("list-type", "2".to_owned()),
            ("max-keys", KEYS_PAGE_MAX.to_string()),
            ("prefix", beginning.key.clone()),
        ];
        ask.query.extend(after.map(|after| ("continuation-token", after.to_owned())));
        let page = self.send(&ask).await?.text;
        let keys = xml::elements(&page, "Key").into_iter().map(xml::read_name).collect();
        let keys = self.read_keys(keys)?;
        Ok(Listed { keys, next: xml::first(&page, "NextContinuationToken") })
    }

    /// All names of a page: who lists counts on none being missing.
    fn read_keys(&self, keys: Vec<Result<String, String>>) -> Result<Vec<String>, StoreError> {
        let keys: Result<Vec<String>, String> = keys.into_iter().collect();
        keys.map_err(|raw| {
            let raw: String = raw.chars().take(SHOWN_MAX).collect();
            self.refused(
                200,
                "UnreadableKey",
                format!("it lists the name {raw:?}, which is no text"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_35_a_name_that_is_no_text_is_told_and_not_left_out() {
        let page = "<Key>a&amp;b</Key><Key>c&#xffffffff;d</Key>";
        let read: Vec<_> = xml::elements(page, "Key").into_iter().map(xml::read_name).collect();
        assert_eq!(read, [Ok("a&b".to_owned()), Err("c&#xffffffff;d".to_owned())]);
        let (names, _) = azure::read_list("<Name>a</Name><Name>&bad;</Name>");
        assert_eq!(names, [Ok("a".to_owned()), Err("&bad;".to_owned())]);
    }
}
