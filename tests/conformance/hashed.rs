//! Ids that are hashed: every one of 64 bits, every number of rows, and rows in any shards.

use gatherum::{
    BagMode, Bags, EncodedTable, Engine, IdPolicy, IdType, Metric, OutputDtype, Placement, Scheme, Shape, TableSource,
    testing, wgpu,
};

use crate::{
    backend::Backend,
    bagged,
    case::{Case, Stamp},
    fixture::{Repeated, hash, values},
    lookup::{Answer, Batch, Lookup, Way, filled, read_from, same},
    names::{Names, Read, murmur3},
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a02_the_oracle_of_hashes", operation: "gather", stamp: Stamp::Once(a02_the_oracle_of_hashes) },
    Case { name: "a02_every_hash", operation: "gather", stamp: Stamp::Devices(a02_every_hash) },
    Case { name: "a08_hash_rows_in_any_shards", operation: "all", stamp: Stamp::Devices(a08_hash_rows_in_any_shards) },
];

/// Published answers.
fn a02_the_oracle_of_hashes() {
    for (bytes, seed, want) in [
        (&b""[..], 0, 0),
        (b"", 1, 0x514e_28b7),
        (b"test", 0, 0xba6b_d213),
        (b"test", 0x9747_b28c, 0x704b_81dc),
        (b"Hello, world!", 0, 0xc036_3e43),
        (b"Hello, world!", 0x9747_b28c, 0x2488_4cba),
    ] {
        assert_eq!(murmur3(bytes, seed), want);
    }
}

/// The files of an index, and whether an id reads several rows.
fn source(index: &str) -> String {
    let files: &[&str] = match index {
        "hash" => &[
            include_str!("../data/rows_one.wgsl"),
            include_str!("../../shaders/index/divide.wgsl"),
            include_str!("../../shaders/index/murmur3.wgsl"),
            include_str!("../../shaders/index/hash.wgsl"),
        ],
        "multihash" => &[
            include_str!("../data/rows_several.wgsl"),
            include_str!("../../shaders/index/murmur3.wgsl"),
            include_str!("../../shaders/index/multihash.wgsl"),
        ],
        _ => &[
            include_str!("../data/rows_several.wgsl"),
            include_str!("../../shaders/index/divide.wgsl"),
            include_str!("../../shaders/index/qr.wgsl"),
        ],
    };
    let around = [
        include_str!("../../shaders/contract.wgsl"),
        include_str!("../../shaders/index/ids.wgsl"),
        include_str!("../../shaders/index/hashed.wgsl"),
        include_str!("../data/row_of.wgsl"),
    ];
    [&around, files].concat().concat()
}

/// The shaders' own functions for numbers of rows that no test could store, against numbers of 128 bits.
fn a02_every_hash(backend: &Backend) {
    let device = backend.device(wgpu::Limits::default());
    let module = |index| {
        device.0.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(index),
            source: wgpu::ShaderSource::Wgsl(source(index).into()),
        })
    };
    let modules = ["hash", "multihash", "qr"].map(module);
    let counts = [
        1,
        2,
        3,
        37,
        64,
        1000,
        65_535,
        65_536,
        65_537,
        1 << 20,
        0x00ff_ffff,
        (1 << 31) - 1,
        1 << 31,
        (1 << 31) + 1,
        0xffff_0000,
        0xffff_0001,
        u32::MAX - 1,
    ];
    for rows in counts {
        let edges =
            [0, 1, u64::from(rows) - 1, rows.into(), u64::from(rows) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 5];
        let far = [1 << 63, (1 << 63) - 1, u64::MAX, u64::MAX - 1, u64::from(rows) << 32, (u64::from(rows) << 32) - 1];
        // Multiples of the number of rows, and their neighbours.
        let near = (0..200).flat_map(|seed| {
            let multiple = hash(seed) / u64::from(rows) * u64::from(rows);
            [multiple, multiple.wrapping_sub(1), hash(seed + 1000)]
        });
        let ids: Vec<u64> = edges.into_iter().chain(far).chain(near).collect();
        let check = |module: &wgpu::ShaderModule, scheme: String, of: u32, constants: &[(&str, f64)]| {
            let spec = scheme.parse::<Scheme>().expect("a scheme").spec(Shape::new(of.into(), 1).expect("a shape"));
            let names = Names::of(&spec.expect("such rows"));
            let found = row_of(&device, module, &ids, of, constants);
            for (id, found) in ids.iter().zip(found) {
                let want = names.row((*id).into(), IdPolicy::Error).expect("every id has a row");
                assert_eq!(Read::of(&found[..want.rows().len()]), want, "id {id:#x} of {of} rows by {scheme}");
            }
        };
        let number = ("HASH_ROWS", f64::from(rows));
        check(&modules[0], format!("hash:rows={rows}/f32"), 1000, &[number]);
        check(&modules[0], format!("hash:rows={rows},fn=mix/f32"), 1000, &[number, ("HASH_MIX", 1.0)]);
        for tables in (2..=4).filter(|tables| *tables <= rows) {
            let scheme = format!("multihash:k={tables},rows={rows}/f32");
            check(&modules[1], scheme, 1000, &[number, ("ROWS", f64::from(tables))]);
        }
        if (2..=1 << 31).contains(&rows) {
            // Quotients of the table are few, and as many as there may be.
            for of in [1, rows, u32::MAX - 1, 1_234_567_891] {
                check(&modules[2], format!("qr:rows={rows}/f32"), of, &[("REMAINDERS", f64::from(rows))]);
            }
        }
    }
}

