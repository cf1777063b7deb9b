import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

interface TestFile {
  path: string;
}

interface TestResults {
  testResults: { testFilePath: string; perfStats: { start: number; end: number } }[];
}

const root = path.resolve(import.meta.dirname, '../..');
const LIST = path.join(import.meta.dirname, 'seconds.json');
/** Files that take less are not in the list: their order does not matter. */
const SHORTEST = 3;

const nameOf = (file: string) => path.relative(root, file).split(path.sep).join('/');
const readSeconds = (): Record<string, number> => JSON.parse(readFileSync(LIST, 'utf8'));

/**
 * Begins with the test files that take longest, so that no worker is left with one of them at the end. Jest itself knows
 * from earlier runs only how long they take. A fresh clone has none, so the list is part of the repository.
 */
export default class LongestFirst {
  sort<T extends TestFile>(tests: T[]): T[] {
    const seconds = readSeconds();
    const known = (test: T) => seconds[nameOf(test.path)] ?? 0;
    const sizes = new Map(tests.map((test) => [test, statSync(test.path).size]));
    const size = (test: T) => sizes.get(test) ?? 0;
    return tests.toSorted((one, other) => known(other) - known(one) || size(other) - size(one));
  }

  /** Jest calls it after the run. With `TEST_TIMES` set, it renews what the list says of the files that ran. */
  cacheResults(_tests: readonly TestFile[], { testResults }: TestResults): void {
    if (!process.env.TEST_TIMES) return;
    const seconds = readSeconds();
    for (const { testFilePath, perfStats } of testResults)
      seconds[nameOf(testFilePath)] = Math.round((perfStats.end - perfStats.start) / 1000);
    const list = Object.entries(seconds).filter(([, taken]) => taken >= SHORTEST);
    list.sort((one, other) => other[1] - one[1]);
    writeFileSync(LIST, `${JSON.stringify(Object.fromEntries(list), undefined, 2)}\n`);
  }
}
