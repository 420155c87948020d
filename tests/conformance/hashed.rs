//! A02 for ids that are hashed: every one of 64 bits, and every number of rows.

use gatherum::{testing, wgpu};

use crate::{
    backend::Backend,
    case::{Case, Stamp},
    fixture::hash,
    lookup::{filled, read_from},
    names::murmur3,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a02_the_oracle_of_hashes", operation: "gather", stamp: Stamp::Once(a02_the_oracle_of_hashes) },
    Case { name: "a02_every_hash", operation: "gather", stamp: Stamp::Devices(a02_every_hash) },
];

/// Published answers.
fn a02_the_oracle_of_hashes() {
    for (bytes, want) in [(&b""[..], 0), (b"test", 0xba6b_d213), (b"Hello, world!", 0xc036_3e43)] {
        assert_eq!(murmur3(bytes), want);
    }
}

/// The shader's own function for numbers of rows that no test could store, against numbers of 128 bits.
fn a02_every_hash(backend: &Backend) {
    let (device, queue) = backend.device(wgpu::Limits::default());
    let source = [
        include_str!("../../shaders/contract.wgsl"),
        include_str!("../../shaders/index/ids.wgsl"),
        include_str!("../../shaders/index/hash.wgsl"),
        include_str!("../data/row_of.wgsl"),
    ]
    .concat();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("row_of"),
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
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
        for mixed in [false, true] {
            let got = row_of(&device, &queue, &module, &ids, rows, mixed);
            for (id, got) in ids.iter().zip(got) {
                let number = if mixed { murmur3(&id.to_le_bytes()).into() } else { u128::from(*id) };
                assert_eq!(u128::from(got), number % u128::from(rows), "id {id:#x} of {rows} rows, mixed {mixed}");
            }
        }
    }
}

/// What `row_of` says of each id.
fn row_of(
    device: &wgpu::Device,
    queue: &wgpu::Queue,
    module: &wgpu::ShaderModule,
    ids: &[u64],
    rows: u32,
    mixed: bool,
) -> Vec<u32> {
    let constants =
        [("DIM", 1.0), ("ID_WORDS", 2.0), ("HASH_ROWS", f64::from(rows)), ("HASH_MIX", f64::from(u8::from(mixed)))];
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("row_of"),
        layout: None,
        module,
        entry_point: Some("all_rows"),
        compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() },
        cache: None,
    });
    let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let bytes = testing::params_layout().iter().map(|(_, offset, size)| offset + size).max().expect("members");
    let params = filled(device, wgpu::BufferUsages::UNIFORM, &vec![0; bytes.next_multiple_of(16)]);
    let input = filled(device, storage, bytemuck::cast_slice(ids));
    let output = filled(device, storage, &vec![0xff; ids.len() * 4]);
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
    back.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
