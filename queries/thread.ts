// The entry point of a thread that compiles queries.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { compileQuery } from './compile/index.ts';
import type { QueryJob } from './rules/request.ts';

const { parser, isWorn } = await createOwnParser();

serveThread({ work: (job: QueryJob) => compileQuery(parser, job), isWorn });
