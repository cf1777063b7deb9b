import { checkConfig, mergeConfig, type RawConfig, secretValues, withoutSecretKeys } from './config.ts';
import type { StepOutcome, StepResult, Surroundings } from './destination.ts';
import { DestinationConfigError, DestinationError, withoutSecrets } from './errors.ts';
import { findDestination, requireDestination } from './registry.ts';

/** A destination as it stands in the API. */
export interface DestinationSettings {
  type: string;
  config: RawConfig;
}

/** Checks a destination that somebody sent and returns what is stored. Throws a DestinationConfigError. */
export function checkSettings({ type, config }: DestinationSettings): DestinationSettings {
  return { type, config: checkConfig(requireDestination(type).fields, config) };
}

/** Applies a PATCH and returns what is stored. Keys that it leaves out keep their values, including secrets. */
export function patchSettings(stored: DestinationSettings, sent: DestinationSettings): DestinationSettings {
  const destination = requireDestination(sent.type);
  if (!destination.types.includes(stored.type)) {
    throw new DestinationConfigError(
      `Cannot change destination type from '${stored.type}' to '${sent.type}'. Delete this batch export and create a new one with the new destination type.`,
      'type',
    );
  }
  return checkSettings({ type: sent.type, config: mergeConfig(stored.config, sent.config) });
}

/** What an answer shows of a destination: no secret, and no key of a type that no longer exists. */
export function shownSettings({ type, config }: DestinationSettings): DestinationSettings {
  const destination = findDestination(type);
  return { type, config: destination ? withoutSecretKeys(destination.fields, config) : {} };
}

export interface ShownStep {
  name: string;
  description: string;
  result: StepResult | null;
}

/** The steps of a connection test, not yet run. Undefined if there is no such type, or if it has no steps. */
export function testSteps(type: string): ShownStep[] | undefined {
  const steps = findDestination(type)?.steps ?? [];
  if (steps.length === 0) return undefined;
  return steps.map(({ name, description }) => ({ name, description, result: null }));
}

const LONGEST_TEST_MILLISECONDS = 60_000;

/** Runs one step of a connection test and returns its result, whatever happens. Undefined if there is no such step. */
export async function runTestStep(
  { type, config }: DestinationSettings,
  index: number,
  surroundings: Surroundings,
): Promise<ShownStep | undefined> {
  const destination = findDestination(type);
  const step = destination?.steps[index];
  if (!destination || !step) return undefined;
  const { name, description } = step;
  const done = (outcome: StepOutcome): ShownStep => {
    const said = typeof outcome === 'object' ? outcome.skipped : (outcome ?? null);
    const message = said === null ? null : withoutSecrets(said, secretValues(destination.fields, config));
    const status = outcome === undefined ? 'Passed' : typeof outcome === 'string' ? 'Failed' : 'Skipped';
    return { name, description, result: { status, message } };
  };
  let parsed: unknown;
  try {
    parsed = destination.fields.parse(checkConfig(destination.fields, config));
  } catch (error) {
    if (!(error instanceof DestinationConfigError)) throw error;
    return done(`The test step cannot run as it's not configured. ${error.message}`);
  }
  try {
    // Somebody waits for the answer, so a failed request is repeated only once.
    const signal = AbortSignal.timeout(LONGEST_TEST_MILLISECONDS);
    const patience = { attempts: 2, delay: () => 500 };
    return done(await step.run(parsed, { patience, ...surroundings }, signal));
  } catch (error) {
    if (error instanceof DestinationError && error.code === 'not-configured')
      return done(`The test step cannot run as it's not configured. ${error.message}`);
    // The destination knows what this error means.
    if (error instanceof DestinationError && error.code !== 'unexpected') return done(error.message);
    return done(`The test step failed with an unknown error: ${(error as Error).message}.`);
  }
}
