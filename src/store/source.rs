//! The seam to wherever bytes lie.

use std::{ops::Range, sync::Arc};

use super::Boxed;
use crate::{
    error::SourceError,
    scheme::TableSpec,
    source::{Changes, TableSource},
};

/// Bytes that can be read by ranges: a file, an object of a store, or whatever a caller has, such as a browser's `fetch`.
///
/// Nothing in it needs a thread or an executor of a certain kind, unless the source itself does. Calls may be dropped before
/// they end, and several may be under way at a time.
pub trait ByteSource: wgpu::WasmNotSendSync {
    /// A name for messages: a path, a URL.
    fn name(&self) -> &str;

    /// How many bytes there are.
    fn size(&self) -> impl Future<Output = Result<u64, SourceError>> + wgpu::WasmNotSend;

    /// Whether a range that was read once reads alike from then on, unless the disk fails: blocks of a table are then compared
    /// with their checksums when they are first read, and later reads bring no more than what they ask for.
    fn reads_alike(&self) -> bool {
        false
    }

    /// The bytes of `range`, as many as it has: fewer or more are taken for a failure.
    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, SourceError>> + wgpu::WasmNotSend;
}

impl<T: ByteSource> ByteSource for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn size(&self) -> impl Future<Output = Result<u64, SourceError>> + wgpu::WasmNotSend {
        (**self).size()
    }

    fn reads_alike(&self) -> bool {
        (**self).reads_alike()
    }

    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, SourceError>> + wgpu::WasmNotSend {
        (**self).read(range)
    }
}

/// Bytes in host memory.
#[derive(Clone, Debug)]
pub struct MemorySource {
    name: String,
    bytes: Arc<[u8]>,
}

impl MemorySource {
    /// Takes `bytes`; `name` is for messages.
    #[must_use]
    pub fn new(name: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { name: name.to_owned(), bytes: bytes.into() }
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn size(&self) -> Result<u64, SourceError> {
        Ok(self.bytes.len() as u64)
    }

    fn reads_alike(&self) -> bool {
        true
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        self.bytes.get(start..end).map(<[u8]>::to_vec).ok_or_else(|| {
            let (name, has) = (&self.name, self.bytes.len());
            SourceError::Invalid(format!("{name}: bytes {}..{} of {has}", range.start, range.end))
        })
    }
}

/// Any source of a table, behind a pointer.
#[derive(Clone)]
pub(crate) struct SharedSource(Arc<dyn Dynamic>);

impl SharedSource {
    pub(crate) fn new(source: impl TableSource + wgpu::WasmNotSendSync + 'static) -> Self {
        Self(Arc::new(source))
    }
}

/// [`TableSource`] by futures behind pointers.
trait Dynamic: wgpu::WasmNotSendSync {
    fn spec(&self) -> &TableSpec;
    fn name(&self) -> &str;
    fn changes(&self) -> Option<&Changes>;
    fn bytes_read(&self) -> Option<u64>;
    fn read_part<'a>(&'a self, part: usize, offset: u64, out: &'a mut [u8]) -> Boxed<'a, Result<(), SourceError>>;
}

impl<T: TableSource + wgpu::WasmNotSendSync> Dynamic for T {
    fn spec(&self) -> &TableSpec {
        TableSource::spec(self)
    }

    fn name(&self) -> &str {
        TableSource::name(self)
    }

    fn changes(&self) -> Option<&Changes> {
        TableSource::changes(self)
    }

    fn bytes_read(&self) -> Option<u64> {
        TableSource::bytes_read(self)
    }

    fn read_part<'a>(&'a self, part: usize, offset: u64, out: &'a mut [u8]) -> Boxed<'a, Result<(), SourceError>> {
        Box::pin(TableSource::read_part(self, part, offset, out))
    }
}

impl TableSource for SharedSource {
    fn spec(&self) -> &TableSpec {
        self.0.spec()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn changes(&self) -> Option<&Changes> {
        self.0.changes()
    }

    fn bytes_read(&self) -> Option<u64> {
        self.0.bytes_read()
    }

    async fn read_part(&self, part: usize, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.0.read_part(part, offset, out).await
    }
}
