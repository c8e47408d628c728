//! What the bodies of responses and the parsed pages that scripts hold take in memory: bounded for each user, and for the process.
//!
//! Owns: the counts. Never: the bodies; who holds one holds a [`Held`] with it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use squall_plan::limits::{BODIES_BYTES_MAX, USER_BODIES_BYTES_MAX};

/// A user's count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bodies(Rc<Cell<u64>>);

/// So many bytes are held until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: u64,
    of_user: Bodies,
}

static OF_PROCESS: AtomicU64 = AtomicU64::new(0);

impl Bodies {
    /// Takes so many bytes from what may be held.
    ///
    /// # Errors
    /// When the user, or all users together, hold too much already.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Held, String> {
        let bytes = bytes as u64;
        let of_user = self.0.get() + bytes;
        if of_user > USER_BODIES_BYTES_MAX {
            return Err(too_much("a virtual user holds", USER_BODIES_BYTES_MAX));
        }
        if OF_PROCESS.fetch_add(bytes, Relaxed) + bytes > BODIES_BYTES_MAX {
            OF_PROCESS.fetch_sub(bytes, Relaxed);
            return Err(too_much("all virtual users hold", BODIES_BYTES_MAX));
        }
        self.0.set(of_user);
        Ok(Held { bytes, of_user: self.clone() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of_user.0.set(self.of_user.0.get() - self.bytes);
        OF_PROCESS.fetch_sub(self.bytes, Relaxed);
    }
}

fn too_much(who: &str, bytes_max: u64) -> String {
    format!(
        "{who} response bodies and pages of more than {} MiB: use `responseType: 'none'`, or keep fewer responses",
        bytes_max >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_holds_no_more_than_its_share_and_gets_it_back() {
        let user = Bodies::default();
        let half = USER_BODIES_BYTES_MAX as usize / 2;
        let held = [user.hold(half).unwrap(), user.hold(half).unwrap()];
        assert!(user.hold(1).unwrap_err().contains("a virtual user"));
        drop(held);
        drop(user.hold(half).unwrap());
        let users: Vec<Bodies> = (0..64).map(|_| Bodies::default()).collect();
        let held: Vec<_> = users.iter().map_while(|user| user.hold(half).ok()).collect();
        assert!((held.len() as u64) <= BODIES_BYTES_MAX / half as u64);
        assert!(users[63].hold(half).unwrap_err().contains("all virtual users"));
    }
}
