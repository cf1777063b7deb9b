import createHogQLParser from '@posthog/hogql-parser';
import { SourceError } from '../../../hog/errors.ts';
import { toProgram } from '../../../hog/parser/convert-statement.ts';
import { answerOf } from '../../../hog/parser/messages.ts';
import { readProgram } from '../../../hog/parser/program.ts';
import { createReader } from '../../../hog/parser/reader.ts';

const MAX_DEPTH = 1_000;

/** The parser's caches only ever grow: a new one after so many texts. */
const TEXTS = 2_000;
let parser = await createHogQLParser();
let parsed = 0;

/** What the parser makes of the whole text, and what comes out piece by piece: trees or errors, as text. */
export async function bothWays(source: string): Promise<{ whole: string; pieces: string; texts: string[] }> {
  const texts: string[] = [];
  if (parsed > TEXTS) {
    parser = await createHogQLParser();
    parsed = 0;
  }
  const parse = async (some: string[]) => {
    texts.push(...some);
    parsed += some.length + 1;
    return some.map((text) => parser.parseProgram(text));
  };
  const reader = createReader(source, MAX_DEPTH);
  const whole = await outcome(() => toProgram(reader, answerOf(reader, source, parser.parseProgram(source))));
  const pieces = await outcome(() => readProgram(source, { parse, lanes: 2, maxDepth: MAX_DEPTH }));
  return { whole, pieces, texts };
}

async function outcome(read: () => unknown): Promise<string> {
  try {
    return JSON.stringify(await read());
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    // What the parser does not support it reports at the start of its text, whatever that is.
    return error.code === 'unsupported' ? error.code : `${error.code} ${error.line}:${error.column}`;
  }
}
