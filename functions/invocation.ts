// What all runs of a program share, whether they are real or tried.
import type { Integrations, Substitution } from './effects.ts';
import type { StoredInputs } from './rules/definition.ts';
import { type Redact, redactor } from './rules/redact.ts';
import type { Variant } from './rules/variants.ts';
import { integrationInputs } from './run.ts';

/** Finds what stands for the integrations that inputs name. Throws an IntegrationError. */
export async function integrationsOf(
  { integrations }: { integrations: Integrations },
  { schemas, inputs }: Variant,
  { projectId, seed, isMocked }: { projectId: number; seed: string; isMocked: boolean },
): Promise<{ given: Record<string, unknown>; substitutions: Substitution[] }> {
  const given: Record<string, unknown> = {};
  const substitutions: Substitution[] = [];
  for (const { key } of integrationInputs(schemas)) {
    const id = inputs[key]?.value;
    if (typeof id !== 'number') continue;
    const found = await integrations.resolve(projectId, id, { seed, isMocked });
    given[key] = found?.inputs ?? null;
    if (found) substitutions.push(found.substitution);
  }
  return { given, substitutions };
}

/** Hides the secrets of a run. */
export function redactorOf(
  { integrations }: { integrations: Integrations },
  { schemas, inputs }: Variant,
  substitutions: readonly Substitution[],
): Redact {
  const secret = schemas.filter((one) => one.secret).map(({ key }) => inputs[key]?.value);
  return redactor([secret, integrations.secretValues(substitutions)], valuesOf(inputs));
}

const valuesOf = (inputs: StoredInputs) =>
  Object.fromEntries(Object.entries(inputs).map(([key, { value }]) => [key, value]));

/** What a run took: times in milliseconds, memory in bytes. */
export interface Usage {
  total: number;
  milliseconds: number;
  memory: number;
  steps: number;
  /** The address of the event. */
  url: string;
}

/** The last line of the log of a run. */
export function completedLine({ total, milliseconds, memory, steps, url }: Usage): string {
  const rounded = (value: number) => Number(value.toPrecision(2));
  return (
    `Function completed in ${rounded(total)}ms. Sync: ${rounded(milliseconds)}ms. Mem: ${rounded(memory / 1024)}kb. ` +
    `Ops: ${steps}. Event: '${url}'`
  );
}
