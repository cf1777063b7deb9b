// The entry point of a thread that tries drafts of flags.
import { serveThread } from '../../hog/threads/serve.ts';
import { runTrial, type TrialJob } from './trial.ts';

serveThread({ work: async (job: TrialJob) => runTrial(job) });
