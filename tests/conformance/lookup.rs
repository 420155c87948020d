//! The ways to look rows up, and the check that all of them give what the reference says.

use gatherum::{
    BadIds, Engine, GatherError, IdBuffer, IdPolicy, IdSource, IdType, Ids, OutputBuffer, OutputDtype, Table, wgpu,
};
use half::f16;

use crate::{
    backend::Backend,
    fixture::Fixture,
    names::{Names, Read},
};

/// Ids of a batch, of any type.
#[derive(Clone, Debug)]
pub(crate) enum Batch {
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
}

impl Batch {
    /// Those of `ids` that the type can hold.
    pub(crate) fn of(id_type: IdType, ids: &[i128]) -> Self {
        let ids = ids.iter().copied();
        match id_type {
            IdType::U32 => Self::U32(ids.filter_map(|id| id.try_into().ok()).collect()),
            IdType::U64 => Self::U64(ids.filter_map(|id| id.try_into().ok()).collect()),
            IdType::I64 => Self::I64(ids.filter_map(|id| id.try_into().ok()).collect()),
            other => panic!("a new type of ids: {other:?}"),
        }
    }

    pub(crate) fn ids(&self) -> Ids<'_> {
        match self {
            Self::U32(ids) => ids.into(),
            Self::U64(ids) => ids.into(),
            Self::I64(ids) => ids.into(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids().len()
    }

    fn id_type(&self) -> IdType {
        match self {
            Self::U32(_) => IdType::U32,
            Self::U64(_) => IdType::U64,
            Self::I64(_) => IdType::I64,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::U32(ids) => bytemuck::cast_slice(ids),
            Self::U64(ids) => bytemuck::cast_slice(ids),
            Self::I64(ids) => bytemuck::cast_slice(ids),
        }
    }

    /// The stored rows that the ids name.
    pub(crate) fn rows(&self, names: Names, policy: IdPolicy) -> Vec<Option<Read>> {
        (0..self.len()).map(|at| names.row(self.ids().get(at).expect("an id"), policy)).collect()
    }
}

/// How ids and rows are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Ids from host memory, rows to it.
    Host,
    /// Ids from a buffer, rows to host memory.
    IdsOnDevice,
    /// Ids from host memory, rows to a buffer of the engine's.
    Buffer,
    /// Ids from a buffer, rows to a buffer of the engine's.
    BothOnDevice,
    /// Recorded: ids from a buffer, rows to the caller's buffer from this byte on.
    Recorded { offset: usize },
}

/// One way, and a type of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    pub(crate) way: Way,
    pub(crate) dtype: OutputDtype,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The bits of each element: an f32's, or an f16's in the low half.
    pub(crate) bits: Vec<u32>,
    pub(crate) bad: BadIds,
}

impl Answer {
    /// The elements of an f32 answer.
    pub(crate) fn f32s(&self) -> Vec<f32> {
        self.bits.iter().copied().map(f32::from_bits).collect()
    }

    /// What the f16 answer must be, where this is the f32 one.
    pub(crate) fn halved(&self) -> Self {
        let half = |bits: &u32| u32::from(f16::from_f32(f32::from_bits(*bits)).to_bits());
        Self { bits: self.bits.iter().map(half).collect(), bad: self.bad }
    }
}

/// Recorded lookups write behind and before words of this.
const GUARD: u32 = 0xa5a5_a5a5;
/// Bytes of ids buffers before the first id.
const IDS_OFFSET: usize = 12;

impl Lookup {
    pub(crate) const HOST_F32: Self = Self { way: Way::Host, dtype: OutputDtype::F32 };

    /// Every way that a backend has, with both types of elements.
    pub(crate) fn all(backend: &Backend) -> Vec<Self> {
        // 272 is a multiple of 16 and not of 256; 276 is only of 4.
        let ways: &[Way] = match backend.is_host() {
            true => &[Way::Host],
            false => &[
                Way::Host,
                Way::IdsOnDevice,
                Way::Buffer,
                Way::BothOnDevice,
                Way::Recorded { offset: 272 },
                Way::Recorded { offset: 276 },
            ],
        };
        let both = |way: &Way| [OutputDtype::F32, OutputDtype::F16].map(|dtype| Self { way: *way, dtype });
        ways.iter().flat_map(both).collect()
    }

