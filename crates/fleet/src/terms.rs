//! On which terms an agent runs on its machine: environment, limits, settings of the kernel. All of it is done by the shell that
//! becomes the agent.

use squall_plan::file::MachineSettings;
use squall_plan::shell::quoted;

/// The terms of one machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// What the plan says of it.
    pub settings: MachineSettings,
    /// Whether the program stays there for the next run.
    pub keeps_program: bool,
}

/// Shell commands that come before the agent, and the function `become`, which starts it. `say FAIL` and `say NOTE` must be there.
///
/// Settings of the kernel are only looked at here; `become` changes them, and the janitor sets them back.
pub(crate) fn prelude(terms: &Terms) -> String {
    let MachineSettings { env, open_file_count_max, sysctl, sudo } = &terms.settings;
    let mut lines: Vec<String> =
        env.iter().map(|(name, value)| format!("export {name}={}", quoted(value))).collect();
    if let Some(count) = open_file_count_max {
        lines.push(format!(
            "ulimit -n {count} 2>/dev/null || {{ say FAIL \"cannot allow {count} open files: at most $(ulimit -Hn) are possible\"; exit 1; }}"
        ));
    }
    if sysctl.is_empty() {
        lines.push("become() { exec \"$@\"; }".to_owned());
    } else {
        lines.push(format!("may_sudo={sudo}\n{LOOK}"));
        lines.extend(sysctl.iter().map(|(name, value)| format!("look {name} {}", quoted(value))));
        lines.push(CHANGE.to_owned());
        lines.extend(sysctl.iter().map(|(name, value)| format!("change {name} {}", quoted(value))));
        lines.push("exec \"$@\"; }".to_owned());
    }
    lines.join("\n")
}

/// Says what would be changed; fails where it may not be.
const LOOK: &str = r#"SQUALL_AT_END=
file_of() { echo "/proc/sys/$(echo "$1" | tr . /)"; }
value_of() { tr -s "\t " "  " < "$(file_of "$1")" 2>/dev/null; }
can_sudo() {
refusal="this login may not change it"; [ $may_sudo = true ] || return 1
refusal=$(sudo -n true 2>&1) && return
refusal="sudo refuses to change it: $(echo "$refusal" | tail -n 1)"; false
}
look() {
[ -e "$(file_of "$1")" ] || { say FAIL "there is no kernel setting $1"; exit 1; }
have=$(value_of "$1"); [ "$have" = "$2" ] && return
[ "$(id -u)" = 0 ] || can_sudo || { say FAIL "the kernel setting $1 is $have, but the plan needs $2, and $refusal"; exit 1; }
say NOTE "sets $1 to $2 until the end of the run (it is $have)"
}"#;

/// Makes the changes, and notes for the janitor how to undo them.
const CHANGE: &str = r#"write() { if [ "$(id -u)" = 0 ]; then echo "$2" > "$(file_of "$1")"; else echo "$2" | sudo -n tee "$(file_of "$1")" >/dev/null; fi; }
change() {
have=$(value_of "$1"); [ "$have" = "$2" ] && return
if [ "$(id -u)" = 0 ]; then undo="echo \"$have\" > $(file_of "$1")"; else undo="echo \"$have\" | sudo -n tee $(file_of "$1") >/dev/null"; fi
write "$1" "$2" 2>/dev/null || { echo "error: the kernel setting $1 cannot be set to $2" >&2; echo "help: check which values it accepts there" >&2; eval "$SQUALL_AT_END"; [ -z "$dir" ] || rm -rf "$dir"; exit 1; }
SQUALL_AT_END="$undo; $SQUALL_AT_END"; export SQUALL_AT_END
}
become() {"#;
