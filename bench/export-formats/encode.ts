// One export by Sluice, as a process of its own: `node encode.ts <url> <folder> <format> <compression> <level> <rows>`.
import { open, readFile, rename, unlink } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { copyOut } from '../../db/copy-out.ts';
import { createPool } from '../../db/pool.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import type { FileSink } from '../../formats/file-sink.ts';
import type { Compression, Format } from '../../formats/formats.ts';
import { COLUMNS, QUERY } from './columns.ts';

const [url = '', folder = '', format, compression, level, rows] = process.argv.slice(2);

async function openFile(index: number): Promise<FileSink> {
  const target = path.join(folder, `sluice-${index}`);
  const file = await open(`${target}.part`, 'w');
  return {
    write: async (chunk) => void (await file.writeFile(chunk)),
    close: async () => {
      await file.sync();
      await file.close();
      await rename(`${target}.part`, target);
    },
    abort: async () => {
      await file.close();
      await unlink(`${target}.part`);
    },
  };
}

const memory = async (field: string) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(await readFile('/proc/self/status', 'utf8'))?.[1]) / 1024;

const pool = createPool({ url, size: 1, name: 'bench' });
await pool.query('select 1');
await pause(100);
const idle = await memory('VmRSS');
const limit = rows ? ` limit ${rows}` : '';
const result = await encodeRows(copyOut(pool, `copy (${QUERY}${limit}) to stdout (format binary)`), {
  columns: COLUMNS,
  format: format as Format,
  compression: compression === 'none' ? null : (compression as Compression),
  level: level === '' || level === undefined ? undefined : Number(level),
  openFile,
  freeChunks: true,
});
console.log(JSON.stringify({ rows: result.rows, idle, peak: await memory('VmHWM') }));
await pool.end();
