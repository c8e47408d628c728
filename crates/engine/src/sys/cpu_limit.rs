//! How long the CPU limits of this process's cgroups have stopped it, as the kernel counts it (`cpu.stat`).
//!
//! Owns: where those files are. A container or a slice has its limit in its own cgroup or in one above it, so all are read, in both
//! versions of cgroups. Never: the limits themselves; only what they did counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::ProcessCGroups;
use procfs::process::{MountInfo, MountInfos, Process};

/// The cgroups that limit this process, with the time for which each had stopped it at the last reading.
#[derive(Debug, Default)]
pub(super) struct CpuLimits(Vec<(PathBuf, Duration)>);

impl CpuLimits {
    /// Those of this process; none where `/proc` does not show them.
    pub(super) fn own() -> Self {
        let Ok(process) = Process::myself() else { return Self::default() };
        match (process.cgroups(), process.mountinfo()) {
            (Ok(cgroups), Ok(mounts)) => Self::of(files(&cgroups, &mounts)),
            _ => Self::default(),
        }
    }

    fn of(files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(
            files
                .into_iter()
                .filter_map(|file| Some((throttled(&file)?, file)))
                .map(|(at, f)| (f, at))
                .collect(),
        )
    }

    /// Since the last call, of the cgroup that was stopped longest: a sum over CPUs.
    pub(super) fn throttled(&mut self) -> Duration {
        let since = self.0.iter_mut().map(|(file, before)| {
            let now = throttled(file).unwrap_or(*before);
            now.saturating_sub(std::mem::replace(before, now))
        });
        since.max().unwrap_or_default()
    }
}

/// The files of a process's cgroups, and of those above them as far as they are mounted.
fn files(cgroups: &ProcessCGroups, mounts: &MountInfos) -> Vec<PathBuf> {
    let limiting = cgroups
        .0
        .iter()
        .filter(|cgroup| cgroup.hierarchy == 0 || cgroup.controllers.iter().any(|name| name == "cpu"));
    limiting
        .filter_map(|cgroup| {
            let mount = mounts.iter().find(|mount| is_of(mount, cgroup.hierarchy == 0))?;
            // The root of a mount inside a container may be the container's own cgroup.
            let below =
                Path::new(&cgroup.pathname).strip_prefix(&mount.root).unwrap_or_else(|_| Path::new(""));
            let above = below.ancestors().map(|part| mount.mount_point.join(part).join("cpu.stat"));
            Some(above.collect::<Vec<_>>())
        })
        .flatten()
        .collect()
}

/// Whether a mount shows the hierarchy of version 2, or that of version 1 with the CPU controller.
fn is_of(mount: &MountInfo, is_v2: bool) -> bool {
    if is_v2 {
        mount.fs_type == "cgroup2"
    } else {
        mount.fs_type == "cgroup" && mount.super_options.contains_key("cpu")
    }
}

/// `throttled_usec` of version 2 or `throttled_time` of version 1, in nanoseconds; `None` for a cgroup that cannot have a limit.
fn throttled(file: &Path) -> Option<Duration> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        match name {
            "throttled_usec" => value.parse().ok().map(Duration::from_micros),
            "throttled_time" => value.parse().ok().map(Duration::from_nanos),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use procfs::FromRead as _;

    use super::*;

    const MOUNTS: &str = "24 23 0:22 / /proc rw - proc proc rw
30 23 0:26 ROOT /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn a_limit_may_be_in_any_cgroup_above() {
        let v1 = "/sys/fs/cgroup/cpu,cpuacct";
        let v2 = "/sys/fs/cgroup/unified";
        for (cgroups, root, expected) in [
            ("4:memory:/x\n3:cpu,cpuacct:/\n", "/", vec![v1.to_owned()]),
            ("3:cpu,cpuacct:/a/b\n", "/", vec![format!("{v1}/a/b"), format!("{v1}/a"), v1.to_owned()]),
            // A container that sees its own cgroup only.
            ("3:cpu,cpuacct:/docker/1\n", "/docker/1", vec![v1.to_owned()]),
            (
                "0::/system.slice/x.service\n",
                "/",
                vec![format!("{v2}/system.slice/x.service"), format!("{v2}/system.slice"), v2.to_owned()],
            ),
            // A cgroup that is outside of what is mounted.
            ("0::/../other\n", "/", vec![format!("{v2}/../other"), format!("{v2}/.."), v2.to_owned()]),
            ("4:memory:/x\n", "/", vec![]),
        ] {
            let read = ProcessCGroups::from_read(cgroups.as_bytes()).unwrap();
            let mounts = MountInfos::from_read(MOUNTS.replace("ROOT", root).as_bytes()).unwrap();
            let expected: Vec<PathBuf> =
                expected.iter().map(|folder| Path::new(folder).join("cpu.stat")).collect();
            assert_eq!(files(&read, &mounts), expected, "{cgroups}");
        }
    }

    #[test]
    fn the_cgroup_that_was_stopped_longest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let v2 = |usec: u64| {
            file("v2", &format!("usage_usec 9\nnr_periods 8\nnr_throttled 2\nthrottled_usec {usec}\n"))
        };
        let v1 = |ns: u64| file("v1", &format!("nr_periods 8\nnr_throttled 2\nthrottled_time {ns}\n"));
        let mut limits =
            CpuLimits::of([v2(1_000), v1(5_000), file("root", "usage_usec 9\n"), "/none".into()]);
        assert_eq!(limits.0.len(), 2);
        assert_eq!(limits.throttled(), Duration::ZERO);
        v2(1_300);
        v1(705_000);
        assert_eq!(limits.throttled(), Duration::from_micros(700));
        v2(1_400);
        assert_eq!(limits.throttled(), Duration::from_micros(100));
        // Of a cgroup that is gone nothing more is known.
        fs::remove_file(folder.path().join("v2")).unwrap();
        assert_eq!(limits.throttled(), Duration::ZERO);
    }

    /// A busy process in a real cgroup of version 1 or 2 with a limit of a tenth of a CPU, where this machine permits making one.
    #[test]
    fn the_kernel_s_own_counter_grows_when_a_limit_stops_a_process() {
        let groups = [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "10000"),
            ("/sys/fs/cgroup", "cpu.max", "10000 100000"),
        ];
        let Some(group) = groups.into_iter().find_map(|(root, limit, value)| limited(root, limit, value))
        else {
            return;
        };
        let mut limits = CpuLimits::of([group.join("cpu.stat")]);
        let script = "echo $$ > $0/cgroup.procs && while :; do :; done";
        let mut busy = Command::new("/bin/sh").args(["-c", script]).arg(&group).spawn().unwrap();
        let mut throttled = Duration::ZERO;
        while throttled.is_zero() && busy.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(50));
            throttled = limits.throttled();
        }
        busy.kill().unwrap();
        busy.wait().unwrap();
        while fs::remove_dir(&group).is_err() {
            std::thread::yield_now();
        }
        assert!(throttled > Duration::ZERO);
    }

    fn limited(root: &str, limit: &str, value: &str) -> Option<PathBuf> {
        let group = Path::new(root).join(format!("squall-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let is_limited = fs::write(group.join(limit), value).is_ok() && group.join("cpu.stat").exists();
        if !is_limited {
            fs::remove_dir(&group).ok()?;
        }
        is_limited.then_some(group)
    }
}
