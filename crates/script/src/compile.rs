//! The first world of a script, from which its program is made.

use std::rc::Rc;
use std::sync::Arc;

use crate::error::{ErrorKind, ScriptError};
use crate::options::Runtime;
use crate::program::{Building, Program, ProgramSetup, Source};
use crate::shared::Shared;
use crate::user::{Outcome, User, Work};
use crate::vm::return_free_memory;

impl Program {
    /// Compiles a script and runs its module bodies once, as k6's VU 0.
    ///
    /// # Errors
    /// When it cannot be read or compiled, or throws.
    pub fn compile(setup: ProgramSetup) -> Result<Arc<Self>, ScriptError> {
        let console = Arc::clone(&setup.console);
        let building = Rc::new(Building::new(setup));
        // No samples are taken in it.
        let shared = Rc::new(Shared::without_recorder(Arc::new(Runtime::default()), console, Arc::default()));
        let mut user = User::launch(&shared, Source::Building(Rc::clone(&building)), 0)?;
        match user.finish_alone(Work::Init) {
            Outcome::Failed(error) => return Err(building.placed(error)),
            Outcome::Aborted(reason) => return Err(ScriptError::aborted(reason)),
            Outcome::Done(_) | Outcome::Interrupted => {}
        }
        drop(user);
        let building = Rc::into_inner(building).ok_or_else(|| {
            ScriptError::new(
                ErrorKind::Exception,
                "the script is still running after its init",
                "stop its timers before the init code ends",
            )
        })?;
        let program = building.finish();
        return_free_memory();
        Ok(Arc::new(program))
    }
}
