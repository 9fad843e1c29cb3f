//! `ikada schedule set|list|show|pause|resume|delete`.

use ikada_api::Client;
use ikada_api::client::Error;
use ikada_api::v1::{NewTask, ScheduleBody, SchedulePage};

use super::confirm::confirm;
use super::task::new_task;
use super::watch::watch;
use crate::args::{ScheduleCommand, ScheduleSetArgs, SharedArgs};
use crate::failure::Failure;
use crate::render::Screen;

pub(crate) async fn schedule(
    shared: &SharedArgs,
    command: ScheduleCommand,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let client = shared.client()?;
    let shown = match command {
        ScheduleCommand::List(args) => return watch(&args, screen, || list(&client)).await,
        ScheduleCommand::Delete(schedule) => {
            confirm(schedule.yes, &format!("Delete schedule {}?", schedule.name))?;
            let removed = client.delete_schedule(&schedule.name).await?;
            return screen.show(&removed);
        }
        ScheduleCommand::Set(args) => {
            let name = args.name.clone();
            client.set_schedule(&name, &body(*args)?).await?
        }
        ScheduleCommand::Show(schedule) => client.schedule(&schedule.name).await?,
        ScheduleCommand::Pause(schedule) => client.pause_schedule(&schedule.name).await?,
        ScheduleCommand::Resume(schedule) => client.resume_schedule(&schedule.name).await?,
    };
    screen.show(&shown)
}

/// All pages together: one document, as scripts want it. There are at most a thousand schedules.
async fn list(client: &Client) -> Result<SchedulePage, Error> {
    let mut all = client.schedules(None).await?;
    while let Some(next) = all.next.take() {
        let page = client.schedules(Some(&next)).await?;
        all.schedules.extend(page.schedules);
        all.next = page.next;
    }
    Ok(all)
}

fn body(args: ScheduleSetArgs) -> Result<ScheduleBody, Failure> {
    Ok(ScheduleBody {
        cron: args.cron,
        zone: args.zone,
        every_ms: args.every_ms,
        anchor_ms: args.anchor_ms,
        task: NewTask { then: args.then, ..new_task(args.task)? },
        missed: args.missed.map(Into::into),
        overlap: args.overlap.map(Into::into),
        grace_ms: args.grace_ms,
        paused: args.paused.then_some(true),
        expected_version: args.expected_version,
    })
}
