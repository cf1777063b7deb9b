/** Any node, for code that looks at trees whatever they are of. */
export type AnyNode = Record<string, unknown> & { kind: string };

export const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && typeof (value as AnyNode).kind === 'string';

/** Lists all nodes of a tree, from the root down. */
export function* nodesOf(value: unknown): Generator<AnyNode> {
  if (Array.isArray(value)) {
    for (const one of value) yield* nodesOf(one);
  } else if (typeof value === 'object' && value !== null) {
    if (isNode(value)) yield value;
    for (const [key, one] of Object.entries(value)) if (key !== 'span') yield* nodesOf(one);
  }
}
