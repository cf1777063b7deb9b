// A thread for the tests of the pool.
import { threadId } from 'node:worker_threads';
import { serveThread } from '../../../hog/threads/serve.ts';

export type Job =
  | { kind: 'echo'; value: unknown }
  | { kind: 'nest'; levels: number }
  | { kind: 'wait'; milliseconds: number }
  | { kind: 'thread' | 'spin' | 'fail' | 'exit' };

serveThread({
  work: (job: Job): unknown => {
    if (job.kind === 'echo') return job.value;
    if (job.kind === 'thread') return threadId;
    if (job.kind === 'nest') {
      let deep: unknown[] = [];
      for (let level = 0; level < job.levels; level += 1) deep = [deep];
      return deep;
    }
    if (job.kind === 'wait') {
      // The thread stands still, as one does that gets no processor.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, job.milliseconds);
      return 'waited';
    }
    if (job.kind === 'fail') throw Object.assign(new TypeError('wrong'), { field: 'x', detail: null });
    if (job.kind === 'exit') process.exit(3);
    for (;;);
  },
});
