//! From settings to a running autoscaler.

use tokio::sync::watch;

use super::{ApiServer, Driver, ExecDriver, KubernetesDriver, OWN_LABEL, ProcessDriver, autoscale};
use crate::config::{Config, ScaleDriver};
use crate::handle::Handle;
use crate::http::Door;

/// Begins to watch the backlog, if the settings say so. Only the leader of shard 0 will act.
pub(crate) fn begin(
    config: &Config,
    handle: &Handle,
    stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let Some(scale) = &config.autoscale else {
        return Ok(());
    };
    let driver = match &scale.driver {
        ScaleDriver::Exec { program } => Driver::Exec(ExecDriver { program: program.clone() }),
        ScaleDriver::Kubernetes { workload } => {
            Driver::Kubernetes(KubernetesDriver::read(workload, ApiServer::of_pod()?)?)
        }
        ScaleDriver::Process { arguments } => {
            let program = std::env::current_exe()
                .map_err(|error| format!("this binary has no path: {error}"))?;
            let scheme = if config.tls { "https" } else { "http" };
            let url = format!("{scheme}://{}", handle.info().client_addr);
            let slots = scale.rule.slots.to_string();
            let own = ["worker", "--url", &url, "--slots", &slots, "--until-stdin-closes"];
            let mut own: Vec<String> = own.map(str::to_owned).to_vec();
            own.extend(["--label".to_owned(), format!("{}={}", OWN_LABEL.0, OWN_LABEL.1)]);
            for queue in &scale.rule.queues {
                own.extend(["--queue".to_owned(), queue.clone()]);
            }
            own.extend(arguments.clone());
            Driver::Process(ProcessDriver::new(program, own))
        }
    };
    let history = handle.scaling_history();
    tokio::spawn(autoscale(handle.clone(), scale.rule.clone(), driver, history, stop));
    Ok(())
}
