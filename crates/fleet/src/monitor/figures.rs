//! Names of the figures that a monitor can have, so that a rule about another one is refused before the run.
//!
//! Owns: that list; a test compares it with what is sampled. Never: samples anything.

use squall_plan::file::Watched;

/// `None` when a monitor can have a figure of that name; else the names that it has, without those of single CPUs and interfaces.
pub fn unless_figure(watched: &Watched, figure: &str) -> Option<Vec<String>> {
    let known: Vec<String> = match watched {
        Watched::Machine { processes, .. } => {
            let own = |name: &String| PROCESS_FIGURES.map(|figure| format!("{name} {figure}"));
            MACHINE_FIGURES
                .iter()
                .map(|name| (*name).to_owned())
                .chain(processes.iter().flat_map(own))
                .collect()
        }
        Watched::Nginx { .. } => NGINX_FIGURES.map(str::to_owned).to_vec(),
        // What such a page has is known when it is read.
        _ => return None,
    };
    let is_machine = matches!(watched, Watched::Machine { .. });
    let is_known = known.iter().any(|name| name == figure) || is_machine && is_of_a_part(figure);
    (!is_known).then_some(known)
}

/// Figures of each CPU and each interface: `cpu 3`, `eth0 bytes sent`.
fn is_of_a_part(figure: &str) -> bool {
    let cpu = figure.strip_prefix("cpu ").is_some_and(|number| number.parse::<u32>().is_ok());
    let nic = [" bytes received", " bytes sent"].iter().find_map(|end| figure.strip_suffix(end));
    cpu || nic.is_some_and(|name| !name.is_empty() && !name.contains(' '))
}

const MACHINE_FIGURES: [&str; 16] = [
    "cpu",
    "steal",
    "memory",
    "sockets established",
    "sockets time-wait",
    "sockets syn-sent",
    "sockets syn-received",
    "sockets fin-wait-1",
    "sockets fin-wait-2",
    "sockets close-wait",
    "sockets last-ack",
    "sockets listening",
    "retransmits",
    "connections accepted",
    "accept-queue overflows",
    "accept-queue drops",
];

const PROCESS_FIGURES: [&str; 6] = ["processes", "rss", "virtual size", "threads", "descriptors", "cpu"];

const NGINX_FIGURES: [&str; 7] = [
    "connections active",
    "connections reading",
    "connections writing",
    "connections waiting",
    "connections accepted",
    "connections handled",
    "requests",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_plan::Text;

    use super::*;
    use crate::monitor::machine::MachineMonitor;

    #[test]
    fn every_figure_that_is_sampled_is_known_and_a_misspelt_one_is_not() {
        let process = std::process::id().to_string();
        let mut monitor = MachineMonitor::new();
        monitor.watch(vec![process.clone()]);
        let (mut names, _) = monitor.sample();
        std::thread::sleep(Duration::from_millis(30));
        names.extend(monitor.sample().0);
        let watched = Watched::Machine { machine: Text::default(), processes: vec![process] };
        for name in names {
            assert_eq!(unless_figure(&watched, &name.name), None, "{}", name.name);
        }
        for figure in ["cpuu", "cpu x", "nginx rss", "bytes sent", ""] {
            assert!(unless_figure(&watched, figure).is_some_and(|known| known.contains(&"cpu".to_owned())));
        }
        let page = Watched::Nginx { url: Text::default() };
        assert_eq!(unless_figure(&page, "requests"), None);
        assert!(unless_figure(&page, "request").is_some());
    }
}
