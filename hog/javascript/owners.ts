// Which lists compiled code may change in place, see runtime/lists.ts. Only variables that the program assigns like
// `a := arrayPushBack(a, x)` can own lists, so all other variables cost nothing.
import type { Call, Expr, Program, VariableAssignment } from '../ast/index.ts';
import { LOOKING, listChanges, SORTING } from '../runtime/lists.ts';
import { library } from '../runtime/stl.ts';

/** The variables of a program that can own lists, by name. Different variables of one name count as one. */
export interface Owners {
  names: ReadonlySet<string>;
  /** Those that occur in several functions, so that a call can change them. */
  shared: ReadonlySet<string>;
}

type Node = Record<string, unknown>;

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** Calls `visit` for each node of a tree, the outer ones first. `within` is the innermost function around the node. */
function walk(value: unknown, visit: (node: Node, within: unknown) => void, within: unknown = null): void {
  if (!isNode(value)) return;
  if (Array.isArray(value)) {
    for (const one of value) walk(one, visit, within);
    return;
  }
  visit(value, within);
  const inner = value.kind === 'lambda' || value.kind === 'function' ? value : within;
  for (const [key, one] of Object.entries(value)) if (key !== 'span') walk(one, visit, inner);
}

/** Returns the name of a variable that a list function changes: `a` of `a := arrayPushBack(a, x)`. */
export function changedName({ target, value }: VariableAssignment): string | null {
  const name = variableOf(target);
  if (name === null || value.kind !== 'call' || value.params || !listChanges.has(value.name)) return null;
  const [list] = value.args;
  return list && value.args.length === listChanges.get(value.name)?.args && variableOf(list) === name
    ? name
    : null;
}

export const variableOf = (node: Expr): string | null =>
  node.kind === 'field' && node.chain.length === 1 ? (node.chain[0] as string) : null;

export function ownersOf(tree: Program | Expr): Owners {
  const names = new Set<string>();
  walk(tree, (node) => {
    if (node.kind !== 'variableAssignment') return;
    const name = changedName(node as unknown as VariableAssignment);
    if (name !== null) names.add(name);
  });
  const shared = new Set<string>();
  if (names.size === 0) return { names, shared };
  const places = new Map<string, unknown>();
  const seen = (name: unknown, within: unknown) => {
    if (typeof name !== 'string' || !names.has(name)) return;
    if (places.has(name) && places.get(name) !== within) shared.add(name);
    places.set(name, within);
  };
  walk(tree, (node, within) => {
    if (node.kind === 'field') seen((node.chain as unknown[])[0], within);
    else if (node.kind === 'call' || node.kind === 'variableDeclaration') seen(node.name, within);
    else if (node.kind === 'forInStatement')
      for (const key of ['keyVar', 'valueVar']) seen(node[key], within);
  });
  return { names, shared };
}

/**
 * Returns what evaluating expressions can run besides themselves: `none`, functions that cannot see a variable that
 * occurs in one function only (`others`), or functions that are made on the spot (`any`).
 */
export function runs(nodes: Expr[], isVariable: (name: string) => boolean): 'none' | 'others' | 'any' {
  let found: 'none' | 'others' | 'any' = 'none';
  walk(nodes, (node) => {
    if (node.kind === 'lambda') found = 'any';
    else if (found === 'any') return;
    else if (node.kind === 'exprCall' || node.kind === 'tag') found = 'others';
    else if (node.kind === 'call') {
      const { name, params } = node as unknown as Call;
      if (params || !library.has(name) || SORTING.has(name) || isVariable(name)) found = 'others';
    }
  });
  return found;
}

/** Returns whether a call only looks at its arguments. */
export const onlyLooks = ({ name, params }: Call): boolean => !params && LOOKING.has(name);
