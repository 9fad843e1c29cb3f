//! How an object looks in answers and headers.

use hyper::header::{
    ACCEPT_RANGES, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED,
};
use ikada_api::state::{Object, ObjectVersion};
use ikada_api::v1::{Number, OBJECT_MODIFIED_HEADER, OBJECT_VERSION_HEADER, ObjectInfo};

/// One version as a document.
pub(in crate::http) fn describe(object: &Object, version: &ObjectVersion) -> ObjectInfo {
    ObjectInfo {
        bucket: object.bucket.to_string(),
        key: object.name.to_string(),
        version: Number(version.version),
        size: version.size,
        digest: version.digest.to_string(),
        content_type: version.content_type.clone(),
        modified_ms: version.created_ms,
        address: version.address.clone(),
        lsn: None,
    }
}

/// One version as headers.
pub(super) fn add_headers(headers: &mut HeaderMap, version: &ObjectVersion) {
    let tag = format!("\"{}\"", version.digest);
    let pairs = [
        (ETAG, tag),
        (CONTENT_TYPE, version.content_type.clone()),
        (LAST_MODIFIED, http_date(version.created_ms)),
        (HeaderName::from_static(OBJECT_VERSION_HEADER), version.version.to_string()),
        (HeaderName::from_static(OBJECT_MODIFIED_HEADER), version.created_ms.to_string()),
    ];
    for (name, text) in pairs {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // What users upload must not run as a page of this node.
    headers.insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
}

/// A time as headers have it, such as `Sun, 15 Nov 2026 15:04:05 GMT`.
pub(super) fn http_date(time_ms: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (time_ms / 86_400_000, time_ms / 1000 % 86_400);
    let weekday = DAYS[(days % 7) as usize];
    let (year, month, day) = civil(days);
    let month = MONTHS[(month - 1) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// A time as documents of S3 have it, such as `2026-11-15T15:04:05.000Z`.
pub(in crate::http) fn iso_date(time_ms: u64) -> String {
    let (days, second, ms) = (time_ms / 86_400_000, time_ms / 1000 % 86_400, time_ms % 1000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a number of days since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    // 400 years always have the same number of days, so large numbers stay cheap.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    loop {
        let length = 365 + u64::from(is_leap(year));
        if left < length {
            break;
        }
        (year, left) = (year + 1, left - length);
    }
    let february = 28 + u64::from(is_leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        (month, left) = (month + 1, left - length);
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_795_705_445, "Thu, 26 Nov 2026 15:04:05 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(seconds * 1000), text);
        }
    }
}
