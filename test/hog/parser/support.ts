import { afterAll } from '@jest/globals';
import { createParser, type Parser, type ParserOptions } from '../../../hog/parser/index.ts';
import { PATIENCE } from '../../support/eventually.ts';

const open: Parser[] = [];
afterAll(() => Promise.all(open.map((parser) => parser.close())));

/** A parser that ends with the test file. */
export function testParser(options: ParserOptions = {}): Parser {
  const parser = createParser({ timeoutMs: PATIENCE, programTimeoutMs: PATIENCE, workers: 1, ...options });
  open.push(parser);
  return parser;
}

/** A tree without its spans. */
export function bare(tree: unknown): unknown {
  return JSON.parse(JSON.stringify(tree, (key, value) => (key === 'span' ? undefined : value)));
}
