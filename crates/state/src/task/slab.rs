//! Where task records live: a slab of copy-on-write pages. Cloning it for a snapshot copies one
//! pointer per 64 tasks; the first change to a page after that copies the page.
//!
//! The lowest free slot is taken first, so that slots depend on the state alone: a restored replica
//! hands out the same slots as one that never stopped.

use std::sync::Arc;

use super::Task;
use crate::hash::BitSet;

/// Records per page.
const PAGE_TASKS: usize = 64;

#[derive(Clone, Debug)]
struct Page {
    tasks: Vec<Option<Task>>,
    live: usize,
}

/// All task records of a shard. The free set is derived and not part of a frozen copy's meaning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slab {
    /// None where a page holds no task, so that a drained shard gives its memory back.
    pages: Vec<Option<Arc<Page>>>,
    live: usize,
}

impl Slab {
    /// Number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// One past the highest slot ever used.
    pub(crate) fn slots(&self) -> u32 {
        (self.pages.len() * PAGE_TASKS) as u32
    }

    /// The task at a slot.
    pub(crate) fn get(&self, slot: u32) -> Option<&Task> {
        let slot = slot as usize;
        self.pages.get(slot / PAGE_TASKS)?.as_ref()?.tasks[slot % PAGE_TASKS].as_ref()
    }

    /// The task at a slot, to be changed.
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Task> {
        let slot = slot as usize;
        let page = self.pages.get_mut(slot / PAGE_TASKS)?.as_mut()?;
        Arc::make_mut(page).tasks[slot % PAGE_TASKS].as_mut()
    }

    /// Puts a task into the lowest free slot.
    pub(crate) fn insert(&mut self, free: &mut BitSet, task: Task) -> u32 {
        if free.first().is_none() {
            let first = self.slots();
            self.pages.push(None);
            for slot in first..self.slots() {
                free.insert(slot);
            }
        }
        let Some(slot) = free.first() else { panic!("a grown slab has a free slot") };
        free.remove(slot);
        self.put(slot, task);
        slot
    }

    /// Puts a task into a given slot; false if it is taken. The page list must reach the slot.
    pub(crate) fn put(&mut self, slot: u32, task: Task) -> bool {
        let slot = slot as usize;
        let Some(place) = self.pages.get_mut(slot / PAGE_TASKS) else {
            return false;
        };
        let page = place.get_or_insert_with(|| {
            let tasks = std::iter::repeat_with(|| None).take(PAGE_TASKS).collect();
            Arc::new(Page { tasks, live: 0 })
        });
        let page = Arc::make_mut(page);
        let cell = &mut page.tasks[slot % PAGE_TASKS];
        if cell.is_some() {
            return false;
        }
        *cell = Some(task);
        page.live += 1;
        self.live += 1;
        true
    }

    /// Takes a task out.
    pub(crate) fn remove(&mut self, free: &mut BitSet, slot: u32) -> Option<Task> {
        let place = self.pages.get_mut(slot as usize / PAGE_TASKS)?;
        let page = Arc::make_mut(place.as_mut()?);
        let task = page.tasks[slot as usize % PAGE_TASKS].take()?;
        page.live -= 1;
        if page.live == 0 {
            *place = None;
        }
        self.live -= 1;
        free.insert(slot);
        Some(task)
    }

    /// Makes room for slots below a number, for a restore.
    pub(crate) fn reserve_slots(&mut self, slots: u32) {
        let pages = (slots as usize).div_ceil(PAGE_TASKS);
        if pages > self.pages.len() {
            self.pages.resize(pages, None);
        }
    }

    /// The free slots, recomputed.
    pub(crate) fn free_slots(&self) -> BitSet {
        let mut free = BitSet::default();
        for slot in (0..self.slots()).filter(|slot| self.get(*slot).is_none()) {
            free.insert(slot);
        }
        free
    }

    /// All tasks by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Task)> {
        self.iter_from(0)
    }

    /// Tasks from a slot on.
    pub(crate) fn iter_from(&self, first: u32) -> impl Iterator<Item = (u32, &Task)> {
        let skip = (first as usize / PAGE_TASKS).min(self.pages.len());
        let pages = self.pages.iter().enumerate().skip(skip);
        pages
            .filter_map(|(number, page)| Some((number, page.as_ref()?)))
            .flat_map(|(number, page)| {
                let base = (number * PAGE_TASKS) as u32;
                page.tasks.iter().enumerate().map(move |(cell, task)| (base + cell as u32, task))
            })
            .filter_map(move |(slot, task)| match task {
                Some(task) if slot >= first => Some((slot, task)),
                _ => None,
            })
    }
}
