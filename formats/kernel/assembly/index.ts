// The inner loops of the encoders, in AssemblyScript. `node scripts/build-kernel.ts` compiles them to kernel.wasm.
import { prepareTables } from './text';

export { plainSize, rehash, writePlain } from './dictionary';
export { xxh64 } from './hash';
export { csvLines, jsonLines, prepareLines, written } from './lines';
export { lz4, snappy } from './lz';
export { packBits, packIndices, packLevels } from './packing';
export { addRows, neededLevels, preparePages } from './pages';
export {
  addHash,
  faultColumn,
  faultReason,
  faultValue,
  hashSum,
  needed,
  next,
  position,
  rows,
  setColumns,
} from './row';

prepareTables();
