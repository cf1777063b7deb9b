import type { Expr } from '../hog/ast/index.ts';
import { type Bytecode, compileBytecode } from '../hog/bytecode/index.ts';
import { SourceError } from '../hog/errors.ts';
import type { Parser } from '../hog/parser/index.ts';
import { actionExpression, checkStep, FilterBudget, FilterError, hogqlFilters } from '../properties/index.ts';
import type { Moment } from '../values/dates.ts';
import { readSteps } from './reads/read-steps.ts';
import type { StepDocument } from './rows/actions.ts';

/** What one action is compiled from. */
export interface ActionSource {
  steps: readonly StepDocument[];
  /** Relative dates of properties are resolved with it. */
  moment: Moment;
}

/**
 * Compiles the steps of an action to bytecode that is true for the events that the action matches. Users decide what
 * that costs. Throws a FilterError; its path begins with `steps`.
 */
export async function compileSteps(
  { steps, moment }: ActionSource,
  parser: Pick<Parser, 'expression'>,
): Promise<Bytecode> {
  const budget = new FilterBudget();
  const read = readSteps(steps, budget);
  for (const [index, step] of read.entries()) checkStep(step, `steps.${index}`, budget.patterns);
  const hogql = new Map<string, Expr>();
  for (const { key: source, path } of read.flatMap((step) =>
    step.properties ? hogqlFilters(step.properties) : [],
  )) {
    if (hogql.has(source)) continue;
    hogql.set(source, await placed(`${path}.key`, () => expressionOf(parser, source)));
  }
  return placed('steps', async () =>
    compileBytecode(actionExpression(read, { moment, scope: 'realtime', hogql })),
  );
}

/** Parses the text of a `hogql` filter, and finds out whether it can be compiled. */
async function expressionOf(parser: Pick<Parser, 'expression'>, source: string): Promise<Expr> {
  const expr = await parser.expression(source);
  compileBytecode(expr, source);
  return expr;
}

async function placed<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceError) throw new FilterError(error.message, path);
    throw error;
  }
}
