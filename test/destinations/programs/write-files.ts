// Writes to a File destination below the directory given first, in a process of its own. `hang`: stays within a file,
// to be killed there. `fill`: writes until the disk is full, then says what the error was and what is left.
import { readdirSync } from 'node:fs';
import { bindDestination } from '../../../destinations/bind.ts';
import type { DestinationError } from '../../../destinations/errors.ts';
import { createEgress } from '../../../egress/egress.ts';
import { RUN } from '../harness.ts';

const [, , exportRoot = '', mode] = process.argv;
const destination = bindDestination(
  { type: 'File', config: { directory: 'lake' } },
  { egress: createEgress(), exportRoot },
);
if (destination.kind !== 'files') throw new Error('File takes files');
const run = await destination.open(RUN);
const sink = await run.openFile(0);
if (mode === 'hang') {
  await sink.write(Buffer.alloc(100_000));
  process.stdout.write('written\n');
  setInterval(() => undefined, 1_000);
} else {
  try {
    for (let count = 0; count < 100; count += 1) await sink.write(Buffer.alloc(100_000));
    throw new Error('the disk took 10 MB');
  } catch (error) {
    await run.abort();
    const left = readdirSync(exportRoot, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const { code, retryable, message } = error as DestinationError;
    process.stdout.write(`${JSON.stringify({ code, retryable, message, left })}\n`);
  }
}
