//! Every bound of the client door, with its reason (X7).

use std::time::Duration;

/// Bounds of the client door.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Largest body with one task: the payload bound of 1 MiB as base64, and room for the other fields.
    pub task_body_bytes_max: usize,
    /// Largest body of a list; with the number of bodies in flight this bounds memory.
    pub batch_body_bytes_max: usize,
    /// Bytes of bodies held at one time, over all requests.
    pub bodies_bytes_max: usize,
    /// Most items of one list: one list should be one log entry or a few.
    pub items_max: usize,
    /// Largest request head (request line and headers).
    pub head_bytes_max: usize,
    /// Longest path with query.
    pub url_bytes_max: usize,
    /// Most tasks of one page.
    pub page_max: usize,
    /// Tasks of a page when the caller names no number.
    pub page_default: usize,
    /// Most connections at one time; further ones are told so and closed.
    pub connections_max: usize,
    /// Most connections of one address (one network, for IPv6): one client must not shut out all others.
    pub connections_per_address_max: usize,
    /// Most requests in flight; long polls count.
    pub requests_max: usize,
    /// Most event streams at one time: each holds a connection for hours.
    pub streams_max: usize,
    /// Most uploads of objects at one time, and most of outputs: each holds a few MiB.
    pub uploads_max: usize,
    /// Most downloads of objects at one time: each holds a few MiB.
    pub downloads_max: usize,
    /// A head must arrive within this time; an idle connection is closed after it.
    pub head_timeout: Duration,
    /// A body must arrive within this time; that of an object may take longer, but must not stand still for so long.
    pub body_timeout: Duration,
    /// A client must begin to take what it asked for within this time.
    pub write_timeout: Duration,
    /// How long a request may take when the caller does not say.
    pub timeout_default: Duration,
    /// The longest that a caller may ask for.
    pub timeout_max: Duration,
    /// After a stop is asked for, requests in flight may take this long.
    pub stop_grace: Duration,
}

/// Of the files that a process may have open, clients get one in so many: log, objects and peers need some as well.
const FILES_PER_CONNECTION: usize = 2;

impl HttpLimits {
    /// The defaults, with no more connections than the process has files for: without one left the node could neither
    /// accept its peers nor write its log.
    pub fn for_this_process() -> HttpLimits {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        HttpLimits::default().within(files.and_then(|files| usize::try_from(files).ok()))
    }

    fn within(self, files: Option<usize>) -> HttpLimits {
        let most = files.map_or(usize::MAX, |files| files / FILES_PER_CONNECTION);
        let connections_max = self.connections_max.min(most);
        let connections_per_address_max =
            self.connections_per_address_max.min(connections_max.div_ceil(2));
        HttpLimits { connections_max, connections_per_address_max, ..self }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            task_body_bytes_max: (1 << 20) * 4 / 3 + (16 << 10),
            batch_body_bytes_max: 8 << 20,
            bodies_bytes_max: 256 << 20,
            items_max: 10_000,
            head_bytes_max: 16 << 10,
            url_bytes_max: 8 << 10,
            page_max: 1_000,
            page_default: 100,
            connections_max: 8_192,
            connections_per_address_max: 2_048,
            requests_max: 8_192,
            streams_max: 256,
            uploads_max: 64,
            downloads_max: 256,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            timeout_default: Duration::from_secs(10),
            timeout_max: Duration::from_secs(120),
            stop_grace: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_7_connections_leave_files_for_everything_else() {
        let bounds = |files| {
            let limits = HttpLimits::default().within(files);
            (limits.connections_max, limits.connections_per_address_max)
        };
        assert_eq!(bounds(None), (8_192, 2_048));
        assert_eq!(bounds(Some(65_536)), (8_192, 2_048));
        assert_eq!(bounds(Some(1_024)), (512, 256));
    }
}
