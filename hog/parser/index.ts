// The public interface of the parser. It takes source texts and returns frozen typed trees, or fails with a
// SourceError.
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

/** When its signal is aborted, a call throws the reason, and what only it needs is not parsed any further. */
export interface Parser {
  program(source: string, signal?: AbortSignal): Promise<Program>;
  expression(source: string, signal?: AbortSignal): Promise<Expr>;
  select(source: string, signal?: AbortSignal): Promise<SelectNode | Placeholder>;
  /**
   * Parses text that contains `{expr}` placeholders, as in inputs and masking. Returns the expression that builds the
   * text.
   */
  template(source: string, signal?: AbortSignal): Promise<Expr>;
  close(): Promise<void>;
}

/** Returns a parser all of whose calls stop with the signal. */
export const stoppable = (parser: Parser, signal: AbortSignal): Parser => ({
  program: (source) => parser.program(source, signal),
  expression: (source) => parser.expression(source, signal),
  select: (source) => parser.select(source, signal),
  template: (source) => parser.template(source, signal),
  close: () => parser.close(),
});

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

type Tree = Program | Expr;
type Outcome = { tree: Tree } | { error: SourceError };

/** A text that is being parsed for one caller or several. */
interface Running {
  tree: Promise<Tree>;
  /** How many callers wait for it. The one that gives up last stops it. */
  callers: number;
  stop: AbortController;
}

export function createParser(options: ParserOptions = {}): Parser {
  const settings = { ...PARSER_DEFAULTS, ...options };
  const pool = new ParserPool(settings);
  const cache = new Cache<Outcome>(settings.cacheEntries, settings.cacheCharacters);
  const inFlight = new Map<string, Running>();

  async function read(kind: SourceKind, source: string, signal: AbortSignal): Promise<Tree> {
    check(source, kind, settings.maxBytes, settings.maxDepth);
    if (kind === 'select' || kind === 'expression') checkUnreported(source);
    const limitMs = kind === 'program' ? settings.programTimeoutMs : settings.timeoutMs;
    const budget = { limitMs, usedMs: 0 };
    if (kind === 'program') {
      const parse = (texts: string[]) => pool.parse('program', texts, budget, signal);
      return readProgram(source, { parse, lanes: settings.workers, maxDepth: MAX_TREE_DEPTH });
    }
    const terms = kind === 'expression' && splitTerms(source);
    if (terms) {
      const parse = (texts: string[]) => pool.parse('expression', texts, budget, signal);
      const tree = await readTerms(source, terms, {
        parse,
        lanes: settings.workers,
        maxDepth: MAX_TREE_DEPTH,
      });
      if (tree) return tree;
    }
    const [json] = await pool.parse(kind, [source], budget, signal);
    return convert(kind, source, json as string);
  }

  function start(kind: SourceKind, source: string, key: string): Running {
    const stop = new AbortController();
    const tree = read(kind, source, stop.signal)
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
      .finally(() => {
        if (inFlight.get(key) === running) inFlight.delete(key);
      });
    const running: Running = { tree, callers: 0, stop };
    inFlight.set(key, running);
    return running;
  }

  async function parse(kind: SourceKind, source: string, signal?: AbortSignal): Promise<Tree> {
    signal?.throwIfAborted();
    const key = `${kind}:${source}`;
    const known = cache.get(key);
    if (known && 'error' in known) throw known.error;
    if (known) return known.tree;
    const running = inFlight.get(key) ?? start(kind, source, key);
    running.callers += 1;
    if (!signal) return running.tree;
    const given = Promise.withResolvers<never>();
    const giveUp = () => {
      given.reject(signal.reason);
      running.callers -= 1;
      if (running.callers > 0) return;
      inFlight.delete(key);
      running.stop.abort(signal.reason);
    };
    signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([running.tree, given.promise]);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  return {
    program: (source, signal) => parse('program', source, signal) as Promise<Program>,
    expression: (source, signal) => parse('expression', source, signal) as Promise<Expr>,
    select: (source, signal) => parse('select', source, signal) as Promise<SelectNode | Placeholder>,
    template: (source, signal) => parse('template', source, signal) as Promise<Expr>,
    close: () => pool.close(),
  };
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
