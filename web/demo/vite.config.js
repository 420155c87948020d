import { fileURLToPath } from 'node:url';

export default {
    // The package as `web/build` makes it.
    resolve: { alias: { gatherum: fileURLToPath(new URL('../pkg/index.js', import.meta.url)) } },
    build: { target: 'es2022' },
};
