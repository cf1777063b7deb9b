// Runs one export by Sluice in a process of its own: the work of an activity, from the model's query to the
// destination. `node export.ts <job as JSON>` prints the measurements.
import { readFileSync, writeFileSync } from 'node:fs';
import { copyOut } from '../../db/copy-out.ts';
import { createPool } from '../../db/pool.ts';
import { bindDestination } from '../../destinations/bind.ts';
import type { Run } from '../../destinations/destination.ts';
import type { DestinationSettings } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import { createParser } from '../../hog/parser/index.ts';
import { modelOf, modelQuery } from '../../models/index.ts';

export interface Job {
  url: string;
  settings: DestinationSettings;
  exportRoot: string;
  /** Milliseconds since 1970. */
  start: number;
  end: number;
  /** The compression level, if it is not the default. */
  level?: number;
}

export interface Told {
  rows: number;
  seconds: number;
  /** The CPU time in seconds. */
  cpu: number;
  /** Memory in megabytes: before the export, and the peak during it. */
  idle: number;
  peak: number;
}

const memory = (field: string) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;

async function run({ url, settings, exportRoot, start, end, level }: Job): Promise<Told> {
  const pool = createPool({ url, size: 2, name: 'bench' });
  const parser = createParser();
  const egress = createEgress({ allow: '127.0.0.1,localhost' });
  const bound = bindDestination(settings, { egress, exportRoot });
  await pool.query('select 1');
  const interval = { start, end };
  const about: Run = { exportId: 'bench', runId: 'bench', projectId: 1, model: 'events', interval };
  // A worker that has been running for a while has already started its parser.
  await parser.expression('1');
  const idle = memory('VmRSS');
  writeFileSync('/proc/self/clear_refs', '5');
  const before = process.cpuUsage();
  const begun = performance.now();
  const query = await modelQuery(parser, {
    model: 'events',
    projectId: 1,
    interval,
    columnSet: bound.kind === 'files' ? 'files' : 'tables',
    timezone: 'UTC',
  });
  const read = () => copyOut(pool, query.text, { settings: query.settings });
  let rows = 0;
  if (bound.kind === 'rows') {
    rows = (await bound.deliver({ run: about, columns: query.columns, rules: modelOf('events').table, read }))
      .rows;
  } else {
    const opened = await bound.open(about);
    try {
      const { format, compression, maxFileBytes } = opened.options;
      const encoded = await encodeRows(read(), {
        ...{ columns: query.columns, format, compression, level, maxFileBytes, freeChunks: true },
        openFile: (index) => opened.openFile(index),
      });
      rows = (await opened.finish(encoded)).rows;
    } finally {
      await opened.close();
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(before);
  await Promise.all([pool.end(), parser.close(), egress.close()]);
  return { rows, seconds, cpu: (user + system) / 1e6, idle, peak: memory('VmHWM') };
}

console.log(JSON.stringify(await run(JSON.parse(process.argv[2] as string))));
