// What is most likely not meant in a program that compiles.
import { type Expr, type Field, nodesOf, type Program } from '../hog/ast/index.ts';
import { type Bytecode, OPERAND_COUNTS, Op } from '../hog/bytecode/index.ts';
import { hostFunctions } from '../hog/host/index.ts';
import { library } from '../hog/runtime/stl.ts';
import { hogLibrary, libraryChunk } from '../hog/vm/hog-library.ts';
import type { FunctionTypeName } from './rules/types.ts';

/** Functions that Sluice gives to programs, beside those of the language. */
const HOST = new Set(Object.keys(hostFunctions()));
/** Functions with an effect. Transformations have none of them. */
const EFFECTS = new Set(['fetch', 'postHogCapture', 'sleep']);

const isKnown = (name: string, type: FunctionTypeName): boolean =>
  library.has(name) ||
  hogLibrary.has(libraryChunk(name)) ||
  HOST.has(name) ||
  (type !== 'transformation' && EFFECTS.has(name));

/** Says which functions a program calls by a name that nothing has. Such a call fails when it is reached. */
export function unknownCalls(bytecode: Bytecode, type: FunctionTypeName): string[] {
  const names = new Set<string>();
  const declared = new Set<string>();
  for (let at = 2; at < bytecode.length; ) {
    const op = bytecode[at] as number;
    if (op === Op.CALL_GLOBAL) names.add(bytecode[at + 1] as string);
    if (op === Op.DECLARE_FN) declared.add(bytecode[at + 1] as string);
    const captured = op === Op.CLOSURE ? 2 * (bytecode[at + 1] as number) : 0;
    at += 1 + (OPERAND_COUNTS.get(op) ?? 0) + captured;
  }
  return [...names]
    .filter((name) => !declared.has(name) && !isKnown(name, type))
    .map((name) => `The function ${name}() does not exist. A call of it ends the run with an error.`);
}

/** Finds `event.properties.foo-bar`, which subtracts `bar`, although a property with a hyphen is meant. */
export function readsAsSubtraction(
  tree: Program | Expr,
  text: string,
): { path: string; key: string; whole: string } | undefined {
  for (const node of nodesOf(tree)) {
    if (node.kind !== 'arithmetic' || node.op !== '-') continue;
    const { left, right } = node as unknown as { left: Expr; right: Expr };
    if (!isPath(left) || right.kind !== 'field' || !left.span || !right.span) continue;
    if (text.slice(left.span.end, right.span.start) !== '-') continue;
    const chain = left.chain;
    const key = `${chain.at(-1)}-${right.chain.join('.')}`;
    const path = chain.slice(0, -1).join('.');
    return { path, key, whole: text.slice(left.span.start, right.span.end) };
  }
  return undefined;
}

const isPath = (expr: Expr): expr is Field => expr.kind === 'field' && expr.chain.length > 1;
