// The entry point of a thread that transforms the events of projects whose transformations take long.
import { serveThread } from '../../hog/threads/serve.ts';
import { cacheOfSize } from '../../values/cache-of-size.ts';
import { processorTime } from '../evaluate.ts';
import { placesIn } from '../places.ts';
import { type Applied, Transformations, WHOLE_ROOM } from './apply.ts';
import type { TransformAnswer, TransformJob } from './job.ts';
import { Tally } from './tally.ts';

const KNOWN_BYTES = 32 * 1024 * 1024;
const known = cacheOfSize<number, Transformations>(KNOWN_BYTES, ({ chain }) => chain.size);

let place: Awaited<ReturnType<typeof placesIn>>;

function learned({ projectId, version, chain }: TransformJob): Transformations | undefined {
  let found = known.get(projectId);
  if (chain) {
    found = new Transformations(chain, {
      clock: processorTime,
      room: WHOLE_ROOM,
      place: (address) => place?.(address),
    });
    known.set(projectId, found);
  }
  return found?.chain.version === version ? found : undefined;
}

async function work(job: TransformJob): Promise<TransformAnswer> {
  const transformations = learned(job);
  if (!transformations) return { needsChain: true };
  if (transformations.needsPlaces && job.geoip !== undefined) place = await placesIn(job.geoip);
  const tally = new Tally();
  const applied: Applied[] = [];
  const suspended = new Map(job.suspended);
  const began = processorTime();
  for (const event of job.events) {
    const one = transformations.apply(event, suspended, tally);
    // What did not change need not be sent back.
    applied.push(one.verdict === 'kept' && one.changes.length === 0 ? { ...one, properties: {} } : one);
    if (one.verdict === 'refused' || processorTime() - began > job.milliseconds) break;
  }
  return { needsChain: false, applied, told: tally.told, milliseconds: processorTime() - began };
}

serveThread({ work });
