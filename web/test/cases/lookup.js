// Lookups and what they refuse, on both backends. A case gets the package, an engine, the address of the vectors, and the
// name of the backend.

import { ArgumentError, BadIdError } from '/pkg/index.js';
import { assert, equal, floats, refused, sameBits } from './assert.js';

const plain = (tables, scheme, dim) => tables.find((table) => table.scheme === scheme && table.dim === dim);
const open = (engine, vectors, table) => engine.load(`${vectors}/${table.name}.safetensors`);

/** On software adapters a kernel takes seconds to compile, and each table has its own: the native suite runs all of them. */
const few = ({ backend }) => (table) => backend === 'host' || (table.dim === 100 && FEW.includes(table.scheme));
const FEW = ['f32', 'f16', 'int8:affine', 'int4'];

async function everyTable({ engine, vectors, tables }, each, only = () => true) {
    for (const wanted of tables.filter(only)) {
        const table = await open(engine, vectors, wanted);
        try {
            await each(table, wanted);
        } finally {
            table.free();
        }
    }
}

export async function a20_gathers_give_the_bits_of_the_native_host(context) {
    await everyTable(context, async (table, wanted) => {
        equal([table.name, table.scheme, table.rows, table.dim], [wanted.name, wanted.scheme, wanted.rows, wanted.dim], 'table');
        for (const type of [Uint32Array, BigUint64Array, BigInt64Array]) {
            const ids = type === Uint32Array ? Uint32Array.from(wanted.ids) : type.from(wanted.ids, BigInt);
            const rows = await table.gather(ids);
            equal([rows.rows, rows.dim, rows.badIds.count], [wanted.ids.length, wanted.dim, 0], wanted.name);
            sameBits(rows.values, wanted.bits, `${wanted.name}, ${type.name}`);
        }
    });
}

export async function a20_bags_give_the_bits_of_the_native_host(context) {
    await everyTable(context, async (table, wanted) => {
        for (const bag of wanted.bags) {
            const options = { mode: bag.mode, normalise: bag.normalise };
            if (bag.weights) {
                options.weights = floats(bag.weights);
            }
            if (bag.paddingId !== null) {
                options.paddingId = bag.paddingId;
            }
            const rows = await table.bag(Uint32Array.from(wanted.ids), Uint32Array.from(bag.offsets), options);
            sameBits(rows.values, bag.bits, `${wanted.name}, ${JSON.stringify(options)}`);
        }
    }, few(context));
}

export async function a20_the_nearest_rows_are_those_of_the_native_host(context) {
    await everyTable(context, async (table, wanted) => {
        for (const search of wanted.nearest) {
            const { metric, rows } = search;
            const leaveOut = search.leaveOut.map((row) => row ?? undefined);
            const found = await table.topK(floats(search.queries), search.k, { metric, rows, leaveOut });
            const what = `${wanted.name}, ${metric}`;
            equal([...found.ids], search.ids, `${what}: ids`);
            sameBits(found.scores, search.scores, `${what}: scores`);
        }
    }, few(context));
}

export async function a11_the_same_call_five_times_gives_the_same_bits({ engine, vectors, tables }) {
    for (const scheme of ['f32', 'f16', 'int8', 'int4']) {
        const wanted = plain(tables, scheme, 257);
        const table = await open(engine, vectors, wanted);
        const ids = Uint32Array.from(wanted.ids);
        for (let time = 0; time < 5; time += 1) {
            sameBits((await table.gather(ids)).values, wanted.bits, `${scheme}, time ${time}`);
        }
        // In whatever pieces.
        const halves = await Promise.all([table.gather(ids.subarray(0, 20)), table.gather(ids.subarray(20))]);
        sameBits(halves[0].values, wanted.bits.slice(0, 20 * 257), `${scheme}, first part`);
        sameBits(halves[1].values, wanted.bits.slice(20 * 257), `${scheme}, rest`);
        table.free();
    }
}

