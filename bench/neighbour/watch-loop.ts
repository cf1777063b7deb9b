// Is loaded into the API with `--import`. Appends to the file LOOP_FILE, once a second, how late the event loop was at
// most, in milliseconds: by the clock, and by the CPU time that the main thread took in one go. On a full machine the
// first also counts the time in which the system let others work.
import { appendFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const file = process.env.LOOP_FILE;
const LOOK_EVERY = 10;
const WRITE_EVERY = 1_000;

const cpu = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

if (isMainThread && file) {
  let seen = { clock: performance.now(), cpu: cpu() };
  let most = { clock: 0, cpu: 0 };
  let written = seen.clock;
  setInterval(() => {
    const now = { clock: performance.now(), cpu: cpu() };
    most = {
      clock: Math.max(most.clock, now.clock - seen.clock - LOOK_EVERY),
      cpu: Math.max(most.cpu, now.cpu - seen.cpu),
    };
    seen = now;
    if (now.clock - written < WRITE_EVERY) return;
    written = now.clock;
    appendFileSync(file, `${JSON.stringify({ at: Date.now(), ...most })}\n`);
    most = { clock: 0, cpu: 0 };
  }, LOOK_EVERY).unref();
}
