// The entry point of a thread that runs functions.
import { serveThread } from '../hog/threads/serve.ts';
import { type RunJob, work } from './run.ts';

serveThread({ work: (job: RunJob) => work(job) });
