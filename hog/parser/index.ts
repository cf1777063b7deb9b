// The public interface of the parser. It takes source texts and returns frozen typed trees, or fails with a
// SourceError.
import { LRUCache } from 'lru-cache';
import type { Expr, Placeholder, Program, SelectNode } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { withBraces } from './braces.ts';
import { withCalls } from './calls.ts';
import { toExpr } from './convert-expression.ts';
import { toSelect } from './convert-select.ts';
import { type Engine, TEMPLATE_PREFIX, WasmEngine } from './engine.ts';
import { EXAMPLE } from './example.ts';
import { answerOf } from './messages.ts';
import { ownEngine, threadedEngine } from './pool.ts';
import { isParsed, readProgram } from './program.ts';
import { createReader } from './reader.ts';
import { checkDepth, type SourceKind } from './scan.ts';
import { withShapes } from './shapes.ts';
import { readTerms, splitTerms } from './terms.ts';
import { checkUnreported } from './unreported.ts';

export type { SourceKind } from './scan.ts';

export interface ParserOptions {
  /** The largest allowed source, in UTF-8 bytes. */
  maxBytes?: number;
  /** The deepest allowed nesting of brackets. */
  maxDepth?: number;
  /** How long an expression, a query or a template may take. After that, the parser's thread is ended. */
  timeoutMs?: number;
  /** How long a program may take. 1,000 lines can legitimately take seconds. */
  programTimeoutMs?: number;
  workers?: number;
  maxWaiting?: number;
  cacheEntries?: number;
  /** The total length of all cached sources. */
  cacheCharacters?: number;
}

export interface Parser {
  program(source: string): Promise<Program>;
  expression(source: string): Promise<Expr>;
  select(source: string): Promise<SelectNode | Placeholder>;
  /**
   * Parses text that contains `{expr}` placeholders, as in inputs and masking. Returns the expression that builds the
   * text.
   */
  template(source: string): Promise<Expr>;
  /** Starts all threads, and lets them read an example. Programs that come later are then read about twice as fast. */
  warm(): Promise<void>;
  close(): Promise<void>;
}

export const PARSER_DEFAULTS = {
  maxBytes: 256 * 1024,
  maxDepth: 100,
  timeoutMs: 5_000,
  programTimeoutMs: 30_000,
  // One more than needed, so that a slow source does not block all others.
  workers: 2,
  maxWaiting: 1_000,
  cacheEntries: 5_000,
  cacheCharacters: 4_000_000,
} satisfies Required<ParserOptions>;

/** The most levels of a tree. Operators such as `1 + 1 + …`, and `else if`, nest without brackets. */
const MAX_TREE_DEPTH = 1_000;

/** The cache of pieces of programs has a part of the characters of the other, because it keeps the parser's long answers. */
const PIECES_SHARE = 8;

const LONGEST_WARMING = 60_000;

type Tree = Program | Expr;
type Outcome = { tree: Tree } | { error: SourceError };

/** Creates a parser that works in threads of its own. */
export function createParser(options: ParserOptions = {}): Parser {
  const settings = { ...PARSER_DEFAULTS, ...options };
  return parserOf(threadedEngine(settings), settings);
}

/**
 * Creates a parser that works in the thread of its caller, without limits of time. It is for threads that do more than
 * parsing, and that somebody ends when they take too long. `isWorn` says that the thread should be replaced.
 */
export async function createOwnParser(): Promise<{ parser: Parser; isWorn(): boolean }> {
  const engine = await WasmEngine.load();
  return { parser: parserOf(ownEngine(engine), PARSER_DEFAULTS), isWorn: () => engine.isWorn };
}

/** A cache of what texts are read as. It holds so many texts at most, and so many characters of them. */
const cacheOf = <Value extends {}>(max: number, maxSize: number): LRUCache<string, Value> =>
  new LRUCache({ max, maxSize, sizeCalculation: (_value, text) => Math.max(1, text.length) });

/** Creates a parser for an engine. */
export function parserOf(plain: Engine, settings: Required<ParserOptions>): Parser {
  const engine = withShapes(withCalls(withBraces(plain)));
  const cache = cacheOf<Outcome>(settings.cacheEntries, settings.cacheCharacters);
  // After a change in a program, only the statements that it touches are parsed again.
  const pieces = cacheOf<string>(settings.cacheEntries, Math.floor(settings.cacheCharacters / PIECES_SHARE));
  const inFlight = new Map<string, Promise<Tree>>();

  async function read(kind: SourceKind, source: string): Promise<Tree> {
    check(source, kind, settings.maxBytes, settings.maxDepth);
    if (kind === 'select' || kind === 'expression') checkUnreported(source);
    const limitMs = kind === 'program' ? settings.programTimeoutMs : settings.timeoutMs;
    const budget = { limitMs, usedMs: 0 };
    if (kind === 'program') {
      const parse = (texts: string[]) =>
        parsedBefore(pieces, texts, (unknown) => engine.parse('program', unknown, budget));
      return readProgram(source, { parse, lanes: engine.lanes, maxDepth: MAX_TREE_DEPTH });
    }
    const terms = kind === 'expression' && splitTerms(source);
    if (terms) {
      const parse = (texts: string[]) => engine.parse('expression', texts, budget);
      const tree = await readTerms(source, terms, {
        parse,
        lanes: engine.lanes,
        maxDepth: MAX_TREE_DEPTH,
      });
      if (tree) return tree;
    }
    const [json] = await engine.parse(kind, [source], budget);
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
          // Errors that depend on the load, such as timeouts, are not cached.
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
    async warm() {
      const budget = { limitMs: LONGEST_WARMING, usedMs: 0 };
      const lane = async () => {
        // One request for each statement, so that texts of users get in between.
        for (const text of EXAMPLE) await engine.parse('program', [text], budget);
      };
      await Promise.all(Array.from({ length: engine.lanes }, lane));
    },
    close: () => engine.close(),
  };
}

/** Parses the texts that are not in the cache. The answers contain no places in the whole program. */
async function parsedBefore(
  known: LRUCache<string, string>,
  texts: string[],
  parse: (texts: string[]) => Promise<string[]>,
): Promise<string[]> {
  const found = texts.map((text) => known.get(text));
  const unknown = texts.filter((_text, i) => found[i] === undefined);
  const answers = unknown.length > 0 ? await parse(unknown) : [];
  for (const [i, answer] of answers.entries()) {
    if (isParsed(answer)) known.set(unknown[i] as string, answer);
  }
  const next = answers.values();
  return found.map((one) => one ?? (next.next().value as string));
}

function check(source: string, kind: SourceKind, maxBytes: number, maxDepth: number): void {
  // A UTF-16 unit takes 1 to 3 bytes, so most sources need no exact count.
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
