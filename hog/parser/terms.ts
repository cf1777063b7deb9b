import type { Expr } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { toExpr } from './convert-expression.ts';
import { answerOf } from './messages.ts';
import { createReaders } from './reader.ts';
import { type Token, tokenize } from './tokens.ts';

/** The terms of a long chain of conditions, as filters have them. */
export interface Terms {
  kind: 'or' | 'and';
  /** The texts between the operators, with their offsets in the source. */
  texts: { start: number; text: string }[];
  /** The offset of the chain's first token. Spaces and comments around the chain are not part of it. */
  start: number;
  end: number;
}

/** Shorter chains are parsed whole. */
const FEWEST_TERMS = 8;
const KEYWORDS = new Set(['and', 'or', 'not', 'in', 'like', 'ilike', 'is', 'null', 'cohort']);
/** The allowed signs. Other operators bind weaker than `or`, or contain an `and` of their own. */
const SIGNS = new Set(['.', '=', '<', '>', '!', '~', '*', '/', '%', '+', '-', '(', ')', '[', ']', '{', '}']);

/**
 * Splits an expression at its `or` operators, or at its `and` operators if it has no `or`. Returns null if other
 * operators could bind weaker; the expression is then parsed whole.
 */
export function splitTerms(source: string): Terms | null {
  const tokens = tokenize(source);
  if (!tokens) return null;
  const borders: Record<'or' | 'and', Token[]> = { or: [], and: [] };
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token;
    if (
      token.kind === 'keyword' ? !KEYWORDS.has(token.text) : token.kind === 'sign' && !SIGNS.has(token.text)
    )
      return null;
    // Operators inside brackets do not split the chain.
    if (token.partner > i) i = token.partner;
    else if (token.text === 'or' || token.text === 'and') borders[token.text].push(token);
  }
  const kind = borders.or.length > 0 ? 'or' : 'and';
  if (borders[kind].length + 1 < FEWEST_TERMS) return null;
  const starts = [0, ...borders[kind].map((one) => one.end)];
  const ends = [...borders[kind].map((one) => one.start), source.length];
  return {
    kind,
    texts: starts.map((start, index) => ({ start, text: source.slice(start, ends[index]) })),
    start: (tokens[0] as Token).start,
    end: (tokens.at(-1) as Token).end,
  };
}

export interface TermsReading {
  parse(texts: string[]): Promise<string[]>;
  /** How many requests to the parser may run at once. */
  lanes: number;
  maxDepth: number;
}

/**
 * Parses the terms of a chain in parallel. Returns null if a term is invalid; parsing the whole text then yields the
 * error.
 */
export async function readTerms(
  source: string,
  { kind, texts, start, end }: Terms,
  { parse, lanes, maxDepth }: TermsReading,
): Promise<Expr | null> {
  const each = Math.ceil(texts.length / lanes);
  const parts = Array.from({ length: lanes }, (_, lane) => texts.slice(lane * each, (lane + 1) * each));
  const answers = await Promise.all(
    parts.filter((part) => part.length > 0).map((part) => parse(part.map(({ text }) => text))),
  );
  const readerAt = createReaders(source, maxDepth);
  const exprs: Expr[] = [];
  for (const [index, json] of answers.flat().entries()) {
    const term = texts[index] as Terms['texts'][number];
    const reader = readerAt({ start: term.start });
    reader.depth = 1;
    let expr: Expr;
    try {
      expr = toExpr(reader, answerOf(reader, term.text, json));
    } catch (error) {
      if (error instanceof SourceError) return null;
      throw error;
    }
    // The parser also flattens nested chains of the same operator, with or without brackets.
    if (expr.kind === kind) exprs.push(...expr.exprs);
    else exprs.push(expr);
  }
  return Object.freeze({ kind, exprs: Object.freeze(exprs) as Expr[], span: Object.freeze({ start, end }) });
}
