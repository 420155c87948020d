/**
 * Embedding tables on the browser's GPU, in a tenth of the memory: rows by id, bags of rows, and the rows nearest to a query.
 *
 * @packageDocumentation
 */

export { Engine, type Adapter, type EngineOptions } from './engine.js';
export {
    ArgumentError,
    BadIdError,
    DeviceError,
    DeviceLostError,
    FileError,
    GatherumError,
    MemoryBudgetError,
    NetworkError,
    type ErrorCode,
} from './errors.js';
export type { ModuleSource } from './module.js';
export { RowBuffer, Table } from './table.js';
export type * from './types.js';