/// What `row_of` says of each id, in a table of so many rows.
fn row_of(
    (device, queue): &(wgpu::Device, wgpu::Queue),
    module: &wgpu::ShaderModule,
    ids: &[u64],
    rows: u32,
    constants: &[(&str, f64)],
) -> Vec<[u32; 4]> {
    let constants = [&[("DIM", 1.0), ("ID_WORDS", 2.0)], constants].concat();
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("row_of"),
        layout: None,
        module,
        entry_point: Some("all_rows"),
        compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() },
        cache: None,
    });
    let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let layout = testing::params_layout();
    let bytes = layout.iter().map(|(_, offset, size)| offset + size).max().expect("members");
    let mut params = vec![0; bytes.next_multiple_of(16)];
    let at = layout.iter().find(|(name, ..)| *name == "rows").expect("a member").1;
    params[at..at + 4].copy_from_slice(&rows.to_le_bytes());
    let params = filled(device, wgpu::BufferUsages::UNIFORM, &params);
    let input = filled(device, storage, bytemuck::cast_slice(ids));
    let output = filled(device, storage, &vec![0xff; ids.len() * 16]);
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("row_of"),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[(0, &params), (1, &input), (3, &output)]
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }),
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.dispatch_workgroups(u32::try_from(ids.len().div_ceil(64)).expect("few ids"), 1, 1);
    drop(pass);
    queue.submit([encoder.finish()]);
    let back = read_from(device, queue, &output, 0, output.size());
    let words: Vec<u32> = back.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    words.as_chunks().0.to_vec()
}

const MIB: u64 = 1 << 20;

