// `npm run bench -- live-beside [--seconds 6] [--rounds 5] [--batch 50] [--modes nobody,one,twenty]`
// What listeners of live events cost capture: the API at its full rate, in turn without a listener, with one, and with twenty, of
// whom ten have filters of their own. All listen to the project that captures. Prints a table for RESULTS.md.
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  at,
  type Captured,
  type Capturing,
  captureCells,
  inRounds,
  startBeside,
  startCapturing,
} from '../capturing.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '5' },
    batch: { type: 'string', default: '50' },
    modes: { type: 'string', default: 'nobody,one,twenty' },
  },
});
const filtered = (index: number) =>
  new URLSearchParams({ where: `properties.$pathname = '/products/${index * 7}'` }).toString();
const STREAMS: Readonly<Record<string, readonly string[]>> = {
  nobody: [],
  one: [''],
  twenty: [
    ...Array.from({ length: 10 }, () => ''),
    ...Array.from({ length: 10 }, (_, index) => filtered(index)),
  ],
};

interface Heard {
  events: number;
  skipped: number;
  ended: number;
  latencies: number[];
}

/** Captures while somebody listens. */
async function beside(
  capturing: Capturing,
  streams: readonly string[],
): Promise<Captured & { heard: Heard | undefined }> {
  const seconds = Number(values.seconds);
  if (streams.length === 0) return { ...(await capturing.capture(seconds)), heard: undefined };
  const program = path.join(import.meta.dirname, 'listen.ts');
  const stop = startBeside<Heard>(capturing, program, { STREAMS: JSON.stringify(streams) });
  await pause(1_000);
  const captured = await capturing.capture(seconds);
  // What was stored last comes up to a second later.
  await pause(2_000);
  return { ...captured, heard: await stop() };
}

const capturing = await startCapturing(values.batch);
try {
  await capturing.capture(5);
  const modes = values.modes.split(',');
  const results = await inRounds(modes, Number(values.rounds), async (mode) => {
    const one = await beside(capturing, STREAMS[mode] as readonly string[]);
    const { failed, eventsPerSecond, heard } = one;
    if (failed > 0) throw new Error(`${failed} requests failed`);
    if (heard && heard.ended > 0) throw new Error(`${heard.ended} streams ended`);
    console.error(
      `${mode}: ${Math.round(eventsPerSecond)} events/s` +
        (heard ? `, heard ${heard.events}, skipped ${heard.skipped}` : ''),
    );
    return one;
  });
  console.log(
    `| listeners | events/s | × ${modes[0]} (of each round) | p99 ms | heard after ms, p50 | p99 |`,
  );
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const [mode, rounds] of results) {
    const late = rounds.flatMap(({ heard }) => heard?.latencies ?? []).sort((a, b) => a - b);
    const shown = (share: number) => (late.length > 0 ? at(late, share).toLocaleString('en') : '–');
    console.log(`| ${mode} | ${captureCells(results, mode)} | ${shown(0.5)} | ${shown(0.99)} |`);
  }
} finally {
  await capturing.end();
}
