// Loading, memory and lost devices.

import { ArgumentError, DeviceLostError, Engine, FileError, MemoryBudgetError, NetworkError } from '/pkg/index.js';
import init from '/pkg/wasm/gatherum.js';
import { assert, equal, failure, refused, sameBits, settled } from './assert.js';

const first = (tables) => tables.find((table) => table.scheme === 'int8' && table.dim === 63);
const fetched = async (address) => (await fetch(address)).arrayBuffer();

export async function a15_the_ledger_is_back_at_its_baseline_after_100_tables({ engine, vectors, tables, backend }) {
    const wanted = first(tables);
    const bytes = await fetched(`${vectors}/${wanted.name}.safetensors`);
    const ids = Uint32Array.from(wanted.ids);
    const baseline = settled(engine);
    equal(baseline, 0, 'an engine without tables');
    for (let time = 0; time < 100; time += 1) {
        const table = await engine.load(bytes, { name: 'again' });
        const { live, rows } = engine.memory();
        const own = rows.filter((row) => row.label === 'table.again').reduce((sum, row) => sum + row.live, 0);
        equal(own, table.memory().bytes, 'bytes of the table');
        assert(live >= own, 'bytes of all');
        sameBits((await table.gather(ids)).values, wanted.bits, `time ${time}`);
        table.free();
    }
    equal(settled(engine), baseline, `the ledger of the ${backend}`);
    equal(first(tables).bytes, 131 * 63 + 131 * 4, 'the size function');
}

export async function a15_engines_come_and_go({ backend, vectors, tables }) {
    const wanted = first(tables);
    const bytes = await fetched(`${vectors}/${wanted.name}.safetensors`);
    for (let time = 0; time < 10; time += 1) {
        const engine = await Engine.create({ backend });
        const table = await engine.load(bytes);
        const answer = table.gather(Uint32Array.from(wanted.ids));
        // What is on its way still ends.
        engine.free();
        sameBits((await answer).values, wanted.bits, 'an answer of a freed engine');
        await refused(ArgumentError, 'freed', () => table.gather(Uint32Array.of(1)), 'a table of a freed engine');
        await refused(ArgumentError, 'freed', () => engine.load(bytes), 'a freed engine');
        if (engine.device) {
            equal((await engine.device.lost).reason, 'destroyed', 'the device');
        }
    }
}

export async function a15_a_budget_is_never_passed({ backend, vectors, tables }) {
    const wanted = first(tables);
    const bytes = await fetched(`${vectors}/${wanted.name}.safetensors`);
    const engine = await Engine.create({ backend, memoryBudget: 9000 });
    const error = await refused(MemoryBudgetError, 'over-budget', async () => {
        await engine.load(bytes, { name: 'one' });
        await engine.load(bytes, { name: 'two' });
    }, 'two tables');
    equal([error.budget, error.live, error.needed > 8700, error.largest > 8700], [9000, error.needed, true, true], 'numbers');
    equal(engine.memory().budget, 9000, 'the budget');
    assert(engine.memory().live <= 9000, 'the ledger');
    engine.free();
    for (const budget of [-1, NaN]) {
        await refused(ArgumentError, 'bad-argument', () => Engine.create({ memoryBudget: budget }), `a budget of ${budget}`);
    }
}

export async function a16_a_table_never_lies_in_the_memory_of_the_module({ backend, vectors }) {
    if (backend === 'host') {
        return 'a table of the host is there';
    }
    const { memory } = await init();
    // Of its own, so that its device's memory is gone after.
    const engine = await Engine.create({ backend });
    let loaded = 0;
    let total;
    const before = memory.buffer.byteLength;
    const table = await engine.load(`${vectors}/large.safetensors`, {
        onProgress: (progress) => {
            assert(progress.loaded > loaded, 'progress goes on');
            ({ loaded, total } = progress);
        },
    });
    equal([loaded, table.memory().bytes], [total, 98304 * 256 * 2], 'all of it');
    const grown = memory.buffer.byteLength - before;
    assert(grown < 8e6, `the module's memory grew by ${grown} bytes for a table of ${table.memory().bytes}`);
    // Whatever other tests needed before is in it too.
    assert(memory.buffer.byteLength < 32e6, `the module has ${memory.buffer.byteLength} bytes`);
    const rows = await table.gather(Uint32Array.of(0, 98303));
    const wanted = (row, column) => ((row * 256 + column) % 4093) / 64;
    for (const [at, row] of [0, 98303].entries()) {
        const near = [...rows.values.subarray(at * 256, (at + 1) * 256)];
        assert(near.every((value, column) => Math.abs(value - wanted(row, column)) <= wanted(row, column) / 2048), `row ${row}`);
    }
    engine.free();
    return `${grown} bytes more for a table of ${total}, ${memory.buffer.byteLength} in all`;
}

