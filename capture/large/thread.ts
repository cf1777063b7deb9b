// The thread that decodes and parses large bodies, and writes their rows.
import { openGeoip } from '../../geoip/geoip.ts';
import { serveThread } from '../../hog/threads/serve.ts';
import type { LargeAnswer, LargeJob } from './jobs.ts';
import { open, readEvents, readRows } from './read.ts';
import { transferOf } from './rows.ts';

/** The places of addresses take much memory, so they are read when a body first needs them. */
let geoip: ReturnType<typeof openGeoip> | undefined;

/** The server has checked the file when it started. If it is gone since, no place is known. */
async function placesIn(file: string) {
  geoip ??= openGeoip({ file });
  try {
    return (await geoip).place;
  } catch {
    geoip = undefined;
    return undefined;
  }
}

serveThread<LargeJob, LargeAnswer>({
  work: async (job) => {
    if (job.kind === 'open') return open(job);
    if (job.kind === 'events') return readEvents(job);
    return readRows(job, job.geoip === undefined ? undefined : await placesIn(job.geoip));
  },
  transfer(answer) {
    if ('rows' in answer) return transferOf(answer.rows);
    return 'slices' in answer ? answer.slices : [answer.json.buffer];
  },
});
