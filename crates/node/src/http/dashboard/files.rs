//! The dashboard's files, compiled in.

/// The page itself.
pub(super) const INDEX: &str = "index.html";

/// One file.
pub(super) struct File {
    /// Its path in the folder.
    pub(super) name: &'static str,
    pub(super) bytes: &'static [u8],
}

impl File {
    /// What a browser takes it for.
    pub(super) fn media_type(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

/// Names files of the folder `dashboard`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(File {
            name: $name,
            bytes: include_bytes!(concat!("../../../../../dashboard/", $name)),
        }),*]
    };
}

/// All files.
pub(super) const FILES: &[File] = files![
    "icon.svg",
    "index.html",
    "main.js",
    "shell.js",
    "start.js",
    "lib/api.js",
    "lib/chart.js",
    "lib/dialog.js",
    "lib/dom.js",
    "lib/format.js",
    "lib/logs.js",
    "lib/metrics.js",
    "lib/object_actions.js",
    "lib/parts.js",
    "lib/pulse.js",
    "lib/queue_actions.js",
    "lib/raft.js",
    "lib/route.js",
    "lib/save.js",
    "lib/search.js",
    "lib/session.js",
    "pages/buckets.js",
    "pages/cluster.js",
    "pages/elections.js",
    "pages/index.js",
    "pages/job.js",
    "pages/jobs.js",
    "pages/leases.js",
    "pages/objects.js",
    "pages/overview.js",
    "pages/queue.js",
    "pages/queues.js",
    "pages/schedules.js",
    "pages/task.js",
    "pages/tasks.js",
    "pages/workers.js",
    "style/base.css",
    "style/parts.css",
    "style/shell.css",
    "style/views.css",
];

/// The file with a name.
pub(super) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// A file that is forgotten above would only be missed in a browser.
    #[test]
    fn every_file_of_the_folder_is_compiled_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboard");
        let mut found = Vec::new();
        collect(&root, &mut found);
        let mut names: Vec<String> = found
            .iter()
            .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with("tests/"))
            .collect();
        names.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        listed.sort_unstable();
        assert_eq!(names, listed);
        let typed = |file: &&File| file.media_type() == "application/octet-stream";
        assert!(FILES.iter().find(typed).is_none(), "every kind of file has a media type");
    }

    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, found),
                false => found.push(path),
            }
        }
    }
}