export async function a01_bad_ids({ engine, vectors, tables }) {
    for (const scheme of ['f32', 'f16', 'int8', 'int4', 'int2:affine', 'lowrank:k=12/int8']) {
        const wanted = tables.find((table) => table.scheme === scheme && [100, 257].includes(table.dim));
        if (!wanted) {
            continue;
        }
        const table = await open(engine, vectors, wanted);
        const rows = BigInt(table.rows);
        const good = (await table.gather(Uint32Array.of(table.rows - 1))).values;
        const bad = [rows, rows + 1n, -1n, -rows, -rows - 1n, -(2n ** 31n), 2n ** 29n, 2n ** 32n - 1n, 2n ** 32n + 3n];
        for (const id of bad) {
            const ids = BigInt64Array.of(rows - 1n, id, 0n);
            const error = await refused(BadIdError, 'bad-id', () => table.gather(ids), `${scheme}, id ${id}`);
            equal([error.table, error.position, error.rows, error.count, `${error.id}`], [wanted.name, 1, table.rows, 1, `${id}`], 'error');

            const zeroed = await table.gather(ids, { policy: 'zero' });
            equal(zeroed.badIds, { count: 1, first: 1 }, `${scheme}, id ${id}`);
            assert(zeroed.values.subarray(table.dim, 2 * table.dim).every((value) => Object.is(value, 0)), `${scheme}, id ${id}: zeros`);
            equal([...zeroed.values.subarray(0, table.dim)], [...good], `${scheme}: the good row`);

            const wrapped = await table.gather(ids, { policy: 'wrap' });
            const inside = id < 0n && id >= -rows;
            equal(wrapped.badIds.count, inside ? 0 : 1, `${scheme}, id ${id}: wrapped`);
            if (inside) {
                const row = await table.gather(BigInt64Array.of(id + rows));
                equal([...wrapped.values.subarray(table.dim, 2 * table.dim)], [...row.values], `${scheme}, id ${id}: wrapped`);
            }
        }
        const error = await refused(BadIdError, 'bad-id', () => table.gather(Uint32Array.of(0, 2 ** 32 - 1, table.rows)), 'u32');
        equal([error.position, error.count, `${error.id}`], [1, 2, `${2 ** 32 - 1}`], 'u32');
        await refused(BadIdError, 'bad-id', () => table.bag(Uint32Array.of(0, table.rows), Uint32Array.of(0)), 'a bag');
        table.free();
    }
}

export async function a02_wide_ids({ engine, vectors, tables }) {
    const wanted = plain(tables, 'int8', 63);
    const table = await open(engine, vectors, wanted);
    const row = (await table.gather(Uint32Array.of(5))).values;
    for (const [type, id] of [[BigUint64Array, 2n ** 32n + 5n], [BigInt64Array, 2n ** 32n + 5n], [BigUint64Array, 2n ** 64n - 1n]]) {
        const error = await refused(BadIdError, 'bad-id', () => table.gather(type.of(5n, id)), `${id}`);
        equal([error.position, `${error.id}`], [1, `${id}`], 'wide id');
        const rows = await table.gather(type.of(5n, id), { policy: 'zero' });
        equal([...rows.values], [...row, ...row.map(() => 0)], `${id}`);
    }
    table.free();

    // Where ids are hashed, each has a row.
    const hashed = await open(engine, vectors, tables.find((table) => table.scheme.startsWith('hash')));
    const rows = await hashed.gather(BigUint64Array.of(2n ** 32n + 5n, 2n ** 64n - 1n));
    equal(rows.badIds.count, 0, 'hashed');
    hashed.free();
}

export async function a03_nothing({ engine, vectors, tables }) {
    const table = await open(engine, vectors, plain(tables, 'int4', 7));
    const none = new Uint32Array(0);
    equal((await table.gather(none)).values.length, 0, 'no ids');
    equal((await table.bag(none, none)).rows, 0, 'no bags');
    for (const mode of ['sum', 'mean', 'max']) {
        const rows = await table.bag(Uint32Array.of(1, 2), Uint32Array.of(0, 0, 2), { mode });
        equal([...rows.values.subarray(0, 7)], Array(7).fill(0), `${mode}: the first bag is empty`);
        equal([...rows.values.subarray(14)], Array(7).fill(0), `${mode}: the last bag is empty`);
    }
    equal((await table.topK(new Float32Array(0), 3)).ids.length, 0, 'no queries');
    table.free();

    const empty = await engine.load(`${vectors}/empty.safetensors`);
    equal([empty.rows, empty.dim, empty.words], [0, 5, undefined], 'a table of 0 rows');
    equal((await empty.gather(none)).values.length, 0, 'no ids of no rows');
    await refused(BadIdError, 'bad-id', () => empty.gather(Uint32Array.of(0)), 'an id of no rows');
    equal([...(await empty.gather(Uint32Array.of(0), { policy: 'zero' })).values], [0, 0, 0, 0, 0], 'zeros');
    equal((await empty.topK([1, 2, 3, 4, 5], 3)).k, 0, 'the nearest of no rows');
    empty.free();
}

