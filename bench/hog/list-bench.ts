// Lists that programs build element by element, and programs that change a little.
import hogvm from '@posthog/hogvm';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createParser, type Parser } from '../../hog/parser/index.ts';
import { run } from '../../hog/vm/index.ts';
import { functionText } from './function-text.ts';

const building = (pushes: number, name: string) =>
  `let a := [] for (let i := 0; i < ${pushes}; i := i + 1) { a := ${name}(a, {'key': i, 'text': 'some text'}) } return length(a)`;

/** Milliseconds of the fastest of `rounds`. */
function fastest(act: () => unknown, rounds = 5): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    act();
    best = Math.min(best, performance.now() - start);
  }
  return Number(best.toFixed(2));
}

export async function measureLists(parser: Parser) {
  const limits = { maxSteps: 1e9 };
  const rows = [];
  for (const name of ['arrayPushBack', 'arrayPushFront']) {
    for (const pushes of [1_000, 10_000, 20_000]) {
      const program = await parser.program(building(pushes, name));
      const code = compileBytecode(program);
      const javaScript = compileJavaScript(program);
      rows.push({
        function: name,
        pushes,
        machineMs: fastest(() => run(code, { limits })),
        javaScriptMs: fastest(() => javaScript.run({}, { limits })),
        // The reference takes minutes for more.
        referenceMs:
          pushes > 1_000 ? null : fastest(() => hogvm.exec(code, { timeout: 60_000, memoryLimit: 1e10 }), 1),
      });
    }
  }
  return rows;
}

/** Parses a function of 200 lines for the first time, and after changes of one statement. */
export async function measureChanges() {
  const ms = async (act: () => Promise<unknown>) => {
    const start = performance.now();
    await act();
    return Number((performance.now() - start).toFixed(1));
  };
  const measured: Record<string, number> = {};
  for (const kind of ['cold', 'warm'] as const) {
    const parser = createParser();
    if (kind === 'warm') await parser.warm();
    else await Promise.all([parser.expression('warm + up'), parser.expression('warm + too')]);
    measured[`${kind}FirstMs`] = await ms(() => parser.program(functionText()));
    const changes: number[] = [];
    for (let i = 1; i <= 9; i++) changes.push(await ms(() => parser.program(functionText(i))));
    measured[`${kind}ChangedMs`] = changes.toSorted((a, b) => a - b)[4] as number;
    await parser.close();
  }
  return measured;
}