    /// Few ways that go through every kernel there is for a table.
    pub(crate) fn kernels(backend: &Backend) -> Vec<Self> {
        let all = Self::all(backend);
        let is_one = |lookup: &Self| match lookup.way {
            Way::Host => backend.is_host() || lookup.dtype == OutputDtype::F32,
            Way::Recorded { .. } => true,
            _ => false,
        };
        all.into_iter().filter(is_one).collect()
    }

    /// Looks `batch` up in `table`, which is on `engine`.
    pub(crate) fn run(
        self,
        engine: &Engine,
        table: &Table,
        batch: &Batch,
        policy: IdPolicy,
    ) -> Result<Answer, GatherError> {
        if let Way::Host | Way::Buffer = self.way {
            return self.run_ids(engine, table, batch.ids().into(), policy);
        }
        // Around the ids stand numbers that are no row of anything.
        let mut bytes = vec![0xff; IDS_OFFSET];
        bytes.extend_from_slice(batch.bytes());
        bytes.extend([0xff; 8]);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
        let buffer = filled(device(engine), usage, &bytes);
        let count = u32::try_from(batch.len()).expect("a batch of 32 bits");
        let ids = IdBuffer { buffer: &buffer, offset: IDS_OFFSET as u64, count, id_type: batch.id_type() };
        match self.way {
            Way::Recorded { offset } => self.record(engine, table, ids, policy, offset),
            _ => self.run_ids(engine, table, ids.into(), policy),
        }
    }

    fn run_ids(
        self,
        engine: &Engine,
        table: &Table,
        ids: IdSource<'_>,
        policy: IdPolicy,
    ) -> Result<Answer, GatherError> {
        let (count, dim) = (count(ids), table.spec().shape().dim() as usize);
        if let Way::Buffer | Way::BothOnDevice = self.way {
            let rows = table.gather_buffer_blocking(ids, policy, self.dtype)?;
            assert_eq!((rows.rows() as usize, rows.dim() as usize, rows.dtype()), (count, dim, self.dtype));
            assert_eq!(rows.bytes(), (count * dim) as u64 * self.dtype.bytes());
            let bytes = read_back(engine, rows.buffer(), 0, rows.bytes().next_multiple_of(4));
            return Ok(Answer { bits: elements(&bytes, self.dtype, count * dim), bad: rows.bad() });
        }
        match self.dtype {
            OutputDtype::F32 => {
                let mut out = vec![f32::NAN; count * dim];
                let result = table.gather_into_blocking(ids, policy, &mut out);
                assert!(result.is_ok() || out.iter().all(|value| value.is_nan()), "an error has no output");
                Ok(Answer { bad: result?, bits: out.into_iter().map(f32::to_bits).collect() })
            }
            OutputDtype::F16 => {
                let mut out = vec![f16::NAN; count * dim];
                let result = table.gather_f16_into_blocking(ids, policy, &mut out);
                assert!(result.is_ok() || out.iter().all(|value| value.is_nan()), "an error has no output");
                Ok(Answer { bad: result?, bits: out.into_iter().map(|value| u32::from(value.to_bits())).collect() })
            }
            other => panic!("a new type of elements: {other:?}"),
        }
    }

