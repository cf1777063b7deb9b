// The entry point of a thread that runs functions.
import { type Geoip, openGeoip } from '../geoip/geoip.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { type RunJob, work } from './run.ts';

/** The locations of addresses. They are read when a program first asks for one, since they take much memory. */
let geoip: Promise<Geoip | undefined> | undefined;

async function placeFor(job: RunJob) {
  if (job.kind !== 'begin' || !job.isTransformation || job.geoip === undefined) return undefined;
  if (!job.bytecode.includes('geoipLookup')) return undefined;
  // The server has checked the file when it started. If it is gone since, no location is known.
  geoip ??= openGeoip({ file: job.geoip }).catch(() => undefined);
  const opened = await geoip;
  if (!opened) geoip = undefined;
  return opened?.place;
}

serveThread({ work: async (job: RunJob) => work(job, await placeFor(job)) });
