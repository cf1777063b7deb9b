// The entry point of a thread that compiles functions.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { compileFunction, compileProgram, type JavaScriptProgram } from './compile.ts';
import type { CompilerJob } from './compiler.ts';
import type { CompiledContent } from './rules/definition.ts';

const { parser, isWorn } = await createOwnParser();

serveThread({
  work: (job: CompilerJob): Promise<CompiledContent | JavaScriptProgram> =>
    'program' in job ? compileProgram(parser, job.program) : compileFunction(parser, job.source),
  isWorn,
});
