// The entry point of a thread that compiles actions.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { type ActionSource, compileSteps } from './compile-steps.ts';

// Loaded before the thread is ready, so that loading it does not count as time of the first action.
const { parser, isWorn } = await createOwnParser();

serveThread({ work: (source: ActionSource) => compileSteps(source, parser), isWorn });
