//! `squall http`: makes the load that was typed.

use crate::args::HttpArgs;
use crate::failure::{ExitCode, Failure};
use crate::{build, echo, output};

/// Makes the run, or with `--dry-run` shows what it would be.
pub(crate) fn run(args: &HttpArgs) -> Result<ExitCode, Failure> {
    let plan = build::plan(args)?;
    output::result(&echo::text(&plan, &args.load, None))?;
    Ok(ExitCode::Ok)
}
