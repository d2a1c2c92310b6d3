//! What inspections share: the pool for those that would hold a worker up, and the bodies held back
//! while they are looked at.
//!
//! The engine itself is `tidegate_waf`; the stops that drive it are in `request::inspect`. Here is
//! what lies between: a phase is run with a panic contained ([`run`]), in place or by a thread of the
//! [`Pool`], and a request's body is kept in memory or a nameless file ([`held`]) until it may go on.

pub(crate) mod held;
mod pool;
pub mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use pool::Pool;
pub(crate) use pool::{Done, Job, NoRoom};
use tidegate_waf::Outside;
use tidegate_waf::context::Context;
use tidegate_waf::inspection::{Inspection, Inspector, Moment, Step, Work};
use tidegate_waf::variable::Phase;

/// What all inspections of a process share.
#[derive(Clone)]
pub struct Facilities {
    /// The threads for what would hold a worker up.
    pub pool: Arc<Pool>,
    /// What rules remember between requests.
    pub context: Option<Arc<Context>>,
    /// Whom rules ask beyond their request. Only the pool's threads do.
    pub outside: Option<Arc<dyn Outside>>,
}

impl std::fmt::Debug for Facilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facilities").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// An inspection that panicked: a bug of ours. What it held is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// Runs a phase, or as much of it as the work allows.
pub(crate) fn run(
    mut inspection: Inspection,
    work: Work,
    phase: Phase,
    moment: Moment,
    inspector: &mut Inspector,
) -> Result<(Inspection, Step), Lost> {
    let ran = contain(|| inspection.run_within(work, phase, moment, inspector));
    match ran {
        Ok(step) => Ok((inspection, step)),
        Err(lost) => {
            // What a panic has left half done is used no more.
            *inspector = Inspector::new();
            Err(lost)
        }
    }
}

/// Does something with an inspection; a panic in it is logged and told, and goes no further.
pub(crate) fn contain<T>(act: impl FnOnce() -> T) -> Result<T, Lost> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        tracing::error!(panic = text, "an inspection failed; the request goes the way of its mode");
        Lost
    })
}
