//! What recorded commands use until they are submitted.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Gpu, Pooled, shard::Spot};

/// What the commands of one recording use. A queue runs in order, so all of it may be used again once they are submitted.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(super) _params: Pooled,
    /// Where the shards are that they read.
    pub(super) _spots: Vec<Spot>,
}

/// What commands in encoders of callers use.
#[derive(Debug, Default)]
pub(super) struct Recordings(Mutex<Vec<Held>>);

#[derive(Debug)]
struct Held {
    /// Gone when the commands have run, or will not.
    token: Weak<()>,
    _recorded: Recorded,
    _status: Arc<Pooled>,
}

impl Recordings {
    /// Lets go of what commands used that have run.
    pub(super) fn sweep(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|held| held.token.strong_count() > 0);
    }
}

impl Gpu {
    /// Keeps what commands in `encoder` use until they have run, or are dropped.
    pub(crate) fn hold(&self, encoder: &wgpu::CommandEncoder, recorded: Recorded, status: Arc<Pooled>) {
        self.recordings.sweep();
        let token = Arc::new(());
        let held = Held { token: Arc::downgrade(&token), _recorded: recorded, _status: status };
        self.recordings.0.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        // wgpu drops it with the encoder or the commands, or calls it. What they use is not among what threads may send each
        // other in a browser, so this is not more than a sign.
        encoder.on_submitted_work_done(move || drop(token));
    }
}