/// Seven shards, of which a pass binds five: rows that an id reads are in any of them, and every operation reads them together.
fn a08_hash_rows_in_any_shards(backend: &Backend) {
    let engine = backend.narrow(16 * MIB, 64 * MIB);
    // Odd, so that f16 rows share words; rows of quotients are long enough for tables of 32 bits to have as many.
    for (name, codec, dim) in [
        ("multihash:k=2,rows=9", "f16", 95),
        ("multihash:k=4,rows=9", "int8", 63),
        ("qr:rows=9,op=mul", "f32", 255),
        ("qr:rows=9,op=concat", "f32", 511),
    ] {
        let small: Scheme = format!("{name}/{codec}").parse().expect("a scheme");
        let base = Repeated::base(&small, 127, dim);
        let stored = 6 * 16 * MIB / base.spec().row_bytes() + 100;
        // Remainders take two shards and a part of the third.
        let (rows, of) = match name.starts_with("qr") {
            true => (stored * 2 / 5, stored * 2 / 5 * (stored * 3 / 5) - 7),
            false => (stored, 50_000_000),
        };
        let scheme = format!("{name}/{codec}").replace("rows=9", &format!("rows={rows}"));
        let shape = Shape::new(of, dim as u64).expect("a shape");
        let source = Repeated::as_is(&scheme.parse().expect("a scheme"), "any shards", &base, shape);
        let table = engine.load_blocking(&source).expect("it is split");
        assert_eq!(table.shards(), 7, "{scheme}");
        let host = Engine::host();
        let all: Vec<u32> = (0..base.spec().shape().rows()).collect();
        let base =
            host.load_blocking(&base).expect("host memory").gather_blocking(&all, IdPolicy::Error).expect("rows");

        let ids: Vec<i128> = (0..200).map(|at| i128::from(hash(at) >> (at % 40))).chain([-1]).collect();
        let batch = Batch::of(IdType::I64, &ids);
        let reads = batch.rows(Names::of(source.spec()), IdPolicy::Zero);
        let row = |read: &Option<Read>| read.map_or(vec![0.0; dim], |read| source.read(read, &base.values));
        let want: Vec<Vec<f32>> = reads.iter().map(row).collect();
        let bad = gatherum::BadIds { count: 1, first: Some(batch.len() as u64 - 1) };
        let wanted = Answer { bits: want.iter().flatten().map(|value| value.to_bits()).collect(), bad };
        for (dtype, wanted) in [(OutputDtype::F32, &wanted), (OutputDtype::F16, &wanted.halved())] {
            for way in [Way::Host, Way::Recorded { offset: 276 }] {
                let lookup = Lookup { way, dtype };
                let answer = lookup.run(&engine, &table, &batch, IdPolicy::Zero).expect("an answer");
                same(&answer, wanted, dim, &format!("{lookup:?}, {scheme}"));
            }
        }

        let lengths = [3, 0, 100, batch.len() - 103];
        let weights = values(batch.len(), 4);
        let counts = lengths.map(|length| length as u64);
        let bags = Bags::lengths(&counts, BagMode::Sum).weights(&weights);
        let got = table.bag_blocking(batch.ids(), &bags, IdPolicy::Zero).expect("an answer").values;
        let order =
            Passes::of(&Placement::plan(source.spec(), gatherum::Bytes(16 * MIB)).expect("a placement"), &reads);
        let wanted = order.sums(&lengths, &weights, &want, &reads);
        bagged::same(&got, &wanted, &scheme);

        let rows = 1000..1100;
        let (f32s, _) =
            EncodedTable::encode("rows", &source.rows(rows.clone(), &base.values), dim, &"f32".parse().expect("f32"))
                .expect("finite");
        let f32s = host.load_blocking(&f32s).expect("host memory");
        let queries = values(5 * dim, 6);
        for queries in [&queries[..dim], &queries] {
            let got = table.score_blocking(queries, Metric::Cosine, rows.clone()).expect("scores").values;
            bagged::same(&got, &f32s.score_blocking(queries, Metric::Cosine, ..).expect("scores").values, &scheme);
        }
    }
}

/// The documented order of passes: of all sets of groups of shards, the smaller first, and then by their numbers.
struct Passes {
    shard_rows: u32,
    group: u32,
}

impl Passes {
    fn of(placement: &Placement, reads: &[Option<Read>]) -> Self {
        let each = reads.iter().flatten().next().expect("a row").rows().len();
        Self { shard_rows: placement.shards()[0].rows, group: 5 / u32::try_from(each).expect("few rows") }
    }

    /// The groups that are read.
    fn set(&self, read: &Read) -> (usize, Vec<u32>) {
        let mut groups: Vec<u32> = read.rows().iter().map(|row| row / self.shard_rows / self.group).collect();
        groups.sort_unstable();
        groups.dedup();
        (groups.len(), groups)
    }

    /// Weighted sums of bags in that order, by stretches of 1,024 ids.
    fn sums(&self, lengths: &[usize], weights: &[f32], rows: &[Vec<f32>], reads: &[Option<Read>]) -> Vec<f32> {
        let (mut begin, mut out) = (0, Vec::new());
        for length in lengths {
            let mut sum = vec![0.0; rows[0].len()];
            let mut order: Vec<usize> = (begin..begin + length).collect();
            for stretch in order.chunks_mut(1024) {
                stretch.sort_by_key(|at| reads[*at].map(|read| self.set(&read)));
                for &at in stretch.iter().filter(|at| reads[**at].is_some()) {
                    sum.iter_mut().zip(&rows[at]).for_each(|(sum, value)| *sum += value * weights[at]);
                }
            }
            out.extend(sum);
            begin += length;
        }
        out
    }
}
