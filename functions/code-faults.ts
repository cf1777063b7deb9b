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

/** What programs of some type see. */
const GLOBALS = new Set([
  ...['project', 'event', 'person', 'groups', 'source', 'inputs', 'variables', 'request', 'items'],
]);

/**
 * Says which functions a program calls, and which variables it reads, by a name that nothing has. It fails when it comes to
 * such a place.
 */
export function unknownNames(bytecode: Bytecode, type: FunctionTypeName): string[] {
  const names = new Set<string>();
  const variables = new Set<string>();
  const declared = new Set<string>();
  for (let at = 2; at < bytecode.length; ) {
    const op = bytecode[at] as number;
    // The first name of a path is put on the stack last.
    if (op === Op.GET_GLOBAL) variables.add(bytecode[at - 1] as string);
    if (op === Op.CALL_GLOBAL) names.add(bytecode[at + 1] as string);
    if (op === Op.DECLARE_FN) declared.add(bytecode[at + 1] as string);
    const captured = op === Op.CLOSURE ? 2 * (bytecode[at + 1] as number) : 0;
    at += 1 + (OPERAND_COUNTS.get(op) ?? 0) + captured;
  }
  const isUnknown = (name: string) => !declared.has(name) && !isKnown(name, type);
  return [
    ...[...names]
      .filter(isUnknown)
      .map((name) => `The function ${name}() does not exist. A call of it ends the run with an error.`),
    ...[...variables]
      .filter((name) => isUnknown(name) && !GLOBALS.has(name))
      .map(
        (name) =>
          `The variable ${name} does not exist. Reading it ends the run with an error. If it is meant as a text, write it in ` +
          `single quotes: '${name}'.`,
      ),
  ];
}

/** Finds `event.properties.foo-bar`, which subtracts `bar`, although a property with a hyphen is meant. */
export function readsAsSubtraction(
  tree: Program | Expr,
  text: string,
): { path: string; key: string; whole: string; span: NonNullable<Expr['span']> } | undefined {
  for (const node of nodesOf(tree)) {
    if (node.kind !== 'arithmetic' || node.op !== '-') continue;
    const { left, right } = node as unknown as { left: Expr; right: Expr };
    if (!isPath(left) || right.kind !== 'field' || !left.span || !right.span) continue;
    if (text.slice(left.span.end, right.span.start) !== '-') continue;
    const chain = left.chain;
    const end = right.span.end + (MORE_HYPHENS.exec(text.slice(right.span.end))?.[0].length ?? 0);
    const key = `${chain.at(-1)}${text.slice(left.span.end, end)}`;
    const path = chain.slice(0, -1).join('.');
    const span = { start: left.span.start, end };
    return { path, key, whole: text.slice(span.start, span.end), span };
  }
  return undefined;
}

/** The rest of a name with several hyphens, such as `-name` of `multi-word-name`. */
const MORE_HYPHENS = /^(?:-[A-Za-z_$][\w$]*)+/;

const isPath = (expr: Expr): expr is Field => expr.kind === 'field' && expr.chain.length > 1;
