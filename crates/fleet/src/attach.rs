//! The way back to an agent whose connection was lost: a Unix-domain socket in its own folder, and the process that carries a new
//! connection to it.
//!
//! No port is opened: only the agent's own user can enter the folder.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::attempt::MARK;
use crate::protocol::{self, Order, Trouble, WayBack};

/// Carries standard input and output to the agent that listens at a socket, until either ends.
///
/// # Errors
/// When no agent listens there; that is also written to standard output, for the controller.
pub fn attach(
    socket: &Path,
    mut orders: impl Read + Send + 'static,
    mut reports: impl Write,
) -> Result<(), Trouble> {
    let connected = UnixStream::connect(socket).and_then(|stream| Ok((stream.try_clone()?, stream)));
    let (mut to_agent, mut from_agent) = match connected {
        Ok(streams) => streams,
        Err(error) => {
            // A controller that does not read it notices the end of the stream.
            let _ = writeln!(reports, "{MARK} {GONE}").and_then(|()| reports.flush());
            let message = format!("no agent listens at `{}`: {error}", socket.display());
            return Err(Trouble::new(message, "it has ended: run the plan again"));
        }
    };
    let failed =
        |error: io::Error| Trouble::new(format!("the connection to the agent failed: {error}"), "try again");
    writeln!(reports, "{MARK} {ATTACHED}").and_then(|()| reports.flush()).map_err(failed)?;
    let copied = thread::Builder::new().name("orders".to_owned()).spawn(move || {
        // Either end may be gone at any time; the agent learns it from the end of its stream.
        let _ = io::copy(&mut orders, &mut to_agent);
        let _ = to_agent.shutdown(Shutdown::Both);
    });
    copied.map_err(failed)?;
    copy_at_once(&mut from_agent, &mut reports).map_err(failed)
}

/// `io::copy` may hold back what a buffered writer takes.
fn copy_at_once(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut part = vec![0; 64 << 10];
    loop {
        match from.read(&mut part)? {
            0 => return Ok(()),
            length => to.write_all(&part[..length]).and_then(|()| to.flush())?,
        }
    }
}

/// A script that becomes [`attach`]'s process, or says that the agent is gone with its program.
pub(crate) fn script(way_back: &WayBack, quoted: impl Fn(&str) -> String) -> String {
    let (program, socket) = (quoted(&way_back.program), quoted(&way_back.socket));
    format!(
        r#"if [ -x {program} ]; then exec {program} agent --attach {socket}; else echo "{MARK} {GONE}"; fi"#
    )
}

/// Listens for connections that replace a lost one, on a thread of its own; each begins with [`Order::Resume`].
///
/// # Errors
/// When the socket cannot be made, as where its path is too long.
pub(crate) fn listen(
    socket: &Path,
    mut on_attach: impl FnMut(UnixStream, u64) -> bool + Send + 'static,
) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    let serve = move || {
        for mut stream in listener.incoming().flatten() {
            // A client that connects and sends nothing must not block the next one.
            let _ = stream.set_read_timeout(Some(RESUME_MAX));
            let Ok(Some(Order::Resume { received })) = protocol::read::<Order>(&mut stream) else { continue };
            let is_blocking = stream.set_read_timeout(None).is_ok();
            if is_blocking && !on_attach(stream, received) {
                return;
            }
        }
    };
    thread::Builder::new().name("attach".to_owned()).spawn(serve).map(drop)
}

/// What a process that carries a connection writes when it has reached the agent.
pub(crate) const ATTACHED: &str = "ATTACHED";

/// What it writes where no agent is left.
pub(crate) const GONE: &str = "GONE";

const RESUME_MAX: Duration = Duration::from_secs(5);
