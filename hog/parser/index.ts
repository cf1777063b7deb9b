// The only door to the parser: texts in, frozen typed trees or a SourceError out.
import type { Expr, Placeholder, Program, SelectNode } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { Cache } from './cache.ts';
import { toExpr } from './convert-expression.ts';
import { toSelect } from './convert-select.ts';
import { answerOf } from './messages.ts';
import { ParserPool } from './pool.ts';
import { readProgram } from './program.ts';
import { TEMPLATE_PREFIX } from './protocol.ts';
import { createReader } from './reader.ts';
import { checkDepth, type SourceKind } from './scan.ts';
import { readTerms, splitTerms } from './terms.ts';
import { checkUnreported } from './unreported.ts';

export type { SourceKind } from './scan.ts';

export interface ParserOptions {
  /** Largest source, in UTF-8 bytes. */
  maxBytes?: number;
  /** How deep brackets may nest. */
  maxDepth?: number;
  /** After this long the thread that reads an expression, a query or a template is ended. */
  timeoutMs?: number;
  /** The same for a program: 1,000 lines honestly take seconds. */
  programTimeoutMs?: number;
  workers?: number;
  maxWaiting?: number;
  cacheEntries?: number;
  /** Total length of the cached sources. */
  cacheCharacters?: number;
}

export interface Parser {
  program(source: string): Promise<Program>;
  expression(source: string): Promise<Expr>;
  select(source: string): Promise<SelectNode | Placeholder>;
  /** Raw text with `{expr}` holes, as inputs and masking have it: the expression that makes the value. */
  template(source: string): Promise<Expr>;
  close(): Promise<void>;
}

export const PARSER_DEFAULTS = {
  maxBytes: 256 * 1024,
  maxDepth: 100,
  timeoutMs: 5_000,
  programTimeoutMs: 30_000,
  // One more than needed: a source that takes its whole time does not hold up all others.
  workers: 2,
  maxWaiting: 1_000,
  cacheEntries: 5_000,
  cacheCharacters: 4_000_000,
} satisfies Required<ParserOptions>;

/** Levels of a tree; operators without brackets (`1 + 1 + …`, `else if`) nest without any bracket. */
const MAX_TREE_DEPTH = 1_000;

type Tree = Program | Expr;
type Outcome = { tree: Tree } | { error: SourceError };

export function createParser(options: ParserOptions = {}): Parser {
  const settings = { ...PARSER_DEFAULTS, ...options };
  const pool = new ParserPool(settings);
  const cache = new Cache<Outcome>(settings.cacheEntries, settings.cacheCharacters);
  const inFlight = new Map<string, Promise<Tree>>();

  async function read(kind: SourceKind, source: string): Promise<Tree> {
    check(source, kind, settings.maxBytes, settings.maxDepth);
    if (kind === 'select' || kind === 'expression') checkUnreported(source);
    const limitMs = kind === 'program' ? settings.programTimeoutMs : settings.timeoutMs;
    const budget = { limitMs, usedMs: 0 };
    if (kind === 'program') {
      const parse = (texts: string[]) => pool.parse('program', texts, budget);
      return readProgram(source, { parse, lanes: settings.workers, maxDepth: MAX_TREE_DEPTH });
    }
    const terms = kind === 'expression' && splitTerms(source);
    if (terms) {
      const parse = (texts: string[]) => pool.parse('expression', texts, budget);
      const tree = await readTerms(source, terms, {
        parse,
        lanes: settings.workers,
        maxDepth: MAX_TREE_DEPTH,
      });
      if (tree) return tree;
    }
    const [json] = await pool.parse(kind, [source], budget);
    return convert(kind, source, json as string);
  }

  function parse(kind: SourceKind, source: string): Promise<Tree> {
    const key = `${kind}:${source}`;
    const known = cache.get(key);
    if (known) return 'tree' in known ? Promise.resolve(known.tree) : Promise.reject(known.error);
    const running = inFlight.get(key);
    if (running) return running;
    const started = read(kind, source)
      .then(
        (tree) => {
          cache.set(key, { tree });
          return tree;
        },
        (error: unknown) => {
          // What depends on the moment (time, load) is not remembered.
          if (error instanceof SourceError && (error.code === 'syntax' || error.code === 'unsupported')) {
            cache.set(key, { error });
          }
          throw error;
        },
      )
      .finally(() => inFlight.delete(key));
    inFlight.set(key, started);
    return started;
  }

  return {
    program: (source) => parse('program', source) as Promise<Program>,
    expression: (source) => parse('expression', source) as Promise<Expr>,
    select: (source) => parse('select', source) as Promise<SelectNode | Placeholder>,
    template: (source) => parse('template', source) as Promise<Expr>,
    close: () => pool.close(),
  };
}

function check(source: string, kind: SourceKind, maxBytes: number, maxDepth: number): void {
  // Every UTF-16 unit is at least one byte: most sources need no count.
  if (source.length > maxBytes || (source.length * 3 > maxBytes && Buffer.byteLength(source) > maxBytes)) {
    throw new SourceError('too_large', `The source is larger than ${maxBytes} bytes`);
  }
  if (!source.isWellFormed()) {
    const start = source.search(/[\ud800-\udfff]/u);
    throw new SourceError('syntax', 'The source has half a surrogate pair', source, {
      start,
      end: start + 1,
    });
  }
  checkDepth(source, kind, maxDepth);
}

function convert(kind: 'expression' | 'select' | 'template', source: string, json: string): Tree {
  const prefix = kind === 'template' ? TEMPLATE_PREFIX : '';
  const reader = createReader(source, MAX_TREE_DEPTH, { prefix: prefix.length });
  const raw = answerOf(reader, prefix + source, json);
  return kind === 'select' ? toSelect(reader, raw) : toExpr(reader, raw);
}
