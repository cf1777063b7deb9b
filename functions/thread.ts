// The entry point of a thread that compiles functions.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { compileFunction, compileProgram, findPlaces } from './compile.ts';
import type { Compiled, CompilerJob } from './compiler.ts';

const { parser, isWorn } = await createOwnParser();

serveThread({
  work: (job: CompilerJob): Promise<Compiled> => {
    if ('bytecode' in job) return findPlaces(parser, job.program, job.bytecode);
    return 'program' in job ? compileProgram(parser, job.program) : compileFunction(parser, job.source);
  },
  isWorn,
});
