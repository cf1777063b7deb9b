import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from '@jest/globals';
import { type Fixture, type Subject, uuidsIn } from '../subject.ts';

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

export function subject({ exportRoot }: Fixture): Subject {
  let serial = 0;
  return {
    isAtomic: true,
    async config() {
      serial += 1;
      return { directory: `lake/${serial}`, prefix: '{table}/', max_file_size_mb: 100 };
    },
    async visible({ directory }) {
      const folder = path.join(exportRoot(), directory as string);
      const all = await Promise.resolve()
        .then(() => filesBelow(folder))
        .catch(() => []);
      expect(all.filter((name) => name.endsWith('.partial'))).toEqual([]);
      return all
        .filter((name) => !name.endsWith('.json'))
        .flatMap((name) => uuidsIn(readFileSync(name, 'utf8')));
    },
    files: {
      async overwrite({ directory }, key, text) {
        const file = path.join(exportRoot(), directory as string, key);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, text);
      },
      async remove({ directory }, key) {
        rmSync(path.join(exportRoot(), directory as string, key));
      },
    },
  };
}
