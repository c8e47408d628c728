//! Which crate may use which, checked against `cargo metadata`. The table is the one of `ARCHITECTURE.md`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Findings;

/// What a crate may use.
struct Package {
    package: &'static str,
    /// Packages of ours that it may use.
    may_use: &'static [&'static str],
    /// Crates that would teach it what it must not use.
    must_not_use: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package { package: "squall-plan", may_use: &[], must_not_use: SYSTEM },
    Package { package: "squall-wire", may_use: &[], must_not_use: SYSTEM },
    Package { package: "squall-measure", may_use: &["squall-plan"], must_not_use: SYSTEM },
    Package { package: "squall-traffic", may_use: &["squall-plan", "squall-wire"], must_not_use: SYSTEM },
    Package {
        package: "squall-engine",
        may_use: &["squall-plan", "squall-wire", "squall-measure", "squall-traffic", "squall-script"],
        must_not_use: &["clap"],
    },
    Package {
        package: "squall-script",
        may_use: &["squall-plan"],
        must_not_use: &["tokio", "mio", "socket2", "hyper", "rustix", "clap"],
    },
    Package {
        package: "squall-fleet",
        may_use: &["squall-plan", "squall-measure"],
        must_not_use: &["clap", "tokio"],
    },
    Package {
        package: "squall-report",
        may_use: &["squall-plan", "squall-measure", "squall-study"],
        must_not_use: NETWORK,
    },
    Package {
        package: "squall-export",
        may_use: &["squall-plan", "squall-measure", "squall-report"],
        must_not_use: &["clap", "rustix"],
    },
    Package { package: "squall-study", may_use: &["squall-plan", "squall-measure"], must_not_use: SYSTEM },
    Package { package: "squall-http3", may_use: &["squall-wire"], must_not_use: &["clap"] },
    Package {
        package: "squall-proxy",
        may_use: &["squall-plan", "squall-wire", "squall-traffic", "squall-http3"],
        must_not_use: &["clap"],
    },
    Package {
        package: "squall-server",
        may_use: &["squall-plan", "squall-wire", "squall-http3"],
        must_not_use: &["clap"],
    },
    Package {
        package: "squall",
        may_use: &[
            "squall-plan",
            "squall-measure",
            "squall-traffic",
            "squall-proxy",
            "squall-engine",
            "squall-script",
            "squall-fleet",
            "squall-report",
            "squall-export",
            "squall-study",
            "squall-server",
        ],
        must_not_use: &[],
    },
    Package { package: "squall-testkit", may_use: &["squall-measure"], must_not_use: &[] },
    Package { package: "squall-floor", may_use: &[], must_not_use: NETWORK },
    Package { package: "squall-compare", may_use: &["squall-testkit"], must_not_use: &[] },
    Package {
        package: "squall-fuzz",
        may_use: &[
            "squall-plan",
            "squall-wire",
            "squall-measure",
            "squall-traffic",
            "squall-engine",
            "squall-script",
            "squall-testkit",
        ],
        must_not_use: NETWORK,
    },
    Package { package: "xtask", may_use: &[], must_not_use: NETWORK },
];

/// Tests of any crate may use these as well.
const FOR_TESTS: &[&str] = &["squall-testkit", "squall-server", "squall-wire"];

/// Sockets, in one form or another.
const NETWORK: &[&str] = &["tokio", "mio", "socket2", "hyper"];

/// Sockets, the clock, and everything else that the system has.
const SYSTEM: &[&str] = &["tokio", "mio", "socket2", "hyper", "rustix", "libc", "clap"];

/// Checks every package of the workspace.
pub(super) fn check(root: &Path, findings: &mut Findings) {
    match packages(root) {
        Ok(packages) => packages.iter().for_each(|package| check_package(package, findings)),
        Err(error) => findings.push("cargo metadata", error),
    }
}

fn packages(root: &Path) -> Result<Vec<Value>, String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(["metadata", "--format-version", "1", "--no-deps"]);
    let output = command.output().map_err(|error| error.to_string())?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(metadata["packages"].as_array().cloned().unwrap_or_default())
}

fn check_package(package: &Value, findings: &mut Findings) {
    let name = text(package, "name");
    let Some(allowed) = PACKAGES.iter().find(|allowed| allowed.package == name) else {
        findings
            .push(name, "is not in the list of packages: state there and in ARCHITECTURE.md what it may use");
        return;
    };
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        check_dependency(allowed, dependency, findings);
    }
}

fn check_dependency(allowed: &Package, dependency: &Value, findings: &mut Findings) {
    let used = text(dependency, "name");
    let ours = !dependency["path"].is_null();
    let for_tests = text(dependency, "kind") == "dev";
    if ours && !allowed.may_use.contains(&used) && !(for_tests && FOR_TESTS.contains(&used)) {
        findings.push(allowed.package, format!("must not use {used}"));
    }
    if !for_tests && allowed.must_not_use.contains(&used) {
        findings.push(allowed.package, format!("must not use {used}"));
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
