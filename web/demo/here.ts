// What of the table is here.

import type { ShardRows } from 'gatherum';
import { amount, count, element, fill } from './dom.js';

/** Shows the shards, each as wide as it has rows, and how much of the file has come. */
export function showShards(shards: ShardRows[], rows: number): void {
    const view = element('shards');
    const cells = shards.map(({ start, end, resident }) => {
        const cell = document.createElement('span');
        cell.style.flexGrow = `${end - start}`;
        cell.classList.toggle('here', resident);
        return cell;
    });
    fill(view, cells);
    const here = shards.filter(({ resident }) => resident).length;
    view.setAttribute('aria-label', `${here} of ${shards.length} shards are here`);
    element('shards-here').textContent =
        here === 1 && shards.length === 1
            ? 'The table is here in one piece.'
            : here === shards.length
            ? `All ${count(shards.length)} shards are here.`
            : `${count(here)} of ${count(shards.length)} shards are here, from the most frequent words on: about ${count(Math.round(rows / shards.length))} words each.`;
}

export function showProgress(come: number, bytes: number): void {
    const progress = element<HTMLProgressElement>('progress');
    progress.max = bytes;
    progress.value = Math.min(come, bytes);
    element('come').textContent = `${amount(come)} of ${amount(bytes)}`;
}
