import { NoAnswerError, within } from '../egress/no-answer.ts';
import { withoutSecretKeys } from '../values/marked-secrets.ts';
import { addressOf, requireSecrets } from './address.ts';
import { expandConfig, mergeConfig, type RawConfig, readConfig, secretValues } from './config.ts';
import type { StepResult, Surroundings } from './destination.ts';
import { DestinationConfigError, DestinationError, withoutSecrets } from './errors.ts';
import { findDestination, requireDestination } from './registry.ts';
import type { Patience } from './retry.ts';

/** A destination as it stands in the API. */
export interface DestinationSettings {
  type: string;
  config: RawConfig;
}

/** Checks a destination that somebody sent and returns what is stored. Throws a DestinationConfigError. */
export function checkSettings({ type, config }: DestinationSettings): DestinationSettings {
  return { type, config: readConfig(requireDestination(type), config) };
}

/**
 * Applies a PATCH and returns what is stored. Keys that it leaves out keep their values, including secrets. If it
 * changes where the secrets travel, it must contain them.
 */
export function patchSettings(stored: DestinationSettings, sent: DestinationSettings): DestinationSettings {
  return checkSettings(mergeSettings(stored, sent));
}

/** Like `patchSettings`, but the result need not be complete. */
export function mergeSettings(stored: DestinationSettings, sent: DestinationSettings): DestinationSettings {
  const destination = requireDestination(sent.type);
  if (!destination.types.includes(stored.type)) {
    throw new DestinationConfigError(
      `Cannot change destination type from '${stored.type}' to '${sent.type}'. Delete this batch export and create a new one with the new destination type.`,
      'type',
    );
  }
  const change = expandConfig(destination, sent.config);
  const changed = mergeConfig(stored.config, change);
  requireSecrets(destination, stored.config, { sent: change, changed });
  return { type: sent.type, config: changed };
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

/** A step of a test takes no longer, whatever the server does: somebody waits for its answer. */
const LONGEST_TEST_MILLISECONDS = 12_000;
/** A test that fails is repeated by whoever runs it. */
const IMPATIENCE: Patience = { attempts: 1, delay: () => 0 };

interface TestStepOptions {
  /**
   * Called when the step is about to connect, with the address that it connects to. The address contains no secret. If
   * it rejects, the step does not run.
   */
  onBegin?: ((step: string, address: Record<string, unknown>) => Promise<void>) | undefined;
  /** Ends the step, for example because nobody waits for its result any more. */
  signal?: AbortSignal | undefined;
  /** How long it may take, in milliseconds. */
  longest?: number;
}

/** Runs one step of a connection test and returns its result, whatever happens. Undefined if there is no such step. */
export async function runTestStep(
  { type, config }: DestinationSettings,
  index: number,
  surroundings: Surroundings,
  { onBegin, signal, longest = LONGEST_TEST_MILLISECONDS }: TestStepOptions = {},
): Promise<ShownStep | undefined> {
  const destination = findDestination(type);
  const step = destination?.steps[index];
  if (!destination || !step) return undefined;
  const { name, description } = step;
  const done = (status: StepResult['status'], said?: string): ShownStep => {
    const message =
      said === undefined ? null : withoutSecrets(said, secretValues(destination.fields, config));
    return { name, description, result: { status, message } };
  };
  let expanded = config;
  let parsed: unknown;
  try {
    expanded = readConfig(destination, config);
    parsed = destination.fields.parse(expanded);
  } catch (error) {
    if (!(error instanceof DestinationConfigError)) throw error;
    return done('Failed', `The test step cannot run as it's not configured. ${error.message}`);
  }
  await onBegin?.(name, addressOf(destination, expanded));
  try {
    const outcome = await within(
      longest,
      (limit) => `The test took longer than ${limit}`,
      signal,
      (stop) => step.run(parsed, { patience: IMPATIENCE, ...surroundings }, stop),
    );
    if (outcome === undefined) return done('Passed');
    if (typeof outcome === 'string') return done('Failed', outcome);
    return 'skipped' in outcome ? done('Skipped', outcome.skipped) : done('Passed', outcome.passed);
  } catch (error) {
    if (signal?.aborted) return done('Failed', 'The test was stopped: nobody waits for its result.');
    if (error instanceof NoAnswerError) return done('Failed', error.message);
    if (error instanceof DestinationError && error.code === 'not-configured')
      return done('Failed', `The test step cannot run as it's not configured. ${error.message}`);
    // The destination knows what this error means.
    if (error instanceof DestinationError && error.code !== 'unexpected')
      return done('Failed', error.message);
    return done('Failed', `The test step failed with an unknown error: ${(error as Error).message}.`);
  }
}
