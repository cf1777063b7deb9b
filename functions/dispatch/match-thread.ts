// The entry point of a thread that matches stored events.
import { serveThread } from '../../hog/threads/serve.ts';
import { type MatchEventsJob, matchEvents } from './match.ts';

serveThread({ work: (job: MatchEventsJob) => matchEvents(job) });
