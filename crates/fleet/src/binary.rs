//! The program itself, brought to machines that do not have it: known by its checksum, sent once, removed with the agent.

use std::fs;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::protocol::Trouble;
use crate::transport::{Attempt, Awaited, MARK, Opened};

/// A program file.
#[derive(Debug)]
pub(crate) struct Binary {
    bytes: Vec<u8>,
    digest: String,
}

impl Binary {
    /// Reads the program.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Self, Trouble> {
        let bytes = fs::read(path).map_err(|error| {
            Trouble::new(
                format!("cannot read `{}`: {error}", path.display()),
                "check the path and its permissions",
            )
        })?;
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { bytes, digest })
    }

    /// No program: nobody needs one.
    pub(crate) fn none() -> Self {
        Self { bytes: Vec::new(), digest: String::new() }
    }

    /// A POSIX shell's script that says which processor it has, takes the program from its standard input unless the same one is
    /// installed, and becomes the agent. The folder goes when anything fails before that, also when nobody listens any more.
    pub(crate) fn fetch_script(&self) -> String {
        let (size, digest) = (self.bytes.len(), &self.digest);
        format!(
            r#"trap '' PIPE
say() {{ echo "{MARK} $*"; }}
sum() {{ if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else openssl dgst -sha256 -r "$1"; fi | cut -d" " -f1; }}
have=$(command -v squall 2>/dev/null)
if [ -n "$have" ] && [ "$(sum "$have" 2>/dev/null)" = {digest} ]; then say HAVE; exec "$have" agent; fi
umask 077
dir=$(mktemp -d "${{TMPDIR:-/tmp}}/squall-agent-XXXXXXXX" 2>&1) || {{ say FAIL "cannot make a folder in \`${{TMPDIR:-/tmp}}\`: ${{dir##*: }}"; exit 1; }}
trap 'rm -rf "$dir"' EXIT HUP INT TERM
say NEED "$(uname -m)"
head -c {size} > "$dir/squall" 2> "$dir/error" || {{ say FAIL "cannot write the program: $(tail -n 1 "$dir/error")"; exit 1; }}
[ "$(sum "$dir/squall")" = {digest} ] || {{ say FAIL "the program did not arrive whole"; exit 1; }}
rm -f "$dir/error"
chmod 700 "$dir/squall" && "$dir/squall" --version >/dev/null 2>&1 || {{ say FAIL "the program does not run there: is $dir mounted noexec?"; exit 1; }}
trap - EXIT HUP INT TERM
say GOT
exec "$dir/squall" agent --folder "$dir""#
        )
    }

    /// Answers the script. An error without words says that the other end went away.
    pub(crate) fn hand_over(
        &self,
        opened: &mut Opened,
        is_chosen: bool,
        (attempt, note): (&Attempt, &dyn Fn(&str)),
    ) -> Result<(), Option<Trouble>> {
        let line = opened.line().ok_or(None)?;
        let architecture = match line.split_once(' ') {
            _ if line == "HAVE" => return Ok(()),
            Some(("NEED", architecture)) => architecture.to_owned(),
            _ => return Err(Some(failed(&line))),
        };
        if !is_chosen && architecture != std::env::consts::ARCH {
            let message =
                format!("its processor is {architecture}, this squall is for {}", std::env::consts::ARCH);
            let help = "name a squall for it: `binary: path/to/squall` in the machine's entry";
            return Err(Some(Trouble::new(message, help)));
        }
        note(&format!("sending squall, {:.1} MB", self.bytes.len() as f64 / 1e6));
        attempt.works();
        let sent = opened.orders.write_all(&self.bytes).and_then(|()| opened.orders.flush());
        attempt.awaits(Awaited::Program);
        match opened.line() {
            Some(line) if line == "GOT" => sent.map_err(|_| None),
            Some(line) => Err(Some(failed(&line))),
            None => Err(None),
        }
    }
}

fn failed(line: &str) -> Trouble {
    let message = line.strip_prefix("FAIL ").unwrap_or(line);
    Trouble::new(message, "free some space there, or set TMPDIR there to a folder where programs may run")
}
