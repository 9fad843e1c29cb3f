//! A queue as callers see it: settings, counts, and how it does.

use ikada_api::convert::show_queue;
use ikada_api::state::QueueView;
use ikada_api::v1::QueueInfo;

use crate::http::app::App;
use crate::http::door::Door;

/// Describes a queue.
pub(super) fn describe<D: Door>(app: &App<D>, view: &QueueView) -> QueueInfo {
    QueueInfo { health: app.health(view), ..show_queue(view) }
}