export async function files_of_every_kind({ engine, vectors, tables }) {
    const wanted = first(tables);
    const address = `${vectors}/${wanted.name}.safetensors`;
    const bytes = new Uint8Array(await fetched(address));
    const baseline = settled(engine);
    const pieces = new ReadableStream({
        start(controller) {
            // Pieces of all sizes, some of them empty.
            for (let at = 0, size = 0; at < bytes.length; at += size, size = (size * 3 + 1) % 251) {
                controller.enqueue(bytes.slice(at, at + size));
            }
            controller.close();
        },
    });
    const behind = new Uint8Array(bytes.length + 3);
    behind.set(bytes, 3);
    const inputs = {
        'an address': address,
        'a URL': new URL(address, location.href),
        'an answer': await fetch(address),
        'a blob': new Blob([bytes]),
        'an ArrayBuffer': bytes.buffer,
        'a view': behind.subarray(3),
        'a stream': pieces,
    };
    for (const [what, input] of Object.entries(inputs)) {
        const table = await engine.load(input);
        sameBits((await table.gather(Uint32Array.from(wanted.ids))).values, wanted.bits, what);
        const named = ['an address', 'a URL', 'an answer'].includes(what);
        equal(table.name, named ? wanted.name : 'table', `${what}: the name`);
        table.free();
    }
    await refused(ArgumentError, 'bad-argument', () => engine.load(17), 'a number');
    equal(settled(engine), baseline, 'the ledger');
}

export async function a13_damaged_files({ engine, vectors, tables }) {
    const wanted = first(tables);
    const address = `${vectors}/${wanted.name}.safetensors`;
    const bytes = new Uint8Array(await fetched(address));
    const baseline = settled(engine);
    const data = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
    for (const end of [0, 1, 8, 9, data - 1, data, data + 10, bytes.length - 1]) {
        await refused(FileError, 'damaged-file', () => engine.load(bytes.slice(0, end)), `cut at ${end}`);
    }
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    await refused(FileError, 'damaged-file', () => engine.load(longer), 'a byte too many');
    for (const at of [data, data + 600, bytes.length - 3]) {
        const error = await refused(FileError, 'damaged-file', () => engine.load(`${address}?flip=${at}`), `a bit of byte ${at}`);
        assert(/checksum/.test(error.message) && error.message.includes(wanted.name), error.message);
    }
    const text = new TextDecoder().decode(bytes.subarray(8, data));
    const edited = (from, to) => {
        const copy = bytes.slice();
        copy.set(new TextEncoder().encode(text.replace(from, to)), 8);
        return copy;
    };
    await refused(FileError, 'unknown-version', () => engine.load(edited('"format_version":"1"', '"format_version":"2"')), 'version');
    await refused(FileError, 'unknown-scheme', () => engine.load(edited('"scheme":"int8"', '"scheme":"int9"')), 'scheme');
    await refused(FileError, 'not-a-table', () => engine.load(edited('"format":"gatherum"', '"format":"gathered"')), 'format');
    const page = new TextEncoder().encode('<!doctype html><html>not found</html>');
    await refused(FileError, 'not-a-table', () => engine.load(page), 'a page');
    await refused(FileError, 'damaged-file', () => engine.load(Uint8Array.of(255, 255, 255, 127, 0, 0, 0, 0, 123)), 'a header of 2 GB');
    const missing = await refused(NetworkError, 'network', () => engine.load(`${vectors}/none.safetensors`), 'no such file');
    equal(missing.status, 404, 'status');
    await refused(NetworkError, 'network', () => engine.load('http://127.0.0.1:9/x'), 'no such server');
    await refused(NetworkError, 'network', () => engine.load(`${vectors}/large.safetensors?cut=3000000`), 'a connection that breaks');
    equal(settled(engine), baseline, 'the ledger');
}

