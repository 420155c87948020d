//! Waiting for a submission without spinning: natively a thread of its own polls the device, in a browser its event loop
//! does.

use futures_channel::oneshot;

use crate::error::DeviceError;

/// The longest that a browser's device is left alone while it is waited for.
#[cfg(target_arch = "wasm32")]
const MOST_WAIT: std::time::Duration = std::time::Duration::from_millis(16);

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{OnceLock, mpsc},
        thread::JoinHandle,
    };

    use futures_channel::oneshot;

    type Request = (wgpu::SubmissionIndex, oneshot::Sender<Result<(), String>>);

    /// Polls one device for whoever waits on it.
    #[derive(Debug)]
    pub(crate) struct Waiter {
        device: wgpu::Device,
        thread: OnceLock<Option<Poller>>,
    }

    /// The thread, which ends before this is gone: a device let go on another thread while the process exits meets a driver
    /// that has been taken down already (Mesa crashes then).
    #[derive(Debug)]
    struct Poller {
        requests: Option<mpsc::Sender<Request>>,
        thread: Option<JoinHandle<()>>,
    }

    impl Drop for Poller {
        fn drop(&mut self) {
            drop(self.requests.take());
            if let Some(thread) =
                self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id())
            {
                // It catches panics of the driver; one of any other kind has been reported where it was.
                let _ = thread.join();
            }
        }
    }

    impl Waiter {
        pub(crate) fn new(device: &wgpu::Device) -> Self {
            Self { device: device.clone(), thread: OnceLock::new() }
        }

        /// Ends when the submission has run and its callbacks were called.
        pub(crate) async fn wait(&self, submission: wgpu::SubmissionIndex) -> Result<(), String> {
            let (answer, answered) = oneshot::channel();
            let request = (submission, answer);
            match self.thread.get_or_init(|| start(self.device.clone())) {
                Some(Poller { requests: Some(requests), .. }) => drop(requests.send(request)),
                // No thread to be had: poll here.
                _ => answer_one(&self.device, request),
            }
            answered.await.unwrap_or_else(|_| Err("the polling thread ended".to_owned()))
        }
    }

    fn start(device: wgpu::Device) -> Option<Poller> {
        let (requests, queue) = mpsc::channel::<Request>();
        let run = move || {
            // Ends when the engine, which holds the sender, is dropped.
            for request in queue {
                answer_one(&device, request);
            }
        };
        let thread = std::thread::Builder::new().name("gatherum-poll".to_owned()).spawn(run).ok()?;
        Some(Poller { requests: Some(requests), thread: Some(thread) })
    }

    fn answer_one(device: &wgpu::Device, (submission, answer): Request) {
        let poll = || device.poll(wgpu::PollType::Wait { submission_index: Some(submission), timeout: None });
        // wgpu panics in `poll` where the driver reports a lost device; here that is an answer.
        let result = match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the driver failed while it was waited for".to_owned()),
        };
        // Whoever waited may have gone.
        let _ = answer.send(result);
    }
}

#[cfg(target_arch = "wasm32")]
mod native {
    /// In a browser nothing needs to wait: callbacks come from the event loop.
    #[derive(Debug)]
    pub(crate) struct Waiter;

    impl Waiter {
        pub(crate) fn new(_device: &wgpu::Device) -> Self {
            Self
        }

        #[expect(clippy::unused_async, reason = "the native twin waits")]
        pub(crate) async fn wait(&self, _submission: wgpu::SubmissionIndex) -> Result<(), String> {
            Ok(())
        }
    }
}

pub(super) use native::Waiter;

impl super::Gpu {
    /// Ends when the device gives the answer, and with none where it never will. A browser's event loop brings it: Firefox's once in a
    /// tenth of a second, unless something is submitted meanwhile, so that something is.
    pub(crate) async fn told<T>(&self, answer: oneshot::Receiver<T>) -> Option<T> {
        #[cfg(target_arch = "wasm32")]
        {
            use futures_util::future::{Either, select};
            let (mut answer, mut wait) = (answer, std::time::Duration::from_millis(1));
            loop {
                self.queue.submit([]);
                match select(answer, futures_timer::Delay::new(wait)).await {
                    Either::Left((answer, _)) => return answer.ok(),
                    Either::Right(((), rest)) => (answer, wait) = (rest, (wait * 2).min(MOST_WAIT)),
                }
            }
        }
        #[cfg(not(target_arch = "wasm32"))]
        answer.await.ok()
    }

    /// Ends when the bytes of an upload have left the memory that the driver, or the browser, keeps for what is on its way.
    pub(crate) async fn settle_upload(&self, submission: wgpu::SubmissionIndex) -> Result<(), DeviceError> {
        #[cfg(target_arch = "wasm32")]
        {
            let (done, ended) = oneshot::channel();
            self.queue.on_submitted_work_done(move || _ = done.send(()));
            // It ends on a lost device too, which `settle` then tells.
            let _ = self.told(ended).await;
        }
        self.settle(submission).await
    }

    /// Ends when the submission has run.
    pub(crate) async fn settle(&self, submission: wgpu::SubmissionIndex) -> Result<(), DeviceError> {
        self.waiter.wait(submission).await.map_err(|reason| self.lose(&reason))?;
        self.alive()
    }
}
