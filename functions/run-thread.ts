// The entry point of a thread that runs functions.
import { serveThread } from '../hog/threads/serve.ts';
import { placesIn } from './places.ts';
import { type RunJob, work } from './run.ts';

function placeFor(job: RunJob) {
  if (job.kind !== 'begin' || !job.isTransformation || job.geoip === undefined) return undefined;
  return job.bytecode.includes('geoipLookup') ? placesIn(job.geoip) : undefined;
}

serveThread({ work: async (job: RunJob) => work(job, await placeFor(job)) });
