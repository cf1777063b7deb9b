// `npm run bench -- query-beside [--seconds 8] [--rounds 4] [--batch 50] [--clients 50]`
// What people who ask cost capture: the API at its full rate, in turn alone and beside clients that ask queries one after another
// about the project that captures. Prints a table for RESULTS.md.
import path from 'node:path';
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
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '4' },
    batch: { type: 'string', default: '50' },
    clients: { type: 'string', default: '50' },
  },
});

/** What the clients were answered. */
interface Asked {
  /** How often each status came. */
  statuses: Record<string, number>;
  /** The milliseconds of those with 200, ascending. */
  latencies: number[];
}

async function beside(capturing: Capturing, clients: string): Promise<Captured & { asked: Asked }> {
  const program = path.join(import.meta.dirname, 'ask.ts');
  const stop = startBeside<Asked>(capturing, program, { CLIENTS: clients });
  const captured = await capturing.capture(Number(values.seconds));
  return { ...captured, asked: await stop() };
}

const capturing = await startCapturing(values.batch);
try {
  // So that there is something to ask about.
  await capturing.capture(10);
  const results = await inRounds(['alone', 'asked'], Number(values.rounds), async (mode) => {
    const one = await beside(capturing, mode === 'asked' ? values.clients : '0');
    if (one.failed > 0) throw new Error(`${one.failed} requests failed`);
    console.error(
      `${mode}: ${Math.round(one.eventsPerSecond)} events/s ${JSON.stringify(one.asked.statuses)}`,
    );
    return one;
  });
  console.log(
    `| capture | events/s | × alone (of each round) | p99 ms | answers with 200 | with 429 | 200 after ms, p50 | p99 |`,
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [mode, rounds] of results) {
    const times = rounds.flatMap(({ asked }) => asked.latencies).sort((a, b) => a - b);
    const count = (status: number) =>
      rounds.reduce((sum, { asked }) => sum + (asked.statuses[status] ?? 0), 0).toLocaleString('en');
    const shown = (share: number) =>
      times.length > 0 ? Math.round(at(times, share)).toLocaleString('en') : '–';
    console.log(
      `| ${mode} | ${captureCells(results, mode)} | ${count(200)} | ${count(429)} | ${shown(0.5)} | ${shown(0.99)} |`,
    );
  }
} finally {
  await capturing.end();
}
