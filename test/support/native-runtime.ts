import { flushCompileCache, registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import jestRuntime from 'jest-runtime';

// Its types say that the class is a property of what is imported.
const JestRuntime = jestRuntime as unknown as typeof jestRuntime.default;

const TESTS = pathToFileURL(path.join(import.meta.dirname, '../')).href;
const GLOBALS = '@jest/globals';
const SOURCE = `export const {
  afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test
} = globalThis[Symbol.for('${GLOBALS}')];`;

let files = 0;

registerHooks({
  resolve(specifier, context, next) {
    const file = context.parentURL && new URL(context.parentURL).searchParams.get('file');
    if (!file) return next(specifier, context);
    if (specifier === GLOBALS) {
      return { url: `jest:globals?file=${file}`, format: 'module', shortCircuit: true };
    }
    const found = next(specifier, context);
    return found.url.startsWith(TESTS) ? { ...found, url: `${found.url}?file=${file}` } : found;
  },
  load: (url, context, next) =>
    url.startsWith('jest:globals')
      ? { format: 'module', source: SOURCE, shortCircuit: true }
      : next(url, context),
});

/**
 * Lets Node itself load the tests, as it loads the product. What lies in `test/` is evaluated anew for each test file. The
 * modules of the product and of its dependencies are shared by all files that a process runs: they keep no state of their
 * own, and so they are loaded, and made fast by V8, once rather than hundreds of times.
 */
export default class NativeRuntime extends JestRuntime {
  constructor(...given: ConstructorParameters<typeof JestRuntime>) {
    super(...given);
    files += 1;
  }

  override unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  /** Jest imports what is set up for a file, and then the file. */
  override async unstable_importModule(file: string): Promise<void> {
    Object.assign(globalThis, { [Symbol.for(GLOBALS)]: this.requireModuleOrMock(file, GLOBALS) });
    await import(`${pathToFileURL(file)}?file=${files}`);
    // Processes that tests start take what this one compiled. It would keep it when it exits, which is late.
    if (files === 1) flushCompileCache();
  }
}
