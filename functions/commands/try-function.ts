import { randomUUID } from 'node:crypto';
import type { Egress } from '../../egress/egress.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { refuse } from '../../refusals.ts';
import { depthHeader } from '../../values/function-depth.ts';
import type { FunctionCompiler } from '../compiler.ts';
import {
  fetchFor,
  IntegrationError,
  type Integrations,
  type ShownFetch,
  type Substitution,
} from '../effects.ts';
import { withPlace } from '../failure-place.ts';
import { completedLine, integrationsOf, redactorOf } from '../invocation.ts';
import type { CompiledContent } from '../rules/definition.ts';
import { depthOfGlobals } from '../rules/depth.ts';
import type { Frame } from '../rules/frame.ts';
import { filterGlobals, type Globals, seenBy } from '../rules/globals.ts';
import { InvocationLog, type LogEntry } from '../rules/logs.ts';
import type { MockedAnswer } from '../rules/mocks.ts';
import { redactor } from '../rules/redact.ts';
import { Room } from '../rules/room.ts';
import { expectedStatuses } from '../rules/statuses.ts';
import { type FunctionTypeName, typeOf } from '../rules/types.ts';
import { filtersOf, type Variant, variantsOf } from '../rules/variants.ts';
import type { Begun, Step } from '../run.ts';
import { type Runner, RunnerBusyError, RunnerLimitError } from '../runner.ts';
import { lookUpListed } from '../static-cohorts.ts';
import type { Read } from './sample-event.ts';

export interface TryDependencies {
  runner: Runner;
  /** Finds the places of errors. */
  compiler: FunctionCompiler;
  egress: Pick<Egress, 'fetch'>;
  integrations: Integrations;
  read: Read;
}

/** What is tried: a compiled function, and the event that it is tried with. */
export interface Trial {
  projectId: number;
  type: FunctionTypeName;
  content: CompiledContent;
  globals: Globals;
  /** Whether requests are only shown. */
  isMocked: boolean;
  /** What requests get that are only shown. */
  answers?: readonly MockedAnswer[];
  frame: Frame;
  /** How much is shown. Trials that are shown together share it. */
  room?: Room;
  /** A random secret, of which what stands for credentials is made. Trials that are compared share it. */
  seed?: string;
}

/** What became of one invocation: of the function, or of one of its mappings. */
export interface TriedInvocation {
  /** The name of the mapping. Null: the function has none. */
  mapping: string | null;
  status: 'success' | 'error' | 'skipped';
  result: unknown;
  errors: string[];
  fetches: ShownFetch[];
  /** The events that the program asked to capture. They are not stored. */
  captured: unknown[];
  steps: number;
  memory: number;
}

export interface Tried {
  status: 'success' | 'error' | 'skipped';
  result: unknown;
  errors: string[];
  logs: LogEntry[];
  invocations: TriedInvocation[];
  duration_ms: number;
}

const RETRY_SECONDS = 5;
/** How much of requests, results and captured events is shown together. */
export const SHOWN_CHARACTERS = 10 * 1024 * 1024;
const NOT_MATCHING = 'Mapping trigger not matching filters was ignored.';
const DISABLED = 'A mapping that is disabled was ignored.';

/** Runs a function once with an event. Nothing is stored. Requests leave only if they are not mocked. */
export async function tryFunction(deps: TryDependencies, trial: Trial, signal?: AbortSignal): Promise<Tried> {
  if (!typeOf(trial.type).isTestable) {
    throw refuse.invalid('type', `Functions of type ${trial.type} cannot be tried with an event.`);
  }
  const began = performance.now();
  try {
    const globals = seenBy(trial.type, trial.globals);
    const attempt = new Attempt(deps, { ...trial, globals }, signal);
    const invocations = await attempt.run();
    const status = (['error', 'success'] as const).find((one) =>
      invocations.some((tried) => tried.status === one),
    );
    const ran = invocations.filter((one) => one.status !== 'skipped');
    return {
      status: status ?? 'skipped',
      result: ran.at(-1)?.result ?? null,
      errors: invocations.flatMap(({ errors }) => errors),
      logs: attempt.log.entries,
      invocations,
      duration_ms: Math.round(performance.now() - began),
    };
  } catch (error) {
    if (error instanceof RunnerBusyError) throw refuse.unavailable(error.message, RETRY_SECONDS);
    throw error;
  }
}

class Attempt {
  readonly log: InvocationLog;
  readonly #deps: TryDependencies;
  readonly #trial: Trial;
  readonly #signal: AbortSignal | undefined;
  readonly #seed: string;
  readonly #room: Room;
  #redact = redactor([], {});

