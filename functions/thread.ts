// The entry point of a thread that compiles functions.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { compileFunction, type FunctionSource } from './compile.ts';

const { parser, isWorn } = await createOwnParser();

serveThread({ work: (source: FunctionSource) => compileFunction(parser, source), isWorn });