export async function a04_malformed_offsets({ engine, vectors, tables }) {
    const table = await open(engine, vectors, plain(tables, 'f16', 7));
    const ids = Uint32Array.of(1, 2, 3, 4);
    const before = engine.memory().live;
    const wrong = [
        ['decreasing', Uint32Array.of(0, 3, 2), {}],
        ['a late start', Uint32Array.of(1, 2), {}],
        ['behind the end', Uint32Array.of(0, 5), {}],
        ['negative', BigInt64Array.of(0n, -1n), {}],
        ['an end too early', Uint32Array.of(0, 2, 3), { bounds: 'offsets-with-last' }],
        ['no last one', new Uint32Array(0), { bounds: 'offsets-with-last' }],
        ['no offsets', new Uint32Array(0), {}],
        ['lengths of too few', Uint32Array.of(1, 2), { bounds: 'lengths' }],
        ['a wide length', BigUint64Array.of(2n ** 32n + 4n), { bounds: 'lengths' }],
        ['too few weights', Uint32Array.of(0), { weights: Float32Array.of(1) }],
        ['a weight that is NaN', Uint32Array.of(0), { weights: Float32Array.of(1, NaN, 1, 1) }],
        ['a weighted maximum', Uint32Array.of(0), { weights: new Float32Array(4), mode: 'max' }],
    ];
    for (const [what, bounds, options] of wrong) {
        await refused(ArgumentError, 'bad-bags', () => table.bag(ids, bounds, options), what);
    }
    equal(engine.memory().live, before, 'nothing was made');
    table.free();
}

export async function arguments_are_refused_by_name({ engine, vectors, tables }) {
    const table = await open(engine, vectors, plain(tables, 'f32', 3));
    for (const ids of [[1, 2], new Int32Array(2), new Float32Array(2), undefined, null, 'ids']) {
        await refused(ArgumentError, 'bad-argument', () => table.gather(ids), `ids: ${ids}`);
    }
    const one = Uint32Array.of(1);
    await refused(ArgumentError, 'bad-argument', () => table.gather(one, { policy: 'clamp' }), 'policy');
    await refused(ArgumentError, 'bad-argument', () => table.bag(one, one, { mode: 'min' }), 'mode');
    await refused(ArgumentError, 'bad-argument', () => table.bag(one, Uint32Array.of(0), { paddingId: 0.5 }), 'padding');
    await refused(ArgumentError, 'bad-argument', () => table.topK('king', 1), 'a query that is text');
    await refused(ArgumentError, 'bad-argument', () => table.topK([1, 2, 3], 1, { metric: 'l2' }), 'metric');
    for (const k of [0, -1, 1.5, 1025, NaN, 2 ** 40]) {
        await refused(ArgumentError, 'bad-query', () => table.topK([1, 2, 3], k), `k = ${k}`);
    }
    await refused(ArgumentError, 'bad-query', () => table.topK([1, 2], 1), 'a short query');
    await refused(ArgumentError, 'bad-query', () => table.topK([1, 2, NaN], 1), 'NaN');
    await refused(ArgumentError, 'bad-query', () => table.topK([1, 2, 3], 1, { rows: [0, 1000] }), 'rows');
    table.free();
    await refused(ArgumentError, 'freed', () => table.gather(one), 'a freed table');
    table.free();
}

export async function words_are_found({ engine, vectors, tables }) {
    const table = await open(engine, vectors, plain(tables, 'int8', 7));
    equal([table.words, table.word(7), table.find('word 7 é'), table.find('none')], [131, 'word 7 é', 7, undefined], 'words');
    equal(table.word(131), undefined, 'no such row');
    equal([...(await table.vector('word 7 é'))], [...(await table.gather(Uint32Array.of(7))).values], 'vector');
    await refused(ArgumentError, 'bad-argument', () => table.vector('none'), 'no such word');
    table.free();
}

export async function rows_in_buffers({ engine, vectors, tables, backend }) {
    const wanted = plain(tables, 'int8', 63);
    const table = await open(engine, vectors, wanted);
    const ids = Uint32Array.from(wanted.ids);
    if (backend === 'host') {
        await refused(ArgumentError, 'host-backend', () => table.gatherToBuffer(ids), 'no buffers');
        table.free();
        return;
    }
    const { device } = engine;
    const rows = await table.gatherToBuffer(ids);
    equal([rows.rows, rows.dim, rows.bytes], [ids.length, 63, ids.length * 63 * 4], 'rows');
    assert(rows.buffer instanceof GPUBuffer && device instanceof GPUDevice, 'WebGPU objects');
    // Other work on the same device reads it.
    const staging = device.createBuffer({ size: rows.bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(rows.buffer, 0, staging, 0, rows.bytes);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    sameBits(new Float32Array(staging.getMappedRange().slice(0)), wanted.bits, 'the rows of the buffer');
    staging.destroy();
    rows.free();
    await refused(BadIdError, 'bad-id', () => table.gatherToBuffer(Uint32Array.of(1000)), 'a bad id');
    const halves = await table.gatherToBuffer(ids, { dtype: 'f16' });
    equal(halves.bytes, ids.length * 63 * 2, 'f16');
    halves.free();
    const bags = await table.bagToBuffer(ids, Uint32Array.of(0, 4));
    equal(bags.rows, 2, 'bags');
    bags.free();
    table.free();
}