  constructor(deps: TryDependencies, trial: Trial, signal: AbortSignal | undefined) {
    this.#deps = deps;
    this.#trial = trial;
    this.#signal = signal;
    this.#seed = trial.seed ?? randomUUID();
    this.#room = trial.room ?? new Room(SHOWN_CHARACTERS);
    this.log = new InvocationLog(Date.now, (text) => this.#redact.text(text));
  }

  async run(): Promise<TriedInvocation[]> {
    const { content, globals, frame, projectId } = this.#trial;
    const variants = variantsOf(content);
    const { own: filters, mappings } = filtersOf(content);
    const { id } = (globals.person ?? {}) as { id?: unknown };
    const listed = await lookUpListed(this.#deps.read, projectId, [{ own: filters, mappings }], [id]);
    const [own, ...others] = await this.#deps.runner.match(
      projectId,
      { filters: [filters, ...(mappings ?? [])], globals: filterGlobals(globals, listed(id)), frame },
      this.#signal,
    );
    const tried: TriedInvocation[] = [];
    for (const [index, variant] of variants.entries()) {
      const match = own?.matched && mappings ? others[index] : own;
      if (match?.matched) tried.push(await this.#invoke(variant));
      else tried.push(this.#skip(variant, match?.error));
    }
    return tried;
  }

  #skip({ mapping, isDisabled }: Variant, error: string | undefined): TriedInvocation {
    const { uuid } = this.#trial.globals.event as { uuid: string };
    const message = error === undefined ? undefined : `Error filtering event ${uuid}: ${error}`;
    this.log.add(message ? 'error' : 'info', message ?? (isDisabled ? DISABLED : NOT_MATCHING));
    return { ...EMPTY, mapping, status: 'skipped', errors: message ? [message] : [] };
  }

  async #invoke(variant: Variant): Promise<TriedInvocation> {
    const { projectId, content, type, frame } = this.#trial;
    const { uuid, url } = this.#trial.globals.event as { uuid: string; url: string };
    const began = performance.now();
    this.log.begin();
    const tried: TriedInvocation = {
      ...EMPTY,
      mapping: variant.mapping,
      status: 'success',
      fetches: [],
      errors: [],
      captured: [],
    };
    const fail = (message: string) => {
      this.log.add('error', message);
      tried.status = 'error';
      tried.errors.push(this.#redact.text(message));
    };
    const { isMocked } = this.#trial;
    const found = await integrationsOf(this.#deps, variant, {
      ...{ projectId, isMocked, seed: this.#seed },
    }).catch((error: unknown) => {
      if (!(error instanceof IntegrationError)) throw error;
      fail(`Error building inputs for event ${uuid}: ${error.message}`);
    });
    if (!found) return tried;
    const { given, substitutions } = found;
    this.#redact = redactorOf(this.#deps, variant, substitutions);
    const job = {
      ...{ bytecode: content.bytecode as Bytecode, frame, globals: this.#trial.globals },
      isTransformation: type === 'transformation',
    };
    let step: Step;
    let globals: Globals;
    try {
      const begun: Begun = await this.#deps.runner.begin(
        projectId,
        { ...job, inputs: variant.inputs, given },
        this.#signal,
      );
      step = begun;
      globals = begun.globals;
      for (;;) {
        for (const line of step.printed) this.log.print(line, url);
        tried.captured.push(...step.captured.map((one) => this.#shown(one)));
        tried.steps = step.steps;
        tried.memory = Math.max(tried.memory, step.memory);
        if (step.status !== 'waits') break;
        const result = await this.#answer(step.call, { variant, globals }, tried, substitutions);
        step = await this.#deps.runner.resume(
          projectId,
          { ...job, globals, state: step.state, result, captured: tried.captured.length },
          this.#signal,
        );
      }
    } catch (error) {
      if (!(error instanceof RunnerLimitError)) throw error;
      fail(`Error executing function on event ${uuid}: ${error.message}`);
      return tried;
    }
    if (step.status === 'failed') {
      const what =
        step.where === 'inputs' ? 'Error building inputs for event' : 'Error executing function on event';
      const code = { hog: content.hog, bytecode: job.bytecode };
      fail(`${what} ${uuid}: ${await withPlace(this.#deps.compiler, projectId, code, step)}`);
    } else {
      tried.result = this.#shown(step.result);
      this.log.add(
        'debug',
        completedLine({ total: performance.now() - began, ...step, memory: tried.memory, url }),
      );
    }
    return tried;
  }

  #shown(value: unknown): unknown {
    return this.#room.value(this.#redact.value(value));
  }

  /** Leaves out of a request that no longer fits what may be long. */
  #cut(shown: ShownFetch): ShownFetch {
    const { url, body, response } = shown;
    return {
      ...shown,
      url: this.#room.text(url),
      headers: {},
      body: body && this.#room.text(body),
      response: response && { ...response, body: this.#room.value(response.body) },
    };
  }

  /** Does what a program waits for. */
  async #answer(
    { name, args }: { name: string; args: unknown[] },
    { variant, globals }: { variant: Variant; globals: Globals },
    tried: TriedInvocation,
    substitutions: readonly Substitution[],
  ): Promise<unknown> {
    if (name !== 'fetch') {
      this.log.add(
        'info',
        `${name}(${args.map((one) => JSON.stringify(one)).join(', ')}) does not wait in a test.`,
      );
      return null;
    }
    const { egress, integrations } = this.#deps;
    const { shown, result, failed } = await fetchFor(args, {
      ...{ egress, integrations, substitutions, redact: this.#redact, log: this.log },
      isMocked: this.#trial.isMocked,
      expects: expectedStatuses(variant.schemas, variant.inputs),
      answers: this.#trial.answers ?? [],
      input: (key) => (globals.inputs as Record<string, unknown>)[key],
      integrationId: (key) => idOf(variant.inputs[key]?.value),
      ownHeaders: depthHeader(depthOfGlobals(globals)),
      signal: this.#signal,
    });
    tried.fetches.push(this.#room.value(shown) === shown ? shown : this.#cut(shown));
    if (failed) {
      tried.status = 'error';
      tried.errors.push(
        shown.error ?? `${shown.method} ${shown.url} was answered with ${shown.response?.status}.`,
      );
    }
    return result;
  }
}

const EMPTY = { result: null, errors: [], fetches: [], captured: [], steps: 0, memory: 0 };

const idOf = (value: unknown) => (typeof value === 'number' ? value : undefined);
