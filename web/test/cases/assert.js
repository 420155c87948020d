// What cases compare by, in the page.

export function assert(condition, message) {
    if (!condition) {
        throw new Error(message);
    }
}

export function equal(found, wanted, what) {
    const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
    assert(one === other, `${what}: ${one}, not ${other}`);
}

/** Compares the bits of f32 values. */
export function sameBits(values, bits, what) {
    assert(values instanceof Float32Array, `${what}: no Float32Array`);
    const found = new Uint32Array(values.buffer, values.byteOffset, values.length);
    equal(found.length, bits.length, `${what}: number of values`);
    const at = bits.findIndex((value, index) => value !== found[index]);
    assert(at < 0, `${what}: value ${at} is ${values[at]}, bits ${found[at]} instead of ${bits[at]}`);
}

export function floats(bits) {
    return new Float32Array(Uint32Array.from(bits).buffer);
}

/** The error that a call ends with, in bounded time. */
export async function failure(call, what) {
    const late = new Promise((resolve) => setTimeout(() => resolve('late'), 30_000));
    const outcome = await Promise.race([
        Promise.resolve().then(call).then(() => 'done', (error) => ({ error })),
        late,
    ]);
    assert(outcome !== 'late', `${what}: not settled after 30 s`);
    assert(outcome !== 'done', `${what}: no error`);
    return outcome.error;
}

/** The same, of a class and code. */
export async function refused(type, code, call, what) {
    const error = await failure(call, what);
    assert(error instanceof type && error.code === code, `${what}: ${error?.name} ${error?.code}: ${error}`);
    return error;
}

/** Live bytes of the ledger without what is kept for the next call. */
export function settled(engine) {
    engine.trim();
    return engine.memory().live;
}
