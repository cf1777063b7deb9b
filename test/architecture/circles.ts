import type { Import } from './import-graph.ts';

/** Groups of nodes that reach each other, each sorted: what Tarjan's algorithm finds. */
export function circles(edges: readonly (readonly [from: string, to: string])[]): string[][] {
  const next = new Map<string, Set<string>>();
  for (const [from, to] of edges) {
    const targets = next.get(from) ?? new Set();
    next.set(from, targets.add(to));
  }
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): number => {
    const number = index.size;
    index.set(node, number);
    low.set(node, number);
    stack.push(node);
    for (const target of next.get(node) ?? []) {
      if (!index.has(target)) low.set(node, Math.min(low.get(node) as number, visit(target)));
      else if (stack.includes(target)) {
        low.set(node, Math.min(low.get(node) as number, index.get(target) as number));
      }
    }
    if (low.get(node) === number) {
      const group = stack.splice(stack.indexOf(node));
      if (group.length > 1) found.push(group.sort());
    }
    return low.get(node) as number;
  };
  for (const node of next.keys()) if (!index.has(node)) visit(node);
  return found.sort((a, b) => (a.join() < b.join() ? -1 : 1));
}

/** Circles of files, types included. */
export const fileCircles = (graph: readonly Import[]): string[][] =>
  circles(graph.filter((edge) => edge.own).map(({ file, target }) => [file, target] as const));

/** Circles of places, types included. */
export function placeCircles(
  graph: readonly Import[],
  placeOf: (file: string) => string | undefined,
): string[][] {
  const edges = graph.flatMap(({ own, file, target }) => {
    const [from, to] = [placeOf(file), own ? placeOf(target) : undefined];
    return from !== undefined && to !== undefined && from !== to ? [[from, to] as const] : [];
  });
  return circles(edges);
}