export async function loading_is_cancelled_midway({ engine, vectors }) {
    const baseline = settled(engine);
    const reason = new Error('enough');
    for (const address of [`${vectors}/large.safetensors`, `${vectors}/large.safetensors?stop=2000000`]) {
        const control = new AbortController();
        let seen = 0;
        const error = await failure(() => {
            const onProgress = ({ loaded }) => {
                seen = loaded;
                if (loaded > 1_000_000) {
                    setTimeout(() => control.abort(reason), 20);
                }
            };
            return engine.load(address, { signal: control.signal, onProgress });
        }, address);
        equal(error, reason, 'the reason');
        assert(error === reason && seen > 1_000_000, 'midway');
        equal(settled(engine), baseline, 'the ledger');
    }
    const before = await failure(() => engine.load(`${vectors}/large.safetensors`, { signal: AbortSignal.abort() }), 'at once');
    equal(before.name, 'AbortError', 'the reason');
}

export async function a18_every_call_ends_when_the_device_is_lost({ backend, vectors, tables }) {
    if (backend === 'host') {
        return 'the host has no device';
    }
    const wanted = first(tables);
    const address = `${vectors}/${wanted.name}.safetensors`;
    const ids = Uint32Array.from({ length: 20_000 }, (_, at) => at % 131);
    const works = {
        gather: (table) => table.gather(ids),
        gatherToBuffer: (table) => table.gatherToBuffer(ids),
        bag: (table) => table.bag(ids, Uint32Array.of(0, 7)),
        topK: (table) => table.topK(new Float32Array(63).fill(1), 5),
    };
    for (const [name, work] of Object.entries(works)) {
        for (const when of ['before', 'in flight', 'later']) {
            const engine = await Engine.create({ backend });
            const table = await engine.load(address);
            await work(table);
            if (when !== 'in flight') {
                engine.device.destroy();
            }
            if (when === 'later') {
                await engine.device.lost;
            }
            const call = work(table);
            engine.device.destroy();
            const late = new Promise((resolve) => setTimeout(() => resolve('late'), 30_000));
            const outcome = await Promise.race([call.then(() => 'done', (error) => error), late]);
            assert(outcome !== 'late', `${name}, ${when}: it ends`);
            // What was over before the loss may have its answer; what waits for nothing may not know yet.
            const may = when === 'in flight' || (when === 'before' && name === 'gatherToBuffer');
            assert(outcome instanceof DeviceLostError || (may && outcome === 'done'), `${name}, ${when}: ${outcome}`);
            await engine.device.lost;
            await refused(DeviceLostError, 'device-lost', () => work(table), `${name}, ${when}: again`);
            equal(engine.lost, true, 'known');
            engine.free();
        }
    }
    const engine = await Engine.create({ backend });
    const loading = engine.load(`${vectors}/large.safetensors`, {
        onProgress: ({ loaded }) => loaded > 3_000_000 && engine.device.destroy(),
    });
    await refused(DeviceLostError, 'device-lost', () => loading, 'loading');
    equal(engine.memory().live, 0, 'nothing is left');
    engine.free();
    // Another engine goes on.
    const again = await Engine.create({ backend });
    const table = await again.load(address);
    sameBits((await table.gather(Uint32Array.from(wanted.ids))).values, wanted.bits, 'a new engine');
    again.free();
}

export async function a17_the_pages_own_handlers_fire({ backend, vectors, tables }) {
    if (backend === 'host') {
        return 'the host has no device';
    }
    const engine = await Engine.create({ backend });
    const table = await engine.load(`${vectors}/${first(tables).name}.safetensors`);
    const { device } = engine;
    const heard = new Promise((resolve) => device.addEventListener('uncapturederror', (event) => {
        event.preventDefault();
        resolve(event.error);
    }));
    device.pushErrorScope('validation');
    await table.gather(Uint32Array.of(1));
    await table.topK(new Float32Array(63).fill(1), 2);
    equal(await device.popErrorScope(), null, 'no error of ours in the scope of the page');
    device.createBuffer({ size: 4, usage: 0 });
    // Chromium sends what it knows along with other answers.
    await device.queue.onSubmittedWorkDone();
    assert((await heard) instanceof GPUError, 'an error of the page');
    sameBits((await table.gather(Uint32Array.from(first(tables).ids))).values, first(tables).bits, 'lookups go on');
    engine.free();
}
