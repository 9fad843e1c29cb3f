//! Schedules: make, show, pause, resume, remove.

use hyper::Method;

use super::send::Ask;
use super::url::{escape, unique_key, with_query};
use super::{Client, Error};
use crate::v1::{ScheduleBody, ScheduleInfo, SchedulePage, ScheduleRemoved};

impl Client {
    /// A page of the namespace's schedules: after the `next` of the page before.
    pub async fn schedules(&self, after: Option<&str>) -> Result<SchedulePage, Error> {
        let query: Vec<_> = after.map(|after| ("after", after.to_owned())).into_iter().collect();
        self.ask(&Ask::get(with_query("/v1/schedules", &query))).await
    }

    /// One schedule.
    pub async fn schedule(&self, name: &str) -> Result<ScheduleInfo, Error> {
        self.ask(&Ask::get(schedule_path(name))).await
    }

    /// Makes a schedule, or replaces its settings, and shows it as it then is.
    pub async fn set_schedule(
        &self,
        name: &str,
        schedule: &ScheduleBody,
    ) -> Result<ScheduleInfo, Error> {
        let path = schedule_path(name);
        self.ask(&Ask::json(Method::PUT, path, schedule, Some(unique_key()))?).await
    }

    /// Lets a schedule rest; instants that pass meanwhile do not count.
    pub async fn pause_schedule(&self, name: &str) -> Result<ScheduleInfo, Error> {
        let path = format!("{}/pause", schedule_path(name));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Lets a schedule go on, from now.
    pub async fn resume_schedule(&self, name: &str) -> Result<ScheduleInfo, Error> {
        let path = format!("{}/resume", schedule_path(name));
        self.ask(&Ask::act(Method::POST, path, Some(unique_key()))).await
    }

    /// Removes a schedule; its tasks stay.
    pub async fn delete_schedule(&self, name: &str) -> Result<ScheduleRemoved, Error> {
        self.ask(&Ask::act(Method::DELETE, schedule_path(name), Some(unique_key()))).await
    }
}

fn schedule_path(name: &str) -> String {
    format!("/v1/schedules/{}", escape(name))
}
