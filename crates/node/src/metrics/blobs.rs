//! Figures of the bytes of objects.

use super::render::Page;
use crate::objects::BlobCounters;

type Family = (&'static str, &'static str, &'static str, fn(&BlobCounters) -> u64);

const FAMILIES: &[Family] = &[
    ("ikada_blobs_stored_total", "counter", "Pieces stored on this node.", |b| b.stored),
    ("ikada_blobs_stored_bytes_total", "counter", "Bytes of those.", |b| b.stored_bytes),
    ("ikada_blobs_served_total", "counter", "Pieces given to readers and peers.", |b| b.served),
    ("ikada_blobs_served_bytes_total", "counter", "Bytes of those.", |b| b.served_bytes),
    ("ikada_blob_cache_hits_total", "counter", "Pieces found in memory.", |b| b.cache_hits),
    ("ikada_blob_cache_misses_total", "counter", "Pieces not found in memory.", |b| b.cache_misses),
    ("ikada_blob_cache_bytes", "gauge", "Bytes of pieces in memory.", |b| b.cache_bytes),
    ("ikada_blobs_fetched_total", "counter", "Pieces fetched from peers.", |b| b.fetched),
    ("ikada_blobs_repaired_total", "counter", "Missing pieces brought back.", |b| b.repaired),
    ("ikada_blobs_unrepaired_total", "counter", "Missing pieces found nowhere, each try.", |b| {
        b.unrepaired
    }),
    ("ikada_blobs_scrubbed_total", "counter", "Pieces read to check them.", |b| b.scrubbed),
    ("ikada_blobs_damaged_total", "counter", "Damaged pieces set aside.", |b| b.damaged),
    ("ikada_blobs_collected_total", "counter", "Pieces removed without a reference.", |b| {
        b.collected
    }),
    ("ikada_blobs_refused_full_total", "counter", "Pieces refused for want of room.", |b| {
        b.refused_full
    }),
];

/// Writes the figures, and the share of reads that memory answered.
pub(super) fn blobs(page: &mut Page, counters: &BlobCounters) {
    for (name, kind, about, value) in FAMILIES {
        page.one(name, kind, about, value(counters));
    }
    let looked = counters.cache_hits + counters.cache_misses;
    let permille = (counters.cache_hits * 1000).checked_div(looked).unwrap_or(0);
    let name = "ikada_blob_cache_hit_permille";
    let about = "Thousandths of reads that memory answered, since the start.";
    page.one(name, "gauge", about, permille);
}
