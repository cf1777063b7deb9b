import { isDeepStrictEqual } from 'node:util';
import type { CompiledContent, InputSchema, StoredInputs } from './definition.ts';

type Inputs = Pick<CompiledContent, 'inputs_schema' | 'inputs' | 'mappings'>;

const secretsOf = (
  schemas: readonly InputSchema[],
  inputs: StoredInputs,
  place: string,
): [string, unknown][] =>
  schemas
    .filter(({ secret }) => secret)
    .map(({ key }) => {
      const { value, templating } = Object.hasOwn(inputs, key) ? (inputs[key] ?? {}) : {};
      return [`${place}.${key}`, [value, templating]];
    });

/** The secret inputs of a function and of its mappings, by their places. */
const allOf = ({ inputs_schema: schemas, inputs, mappings }: Inputs): Map<string, unknown> =>
  new Map([
    ...secretsOf(schemas, inputs, 'inputs'),
    ...(mappings ?? []).flatMap((one, index) =>
      secretsOf(one.inputs_schema ?? [], one.inputs ?? {}, `mappings[${index}].inputs`),
    ),
  ]);

/** Lists the secret inputs whose values differ, or that only one version has. Says nothing of the values. */
export function changedSecrets(running: Inputs, proposed: Inputs): string[] {
  const [before, after] = [allOf(running), allOf(proposed)];
  const places = new Set([...before.keys(), ...after.keys()]);
  return [...places].filter((place) => !isDeepStrictEqual(before.get(place), after.get(place)));
}
