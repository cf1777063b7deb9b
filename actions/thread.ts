// The entry point of a thread that compiles actions.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { type ActionSource, compileSteps } from './compile-steps.ts';

// Most actions have no text to parse, so the parser is loaded when the first one has.
let loading: ReturnType<typeof createOwnParser> | undefined;
let isWorn = () => false;

async function parser() {
  loading ??= createOwnParser();
  const own = await loading;
  isWorn = own.isWorn;
  return own.parser;
}

serveThread({
  work: (source: ActionSource) => compileSteps(source, parser),
  isWorn: () => isWorn(),
});
