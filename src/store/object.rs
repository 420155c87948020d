//! Objects of any store that the crate `object_store` opens.

use std::{
    io,
    ops::Range,
    sync::{Arc, OnceLock},
};

use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use tokio::runtime::{Handle, Runtime};
use url::Url;

use super::ByteSource;
use crate::error::SourceError;

/// An object by its URL: `https://`, `http://`, `s3://`, `file://`, or any that the store crate knows.
///
/// Requests run on a thread of this module's own, so that they can be waited for by any executor.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl ObjectSource {
    /// Takes an object by its URL; what a store needs to know beside it (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` and such) is
    /// taken from the environment. Nothing is asked for yet.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] where the URL is none, or its store is not known.
    pub fn open(url: &str) -> Result<Self, SourceError> {
        let invalid = |reason: String| SourceError::Invalid(format!("{url}: {reason}"));
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        // TLS needs to be told who does its arithmetic; a host application may have chosen already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
        let options =
            options.filter(|(key, _)| key.starts_with("aws_")).chain([("allow_http".to_owned(), "true".to_owned())]);
        let (store, path) =
            object_store::parse_url_opts(&parsed, options).map_err(|error| invalid(error.to_string()))?;
        Ok(Self::new(url, store.into(), path))
    }

    /// Takes the object at `path` of a store that the caller has made; `name` is for messages.
    #[must_use]
    pub fn new(name: &str, store: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { name: name.to_owned(), store, path }
    }

    /// Runs a request where its timers and sockets are driven.
    async fn request<T: Send + 'static>(
        &self,
        what: String,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, SourceError> {
        let failed = |error: io::Error| SourceError::Io { what, error };
        let handle = match runtime() {
            Ok(handle) => handle,
            Err(error) => return Err(failed(error)),
        };
        let task = Aborted(handle.spawn(request));
        match task.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failed(error.into())),
            Err(error) => Err(failed(io::Error::other(error))),
        }
    }
}

/// A task that ends when nobody waits for it any more.
struct Aborted<T>(tokio::task::JoinHandle<T>);

impl<T> Future for Aborted<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ByteSource for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn size(&self) -> Result<u64, SourceError> {
        let (store, path) = (self.store.clone(), self.path.clone());
        let meta = self.request(self.name.clone(), async move { store.head(&path).await }).await?;
        Ok(meta.size)
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let what = format!("{}: bytes {}..{}", self.name, range.start, range.end);
        let (store, path) = (self.store.clone(), self.path.clone());
        let bytes = self.request(what, async move { store.get_range(&path, range).await }).await?;
        Ok(bytes.into())
    }
}

/// One runtime for all sources, driven by a thread that sleeps when there is nothing to do.
fn runtime() -> io::Result<Handle> {
    static RUNTIME: OnceLock<io::Result<Handle>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        let runtime: Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let run = move || runtime.block_on(std::future::pending::<()>());
        std::thread::Builder::new().name("gatherum-store".to_owned()).spawn(run)?;
        Ok(handle)
    });
    match made {
        Ok(handle) => Ok(handle.clone()),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}
