// What lookups take on this machine.

import { ArgumentError, Engine, MemoryBudgetError } from '/pkg/index.js';
import { assert, equal, refused, settled } from './assert.js';

export async function lookups_are_measured_beside_copies_and_a_loop({ engine, backend }) {
    const baseline = settled(engine);
    const found = await engine.measure({ rows: 20_000, dim: 128, ids: 16_384 });
    equal([found.rows, found.dim, found.ids], [20_000, 128, 16_384], 'sizes');
    equal(found.differing, 0, 'values that differ from those of the loop');
    equal(found.gather === undefined, backend === 'host', 'rows that stay on a device');
    const times = [found.copy, found.toPage, found.loop, found.gather ?? 1];
    assert(times.every((time) => time > 0 && time < 60_000), `times: ${times}`);
    equal(settled(engine), baseline, 'the ledger');
    const share = (found.copy / found.gather).toFixed(2);
    const here = found.gather === undefined ? '' : `gather ${found.gather.toFixed(2)} ms, ${share} of a copy; `;
    return `${here}to the page ${found.toPage.toFixed(2)} ms, a loop ${found.loop.toFixed(2)} ms`;
}

export async function what_cannot_be_measured({ backend }) {
    const engine = await Engine.create({ backend, memoryBudget: 1e6 });
    for (const options of [{ rows: 0 }, { ids: 1.5 }, { dim: -1 }, { rows: 2 ** 33 }]) {
        await refused(ArgumentError, 'bad-argument', () => engine.measure(options), JSON.stringify(options));
    }
    const wide = { rows: 2, dim: (1 << 20) + 1 };
    await refused(ArgumentError, 'bad-argument', () => engine.measure({ ...wide, ids: 4 }), 'columns of no table');
    await refused(ArgumentError, 'too-large', () => engine.measure(wide), 'rows of 275 GB');
    await refused(MemoryBudgetError, 'over-budget', () => engine.measure({ rows: 20_000 }), 'a budget of less');
    equal(settled(engine), 0, 'the ledger');
    engine.free();
}
