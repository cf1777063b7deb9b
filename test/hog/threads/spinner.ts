// A thread for the tests of the pool.
import { serveThread } from '../../../hog/threads/serve.ts';

export type Job = { kind: 'echo'; value: unknown } | { kind: 'spin' } | { kind: 'fail' } | { kind: 'exit' };

serveThread({
  work: (job: Job): unknown => {
    if (job.kind === 'echo') return job.value;
    if (job.kind === 'fail') throw Object.assign(new TypeError('wrong'), { field: 'x', detail: null });
    if (job.kind === 'exit') process.exit(3);
    for (;;);
  },
});
