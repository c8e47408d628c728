//! The program itself, brought to machines that do not have it: known by its checksum, sent once, and kept in a cache there.

use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};
use squall_plan::files;
use squall_plan::limits::PROGRAM_BYTES_MAX;

use crate::attempt::{Attempt, Awaited, MARK, Opened};
use crate::protocol::Trouble;
use crate::terms::{Terms, prelude};

/// The program files that machines can be sent.
#[derive(Debug)]
pub(crate) struct Binary {
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    /// The processor it was built for, as `uname -m` names it. `*` for a file that the user chose: it is sent as it is.
    architecture: &'static str,
    bytes: Vec<u8>,
    digest: String,
}

/// Processors for which releases have a binary.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

impl Binary {
    /// Reads a program that the user chose for a machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn chosen(path: &Path) -> Result<Self, Trouble> {
        Ok(Self { programs: vec![Program::read(path, "*")?] })
    }

    /// Reads this program itself and those for other processors in the same folder, `squall-aarch64` or `squall-x86_64`.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(crate) fn own(path: &Path) -> Result<Self, Trouble> {
        let mut programs = vec![Program::read(path, std::env::consts::ARCH)?];
        for architecture in ARCHITECTURES.into_iter().filter(|name| *name != std::env::consts::ARCH) {
            let other = path.with_file_name(format!("squall-{architecture}"));
            if other.is_file() {
                programs.push(Program::read(&other, architecture)?);
            }
        }
        Ok(Self { programs })
    }

    /// No program: no machine needs one.
    pub(crate) fn none() -> Self {
        Self { programs: Vec::new() }
    }

    fn program_for(&self, architecture: &str) -> Option<&Program> {
        self.programs
            .iter()
            .find(|program| program.architecture == "*" || program.architecture == architecture)
    }

    /// Shell: sets `size` and `digest` of the program for the machine's processor; where there is none, to values that no file has.
    fn choice(&self) -> String {
        let arm = |program: &Program| {
            format!("{}) size={} digest={} ;;\n", program.architecture, program.bytes.len(), program.digest)
        };
        let arms: String = self.programs.iter().map(arm).collect();
        format!("size=0 digest=none\ncase \"$(uname -m)\" in\n{arms}esac")
    }

    /// A POSIX shell's script that says which processor it has, takes the program from its standard input unless the same one is
    /// there, and becomes the agent. The program is kept in the user's cache folder, under its checksum. The agent's folder goes
    /// when anything fails before that, also when nothing listens any more.
    pub(crate) fn fetch_script(&self, terms: &Terms) -> String {
        let choice = self.choice();
        let prelude = prelude(terms);
        let keep = if terms.keeps_program { KEEP } else { "" };
        format!(
            r#"trap '' PIPE
say() {{ echo "{MARK} $*"; }}
sum() {{ if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else openssl dgst -sha256 -r "$1"; fi | cut -d" " -f1; }}
{prelude}
{choice}
cache="${{XDG_CACHE_HOME:-${{HOME:-/nonexistent}}/.cache}}/squall"
kept="$cache/$digest/squall"
for have in "$kept" "$(command -v squall 2>/dev/null)"; do
if [ -x "$have" ] && [ "$(sum "$have" 2>/dev/null)" = "$digest" ] && "$have" --version >/dev/null 2>&1; then say HAVE; become "$have" agent; fi
done
umask 077
dir=$(mktemp -d "${{TMPDIR:-/tmp}}/squall-agent-XXXXXXXX" 2>&1) || {{ say FAIL "cannot create a folder in \`${{TMPDIR:-/tmp}}\`: ${{dir##*: }}"; exit 1; }}
trap 'rm -rf "$dir"' EXIT HUP INT TERM
say NEED "$(uname -m)"
error=$({{ head -c "$size" > "$dir/squall"; }} 2>&1) || {{ say FAIL "cannot write the program: $(echo "$error" | tail -n 1)"; exit 1; }}
[ "$(sum "$dir/squall")" = "$digest" ] || {{ say FAIL "the program arrived incomplete"; exit 1; }}
chmod 700 "$dir/squall"
error=$("$dir/squall" --version 2>&1 >/dev/null) || {{ say FAIL "the program does not run there: $(echo "$error" | head -n 1)"; exit 1; }}
program="$dir/squall"
{keep}
trap - EXIT HUP INT TERM
say GOT
become "$program" agent --folder "$dir""#
        )
    }

    /// Answers the script, whose first line is `greeting`. An error without words says that the other end went away.
    pub(crate) fn hand_over(
        &self,
        opened: &mut Opened,
        greeting: &str,
        (attempt, note): (&Attempt, &dyn Fn(&str)),
    ) -> Result<(), Option<Trouble>> {
        let architecture = match greeting.split_once(' ') {
            _ if greeting == "HAVE" => return Ok(()),
            Some(("NEED", architecture)) => architecture,
            _ => return Err(Some(failed(greeting))),
        };
        let Some(program) = self.program_for(architecture) else {
            let message = format!(
                "its architecture is {architecture}, but this squall is built for {}",
                std::env::consts::ARCH
            );
            let help = format!(
                "put a squall for it next to this one, as `squall-{architecture}`, or name one: `binary: path/to/squall` in the machine's entry"
            );
            return Err(Some(Trouble::new(message, help)));
        };
        note(&format!("sending squall, {:.1} MB", program.bytes.len() as f64 / 1e6));
        attempt.works();
        let sent = opened.orders.write_all(&program.bytes).and_then(|()| opened.orders.flush());
        attempt.awaits(Awaited::Program);
        match opened.line() {
            Some(line) if line == "GOT" => sent.map_err(|_| None),
            Some(line) => Err(Some(failed(&line))),
            None => Err(None),
        }
    }
}

