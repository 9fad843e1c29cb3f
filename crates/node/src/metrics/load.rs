//! Figures of load and of what is turned away.

use super::render::Page;
use crate::admission::{Admission, Lane, Reason, Rooms};

/// Writes the figures.
pub(super) fn load(page: &mut Page, admission: &Admission, rooms: &Rooms) {
    let load = admission.load();
    let about = "CPU in use, hundredths of a percent; 10000 also when it cannot be measured.";
    page.one("ikada_load_cpu_basis_points", "gauge", about, load.cpu.into());
    let about = "Memory in use, hundredths of a percent; 10000 also when it cannot be measured.";
    page.one("ikada_load_memory_basis_points", "gauge", about, load.memory.into());
    let lane = |lane: Lane| format!("lane=\"{}\"", lane.as_str());
    let name = "ikada_admitted_total";
    page.family(name, "counter", "Calls let in, by lane.");
    Lane::ALL.iter().for_each(|l| page.sample(name, &lane(*l), admission.admitted(*l)));
    let name = "ikada_shed_total";
    page.family(name, "counter", "Calls turned away, by lane and reason.");
    for each in Lane::ALL {
        for reason in Reason::ALL {
            let labels = format!("{},reason=\"{}\"", lane(each), reason.as_str());
            page.sample(name, &labels, admission.shed(each, reason));
        }
    }
    let name = "ikada_calls_under_way";
    page.family(name, "gauge", "Calls under way, by lane.");
    Lane::ALL.iter().for_each(|l| page.sample(name, &lane(*l), rooms.under_way(*l) as u64));
    let name = "ikada_service_time_microseconds";
    page.family(name, "gauge", "How long a call takes, a moving average by lane.");
    for each in Lane::ALL {
        page.sample(name, &lane(each), admission.expected(each).as_micros() as u64);
    }
    let name = "ikada_transfers_waiting";
    page.family(name, "gauge", "Transfers of objects that wait for a place.");
    page.sample(name, "lane=\"settle\"", rooms.outputs.waiting() as u64);
    page.sample(name, "lane=\"upload\"", rooms.uploads.waiting() as u64);
    page.sample(name, "lane=\"download\"", rooms.downloads.waiting() as u64);
}
