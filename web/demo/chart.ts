// The engine's memory over time.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { amount } from './dom.js';

/** Points that are kept. */
const MOST = 2000;

export function memoryChart(parent: HTMLElement): { add(bytes: number): void } {
    const start = performance.now();
    const data: [number[], number[]] = [[], []];
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => (): string => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--faint'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line') } };
    const size = (): { width: number; height: number } => ({ width: Math.max(200, parent.clientWidth), height: 180 });
    const plot = new uPlot(
        {
            ...size(),
            legend: { show: false },
            cursor: { show: false },
            scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(1000, most * 1.1)] } },
            axes: [
                { ...axis, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
                { ...axis, size: 70, values: (_, ticks) => ticks.map((tick) => amount(tick)) },
            ],
            series: [{}, { stroke: colour('--accent'), width: 2, paths: uPlot.paths.stepped!({ align: 1 }) }],
        },
        data,
        parent,
    );
    new ResizeObserver(() => plot.setSize(size())).observe(parent);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw());
    return {
        add(bytes) {
            data[0].push((performance.now() - start) / 1000);
            data[1].push(bytes);
            if (data[0].length > MOST) {
                data.forEach((values) => values.shift());
            }
            plot.setData(data);
            parent.setAttribute('aria-label', `Bytes in the engine's ledger over time; now ${amount(bytes)}`);
        },
    };
}
