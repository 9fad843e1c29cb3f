//! How parts of a blob are named and put together, and how the names of a container are asked for and read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::s3::xml;

/// The name of a block. All names of one upload are equally long, as the store wants it, and those of another upload to
/// the same blob are different: blocks wait under the blob's name until they are put together.
pub(crate) fn block_id(upload: &str, number: u32) -> String {
    STANDARD.encode(format!("{upload}-{number:06}"))
}

/// The document that puts blocks together, in this order.
pub(crate) fn block_list<'a>(ids: impl Iterator<Item = &'a String>) -> String {
    let blocks: String = ids.map(|id| xml::element("Latest", id)).collect();
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>{blocks}</BlockList>")
}

/// Asks for names that begin so, after where the last page ended.
pub(crate) fn list_query(
    prefix: &str,
    after: Option<&str>,
    keys_max: usize,
) -> Vec<(&'static str, String)> {
    let mut query = vec![
        ("restype", "container".to_owned()),
        ("comp", "list".to_owned()),
        ("maxresults", keys_max.to_string()),
    ];
    if !prefix.is_empty() {
        query.push(("prefix", prefix.to_owned()));
    }
    query.extend(after.map(|after| ("marker", after.to_owned())));
    query
}

/// Names on a page, and where the next one begins. Of a name that is no good as text, the page's own words.
pub(crate) fn read_list(document: &str) -> (Vec<Result<String, String>>, Option<String>) {
    let names = xml::elements(document, "Name").into_iter().map(xml::read_name).collect();
    (names, xml::first(document, "NextMarker").filter(|marker| !marker.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_names_of_one_length_and_keep_their_order() {
        let ids = [block_id("00ff", 1), block_id("00ff", 10_000)];
        assert_eq!(ids[0].len(), ids[1].len());
        assert_ne!(ids[0], block_id("00fe", 1), "of another upload");
        let list = block_list(ids.iter());
        assert_eq!(xml::elements(&list, "Latest"), [ids[0].as_str(), ids[1].as_str()]);
    }

    #[test]
    fn pages_of_names_are_read() {
        let page = "\u{feff}<EnumerationResults ContainerName=\"c\"><Blobs><Blob><Name>a&amp;b</Name><Properties>\
            <Etag>0x8</Etag></Properties></Blob><Blob><Name>c/d e</Name></Blob></Blobs><NextMarker>2!8</NextMarker></EnumerationResults>";
        assert_eq!(
            read_list(page),
            (vec![Ok("a&b".to_owned()), Ok("c/d e".to_owned())], Some("2!8".to_owned()))
        );
        assert_eq!(read_list("<Blobs /><NextMarker />"), (Vec::new(), None));
        assert_eq!(read_list("<NextMarker></NextMarker>"), (Vec::new(), None));
        let query = list_query("", None, 7);
        assert!(query.iter().all(|(name, _)| !["prefix", "marker"].contains(name)), "{query:?}");
    }
}
