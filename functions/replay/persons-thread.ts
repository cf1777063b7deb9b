// The entry point of a thread that matches persons.
import { serveThread } from '../../hog/threads/serve.ts';
import { type MatchPersonsJob, matchPersons } from './match-persons.ts';

serveThread({ work: (job: MatchPersonsJob) => matchPersons(job) });