    /// Records into an encoder, and looks at all of the output buffer, which was full of NaN and guards.
    fn record(
        self,
        engine: &Engine,
        table: &Table,
        ids: IdBuffer<'_>,
        policy: IdPolicy,
        offset: usize,
    ) -> Result<Answer, GatherError> {
        let count = ids.count as usize * table.spec().shape().dim() as usize;
        let words = (count as u64 * self.dtype.bytes()).div_ceil(4);
        let mut content = vec![GUARD; offset / 4];
        content.resize(content.len() + usize::try_from(words).expect("a 64-bit machine"), u32::MAX);
        content.resize(content.len() + 16, GUARD);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffer = filled(device(engine), usage, bytemuck::cast_slice(&content));
        let mut encoder = device(engine).create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let output = OutputBuffer { buffer: &buffer, offset: offset as u64, dtype: self.dtype };
        let status = table.encode_gather(&mut encoder, ids, policy, output)?;
        queue(engine).submit([encoder.finish()]);
        let bad = status.read_blocking();
        let bytes = read_back(engine, &buffer, 0, buffer.size());
        let (before, rest) = bytes.split_at(offset);
        let (rows, behind) = rest.split_at(rest.len() - 64);
        let intact = |bytes: &[u8]| bytes.as_chunks().0.iter().all(|word| u32::from_le_bytes(*word) == GUARD);
        assert!(intact(before), "{self:?}: words before the output were written");
        assert!(intact(behind), "{self:?}: words behind the output were written");
        let bits = elements(rows, self.dtype, count);
        if self.dtype == OutputDtype::F16 && count % 2 == 1 {
            assert_eq!(rows[rows.len() - 2..], [0, 0], "the half word behind an odd number of elements");
        }
        Ok(Answer { bits, bad: bad? })
    }
}

/// Looks `batch` up in these ways, the first of them f32, and compares with the reference, the naive reading of ids, and each other.
pub(crate) fn verify(
    lookups: &[Lookup],
    engine: &Engine,
    table: &Table,
    fixture: &Fixture,
    batch: &Batch,
    policy: IdPolicy,
) {
    let rows = batch.rows(fixture.names(), policy);
    let bad: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_none()).collect();
    let wanted = BadIds { count: bad.len() as u64, first: bad.first().map(|at| *at as u64) };
    let context = |lookup: Lookup| format!("{lookup:?}, {policy:?}, table {}, {batch:?}", table.name());
    if policy == IdPolicy::Error && wanted.count > 0 {
        for &lookup in lookups {
            let error = lookup.run(engine, table, batch, policy).expect_err("bad ids under the policy Error");
            refusal(&error, fixture, batch, wanted, lookup, &context(lookup));
        }
        return;
    }
    let mut f32s: Option<Answer> = None;
    for &lookup in lookups {
        let answer =
            lookup.run(engine, table, batch, policy).unwrap_or_else(|error| panic!("{}: {error}", context(lookup)));
        assert_eq!(answer.bad, wanted, "{}", context(lookup));
        match (&f32s, lookup.dtype) {
            // The first one is compared with the reference, all others with the first one.
            (None, _) => {
                assert_eq!(lookup.dtype, OutputDtype::F32, "the first way is f32");
                compare(fixture, &rows, &answer.f32s(), &context(lookup));
                f32s = Some(answer);
            }
            (Some(first), OutputDtype::F32) => same(&answer, first, fixture.dim(), &context(lookup)),
            (Some(first), _) => same(&answer, &first.halved(), fixture.dim(), &context(lookup)),
        }
    }
}

/// Compares f32 rows with the reference: zeros, positive ones, where there is none.
pub(crate) fn compare(fixture: &Fixture, rows: &[Option<Read>], got: &[f32], context: &str) {
    for (position, (row, got)) in rows.iter().zip(got.chunks_exact(fixture.dim())).enumerate() {
        match row {
            Some(row) => {
                fixture.compare(*row, got).unwrap_or_else(|error| panic!("position {position}: {error}; {context}"));
            }
            None => {
                assert!(got.iter().all(|value| value.to_bits() == 0), "position {position}: {got:?}, not 0; {context}");
            }
        }
    }
}

