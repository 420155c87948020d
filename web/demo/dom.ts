// Elements and numbers.

export function element<T extends HTMLElement = HTMLElement>(id: string): T {
    const found = document.getElementById(id);
    if (!found) {
        throw new Error(`the page has no element #${id}`);
    }
    return found as T;
}

export function fill(parent: Element, children: Element[]): void {
    parent.replaceChildren(...children);
}

/** Names and values of a list. */
export function terms(pairs: [string, string][]): Element[] {
    return pairs.flatMap(([name, value]) => [
        Object.assign(document.createElement('dt'), { textContent: name }),
        Object.assign(document.createElement('dd'), { textContent: value }),
    ]);
}

const whole = new Intl.NumberFormat('en');
const scaled = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

export function count(value: number): string {
    return whole.format(value);
}

/** Bytes in decimal units. */
export function amount(bytes: number): string {
    return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${scaled.format(bytes / 1e3)} kB` : bytes < 1e9 ? `${scaled.format(bytes / 1e6)} MB` : `${scaled.format(bytes / 1e9)} GB`;
}

export function share(part: number, all: number): string {
    return `${scaled.format((100 * part) / all)} %`;
}
