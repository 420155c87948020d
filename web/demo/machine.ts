// What it runs on, and how fast that is.

import type { Engine, Measurement } from 'gatherum';
import { amount, count, element, fill, terms } from './dom.js';

export function name(engine: Engine): string {
    const { adapter, backend } = engine;
    const told = adapter.name ? ` (${adapter.name})` : '';
    if (backend === 'webgpu') {
        return adapter.kind === 'software'
            ? `WebGPU, on an adapter that software imitates${told}`
            : `WebGPU, on this device's graphics processor${told}`;
    }
    return 'WebAssembly on the processor';
}

export function describe(engine: Engine): void {
    const why =
        engine.backend === 'webgpu'
            ? ''
            : 'gpu' in navigator
              ? ': this browser offers no graphics processor to WebGPU that would be faster, or another backend was asked for'
              : ': this browser has no WebGPU';
    element('adapter').textContent = `${name(engine)}${why}.`;
    const { device } = engine;
    fill(
        element('limits'),
        device
            ? terms([
                  ['Largest buffer', amount(device.limits.maxBufferSize)],
                  ['Largest part that a kernel sees', amount(device.limits.maxStorageBufferBindingSize)],
              ])
            : [],
    );
}

/** Times of this machine, in words. */
export function tell(engine: Engine, measured: Measurement): string {
    const { rows, dim, ids, gather, copy, toPage, loop, differing } = measured;
    const ms = (time: number): string => `${time.toFixed(time < 1 ? 3 : 1)} ms`;
    const times = (one: number, other: number): string => (one / other).toFixed(2);
    const what = `${count(ids)} random rows of an int8 table of ${count(rows)} × ${count(dim)}`;
    const here =
        gather === undefined
            ? `Copying as many bytes from one array to another takes ${ms(copy)}.`
            : `Left on the device they take ${ms(gather)}; the fastest shader that only copies as many bytes takes ${ms(copy)} there: ` +
              `looking up is ${times(copy, gather)} as fast as copying.`;
    const page =
        `Decoded and brought to this page they take ${ms(toPage)}; a loop in JavaScript over typed arrays takes ${ms(loop)}, ` +
        `${times(loop, toPage)} times as long${gather === undefined ? '' : `, and ${times(loop, gather)} times as long as on the device`}.`;
    const same =
        differing === 0
            ? `All ${count(ids * dim)} values are those of the loop, bit for bit.`
            : `${count(differing)} values differ from those of the loop: please report it.`;
    return `${name(engine)}: ${what}. ${here} ${page} ${same}`;
}
