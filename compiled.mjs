import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Where Sluice keeps what is compiled from its own code, so that processes start faster. It lies beside the packages:
 * whoever can write there can change what runs anyway.
 */
export const COMPILED_DIR = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  'node_modules/.cache/sluice',
);

/**
 * The environment of a process of Sluice that keeps its compiled modules there, unless the given one says otherwise.
 *
 * @param {Record<string, string | undefined>} env
 */
export const keepingCompiled = (env) => ({ NODE_COMPILE_CACHE: path.join(COMPILED_DIR, 'modules'), ...env });
