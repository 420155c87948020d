//! Trying again.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use futures_timer::Delay;
use futures_util::future::{Either, select};

/// What is done about a source that fails: it is asked again, after waits that double, until a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often a shard is asked for, at least once.
    pub attempts: u32,
    /// The wait before the second attempt; each one after is twice as long, up to 10 s.
    pub wait: Duration,
    /// The most that all attempts may take together, with the waits.
    pub deadline: Duration,
}

impl Default for Retry {
    /// Four attempts, of which the second begins after 100 ms; 30 s in all.
    fn default() -> Self {
        Self { attempts: 4, wait: Duration::from_millis(100), deadline: Duration::from_secs(30) }
    }
}

const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What became of attempts that failed.
#[derive(Debug)]
pub(crate) struct Tried<E> {
    /// Attempts that ended.
    pub(crate) attempts: u32,
    /// What the last of them ended with.
    pub(crate) last: Option<E>,
    /// Whether the deadline has passed.
    pub(crate) late: bool,
}

impl Retry {
    /// Makes attempts until one succeeds, fails in a way that `again` says is final, or there may be no more.
    pub(crate) async fn run<T, E, F: Future<Output = Result<T, E>>>(
        self,
        mut attempt: impl FnMut() -> F,
        again: impl Fn(&E) -> bool,
    ) -> Result<T, Tried<E>> {
        let tried = Mutex::new(Tried { attempts: 0, last: None, late: false });
        let lock = || tried.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wait = self.wait;
        let attempts = async {
            loop {
                match attempt().await {
                    Ok(value) => return Some(value),
                    Err(error) => {
                        let end = !again(&error);
                        let mut tried = lock();
                        tried.attempts += 1;
                        tried.last = Some(error);
                        if end || tried.attempts >= self.attempts {
                            return None;
                        }
                    }
                }
                Delay::new(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        };
        {
            let mut attempts = pin!(attempts);
            // What is done at once, as with local files, needs no timer.
            let first = poll_fn(|context| Poll::Ready(attempts.as_mut().poll(context))).await;
            let ended = match first {
                Poll::Ready(ended) => ended,
                Poll::Pending => match select(attempts, Delay::new(self.deadline)).await {
                    Either::Left((ended, _)) => ended,
                    Either::Right(_) => {
                        lock().late = true;
                        None
                    }
                },
            };
            if let Some(value) = ended {
                return Ok(value);
            }
        }
        Err(tried.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const QUICK: Retry = Retry { attempts: 3, wait: Duration::from_millis(1), deadline: Duration::from_secs(10) };

    #[test]
    fn it_is_tried_again_as_often_as_may_be() {
        for (good_at, result) in [(1, Ok(1)), (3, Ok(3)), (4, Err((3, Some(3), false)))] {
            let count = Cell::new(0);
            let attempt = async || {
                count.set(count.get() + 1);
                if count.get() == good_at { Ok(count.get()) } else { Err(count.get()) }
            };
            let got = pollster::block_on(QUICK.run(attempt, |_| true));
            assert_eq!(got.map_err(|tried| (tried.attempts, tried.last, tried.late)), result);
        }
        let tried = pollster::block_on(QUICK.run(async || Err::<(), _>("final"), |_| false)).unwrap_err();
        assert_eq!((tried.attempts, tried.last), (1, Some("final")));
    }

    #[test]
    fn the_deadline_ends_what_hangs() {
        let retry = Retry { deadline: Duration::from_millis(20), ..QUICK };
        let attempt = async || {
            Delay::new(Duration::from_secs(100)).await;
            Ok::<(), ()>(())
        };
        let tried = pollster::block_on(retry.run(attempt, |()| true)).unwrap_err();
        assert_eq!((tried.attempts, tried.late), (0, true));
    }
}