/// Compares answers to the bit.
pub(crate) fn same(got: &Answer, want: &Answer, dim: usize, context: &str) {
    assert_eq!((got.bits.len(), got.bad), (want.bits.len(), want.bad), "{context}");
    if let Some(at) = (0..got.bits.len()).find(|at| got.bits[*at] != want.bits[*at]) {
        let wrong = got.bits.iter().zip(&want.bits).filter(|(got, want)| got != want).count();
        panic!(
            "position {}, column {}: bits {:#010x}, not {:#010x} ({wrong} of {} differ); {context}",
            at / dim,
            at % dim,
            got.bits[at],
            want.bits[at],
            got.bits.len()
        );
    }
}

/// The refusal of a batch names table, position, id, rows and count.
fn refusal(error: &GatherError, fixture: &Fixture, batch: &Batch, bad: BadIds, lookup: Lookup, context: &str) {
    let GatherError::BadId { table, position, id, rows, count } = error else { panic!("{error}; {context}") };
    let first = bad.first.expect("a bad id");
    let value = batch.ids().get(usize::try_from(first).expect("a position"));
    // Ids of a recorded lookup may be gone when its status is read.
    let value = if matches!(lookup.way, Way::Recorded { .. }) { None } else { value };
    assert_eq!((*position, *count, *id, *rows), (first, bad.count, value, u64::from(fixture.rows())), "{context}");
    let name = gatherum::TableSource::name(&fixture.encoded);
    assert_eq!(table, name, "{context}");
    let text = error.to_string();
    for part in [name.to_owned(), format!("position {first}"), format!("{rows} rows"), format!("{count} such")] {
        assert!(text.contains(&part), "`{text}` does not say `{part}`");
    }
    assert!(value.is_none_or(|value| text.contains(&format!("id {value} "))), "`{text}` does not say {value:?}");
}

fn count(ids: IdSource<'_>) -> usize {
    match ids {
        IdSource::Host(ids) => ids.len(),
        IdSource::Device(ids) => ids.count as usize,
        other => panic!("a new source of ids: {other:?}"),
    }
}

/// The bits of `count` elements.
fn elements(bytes: &[u8], dtype: OutputDtype, count: usize) -> Vec<u32> {
    match dtype {
        OutputDtype::F32 => bytes.as_chunks().0.iter().take(count).map(|word| u32::from_le_bytes(*word)).collect(),
        OutputDtype::F16 => {
            bytes.as_chunks().0.iter().take(count).map(|half| u32::from(u16::from_le_bytes(*half))).collect()
        }
        other => panic!("a new type of elements: {other:?}"),
    }
}

pub(crate) fn device(engine: &Engine) -> &wgpu::Device {
    engine.device().expect("a device's engine")
}

pub(crate) fn queue(engine: &Engine) -> &wgpu::Queue {
    engine.queue().expect("a device's engine")
}

/// A buffer that holds `bytes`.
pub(crate) fn filled(device: &wgpu::Device, usage: wgpu::BufferUsages, bytes: &[u8]) -> wgpu::Buffer {
    let descriptor =
        wgpu::BufferDescriptor { label: Some("a test's"), size: bytes.len() as u64, usage, mapped_at_creation: true };
    let buffer = device.create_buffer(&descriptor);
    buffer.get_mapped_range_mut(..).expect("it is mapped").copy_from_slice(bytes);
    buffer.unmap();
    buffer
}

/// Bytes of a buffer, after all that was submitted.
pub(crate) fn read_back(engine: &Engine, buffer: &wgpu::Buffer, offset: u64, bytes: u64) -> Vec<u8> {
    read_from(device(engine), queue(engine), buffer, offset, bytes)
}

pub(crate) fn read_from(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    buffer: &wgpu::Buffer,
    offset: u64,
    bytes: u64,
) -> Vec<u8> {
    if bytes == 0 {
        return Vec::new();
    }
    let staging = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("a test's"),
        size: bytes,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, bytes);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, .., |result| result.expect("a mapping"));
    device.poll(wgpu::PollType::wait_indefinitely()).expect("the work ends");
    staging.get_mapped_range(..).expect("it is mapped").to_vec()
}