impl Program {
    fn read(path: &Path, architecture: &'static str) -> Result<Self, Trouble> {
        let bytes = files::read(path, PROGRAM_BYTES_MAX).map_err(|error| {
            Trouble::new(
                format!("cannot read `{}`: {error}", path.display()),
                "check the path and its permissions",
            )
        })?;
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { architecture, bytes, digest })
    }
}

/// Moves the program into the cache, if it can be run there, and removes those that have not been used for long.
const KEEP: &str = r#"if mkdir -p "${kept%/*}" 2>/dev/null && cp "$dir/squall" "$kept.$$" 2>/dev/null && "$kept.$$" --version >/dev/null 2>&1 && mv "$kept.$$" "$kept"; then
rm -f "$dir/squall"; program=$kept
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} + 2>/dev/null
else rm -f "$kept.$$" 2>/dev/null; fi"#;

/// What a failure that the script reports means for the user.
fn failed(line: &str) -> Trouble {
    let message = line.strip_prefix("FAIL ").unwrap_or(line);
    let help = HELP.iter().find(|(part, _)| message.contains(part)).map_or(FOLDER_HELP, |(_, help)| help);
    Trouble::new(message, help)
}

/// Parts of messages that the script or a dynamic loader writes, and what helps.
const HELP: &[(&str, &str)] = &[
    (
        "sudo refuses",
        "set it there, or allow this login to use sudo without a password: `load ALL=(ALL) NOPASSWD: ALL` in sudoers, where `load` is the login",
    ),
    (
        "Permission denied",
        "is that folder mounted noexec? set the machine's `tmp` to a folder that allows executables",
    ),
    (
        "does not run there",
        "give a squall built for that system: `binary: path/to/squall` in the machine's entry",
    ),
    (
        "kernel setting",
        "set it there, or let squall do it with `sudo: true` in the machine's entry, which needs passwordless sudo",
    ),
    ("open files", "raise the limit there, in /etc/security/limits.conf or sshd's unit, or lower `ulimit`"),
];

const FOLDER_HELP: &str =
    "free some space there, or set the machine's `tmp` to a folder that allows executables";
