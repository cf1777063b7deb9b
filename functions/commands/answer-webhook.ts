import { randomUUID } from 'node:crypto';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { MOST_DEPTH, TOO_DEEP, withLeastDepth } from '../../values/function-depth.ts';
import { IntegrationError, type Integrations, type Substitution } from '../effects.ts';
import type { Entry } from '../journal.ts';
import { openInputs } from '../reads/secrets.ts';
import type { SourceWebhookRow } from '../rows/source-webhooks.ts';
import type { UnstoredInvocation } from '../rows/unstored.ts';
import type { StoredInputs } from '../rules/definition.ts';
import type { Globals } from '../rules/globals.ts';
import { InvocationLog } from '../rules/logs.ts';
import { redactor } from '../rules/redact.ts';
import { costOf, STATE } from '../rules/watcher.ts';
import {
  ACCEPTED,
  answerOf,
  DISABLED,
  FINISHED,
  IN_CIRCLE,
  QUEUED,
  UNHANDLED,
  type WebhookAnswer,
  type WebhookRequest,
} from '../rules/webhook.ts';
import { integrationInputs, type Step } from '../run.ts';
import { type Runner, RunnerLimitError } from '../runner.ts';

/** An event that a program captures. */
export interface AskedEvent {
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
}

/** What a program captures cannot be stored, and never will be. The message says why. */
export class CaptureRefusedError extends Error {
  override readonly name = 'CaptureRefusedError';
}

export interface AnswerWebhookDependencies {
  runner: Pick<Runner, 'begin'>;
  integrations: Integrations;
  keyring: Keyring | undefined;
  /**
   * Stores an event as if a client had sent it. When it resolves, the event is committed. Throws a CaptureRefusedError if
   * the event is at fault.
   */
  capture(webhook: SourceWebhookRow, event: AskedEvent): Promise<void>;
  /** Milliseconds that a request may take. */
  patience?: number;
}

export interface AnsweredWebhook {
  answer: WebhookAnswer;
  entry: Entry;
  /** Tokens that the run takes from the function. */
  cost: number;
  /** What has to be stored before the answer, because workers are to run it. Null: nothing. */
  queued: UnstoredInvocation | null;
}

const PATIENCE = 10_000;
/** Faults of the function, not of the server. */
const OURS = [RunnerLimitError, IntegrationError, CaptureRefusedError];
const TOO_LATE = 'The function waited longer than the request may take and was ended.';

/**
 * Runs a function with a request and returns its answer, and what is to be written down. The events that it captures are
 * committed before. A program that waits for something is left to workers, and so is a function whose runs take long.
 * Throws if the function could not be run and the client should try again.
 */
export async function answerWebhook(
  deps: AnswerWebhookDependencies,
  webhook: SourceWebhookRow,
  request: WebhookRequest,
): Promise<AnsweredWebhook> {
  return new Run(deps, webhook, request).answer();
}

class Run {
  readonly #deps: AnswerWebhookDependencies;
  readonly #webhook: SourceWebhookRow;
  readonly #request: WebhookRequest;
  readonly #instanceId = randomUUID();
  readonly #log: InvocationLog;
  readonly #counts = new Map<string, Entry['counts'][number]>();
  readonly #deadline: AbortSignal;
  readonly #frame = { now: Date.now(), seed: Math.floor(Math.random() * 2 ** 31) };
  #redact = redactor([], {});

  constructor(deps: AnswerWebhookDependencies, webhook: SourceWebhookRow, request: WebhookRequest) {
    this.#deps = deps;
    this.#webhook = webhook;
    this.#request = request;
    this.#deadline = AbortSignal.timeout(deps.patience ?? PATIENCE);
    this.#log = new InvocationLog(Date.now, (text) => this.#redact.text(text));
  }

  async answer(): Promise<AnsweredWebhook> {
    const state = stateNow(this.#webhook);
    if (state >= STATE.disabled) {
      this.#count('failure', state === STATE.disabled ? 'disabled_temporarily' : 'disabled_permanently');
      return this.#answered(DISABLED);
    }
    this.#count('other', 'triggered');
    if (this.#request.depth > MOST_DEPTH) {
      this.#fail(TOO_DEEP);
      return this.#answered(IN_CIRCLE);
    }
    if (state === STATE.degraded) {
      this.#log.add('warn', 'Function scheduled for future execution due to degraded state');
      return this.#answered(ACCEPTED, { isQueued: true });
    }
    const began = performance.now();
    let step: Step | undefined;
    let limited = 0;
    try {
      step = await this.#run();
    } catch (error) {
      if (error instanceof RunnerLimitError) limited = error.milliseconds;
      const isOurs = OURS.some((one) => error instanceof one);
      if (!isOurs && !this.#deadline.aborted) throw error;
      this.#fail(isOurs ? (error as Error).message : TOO_LATE);
    }
    const cost = costOf(step?.milliseconds ?? limited, []);
    // Workers begin it again from the start, with the same clock and the same random numbers.
    if (step?.status === 'waits') return this.#answered(QUEUED, { cost, isQueued: true });
    for (const line of step?.printed ?? []) this.#log.print(line, this.#instanceId);
    if (step?.status === 'failed')
      this.#fail(step.error, step.where === 'inputs' ? 'inputs_failed' : 'failed');
    const isFinished = step?.status === 'finished';
    const answer = isFinished ? this.#finished(step as Finished, performance.now() - began) : UNHANDLED;
    return this.#answered(answer, { cost });
  }

  #answered(
    answer: WebhookAnswer,
    { cost = 0, isQueued = false }: { cost?: number; isQueued?: boolean } = {},
  ): AnsweredWebhook {
    const { project_id: projectId, id: functionId, version } = this.#webhook;
    const { now: clock, seed } = this.#frame;
    return {
      ...{ answer, cost },
      entry: {
        ...{ projectId, functionId, instanceId: this.#instanceId },
        ...{ logs: this.#log.entries, counts: [...this.#counts.values()] },
      },
      queued: isQueued
        ? {
            ...{ id: this.#instanceId, projectId, functionId, version, distinctId: null },
            ...{ globals: this.#globals(), clock, seed },
          }
        : null,
    };
  }

  #count(kind: Entry['counts'][number]['kind'], name: string): void {
    this.#counts.set(name, { kind, name, count: (this.#counts.get(name)?.count ?? 0) + 1 });
  }

  #fail(message: string, name = 'failed'): void {
    this.#log.add('error', `Error executing function: ${message}`);
    this.#count('failure', name);
  }

  #finished(step: Finished, total: number): WebhookAnswer {
    let answer: WebhookAnswer | undefined;
    try {
      answer = answerOf(step.result);
    } catch (error) {
      // A value that contains itself, for example.
      this.#fail(`The answer cannot be written as JSON: ${(error as Error).message}`);
      return UNHANDLED;
    }
    const rounded = (milliseconds: number) => Number(milliseconds.toPrecision(2));
    this.#count('success', 'succeeded');
    this.#log.add(
      'debug',
      `Function completed in ${rounded(total)}ms. Sync: ${rounded(step.milliseconds)}ms. ` +
        `Mem: ${rounded(step.memory / 1024)}kb. Ops: ${step.steps}.`,
    );
    if (!answer) return FINISHED;
    const line = `Responded with response status - ${answer.status}`;
    if (answer.status < 400) this.#log.add('info', line);
    else this.#log.add('warn', `${line}, reason: ${answer.body.toString('utf8')}`);
    return answer;
  }

  async #run(): Promise<Step> {
    const { runner, integrations, keyring } = this.#deps;
    const { project_id: projectId, inputs: shown, bytecode } = this.#webhook;
    const { inputs: secret } = openInputs(keyring, this.#webhook);
    const inputs = { ...shown, ...secret };
    const { given, substitutions } = await this.#integrationsOf(inputs);
    const valuesOf = (some: StoredInputs) =>
      Object.entries(some).map(([key, { value }]) => [key, value] as const);
    this.#redact = redactor(
      [valuesOf(secret).map(([, value]) => value), integrations.secretValues(substitutions)],
      Object.fromEntries(valuesOf(inputs)),
    );
    const step = await runner.begin(
      projectId,
      {
        ...{ bytecode: bytecode as Bytecode, isTransformation: false, frame: this.#frame },
        ...{ inputs, given, globals: this.#globals() },
      },
      this.#deadline,
    );
    if (step.status !== 'waits') await this.#capture(step.captured);
    return step;
  }

  #globals(): Globals {
    const { project_id: id, id: functionId, name } = this.#webhook;
    return {
      project: { id, name: '', url: '' },
      source: { name: name ?? '', url: `/project/${id}/functions/${functionId}` },
      event: {
        ...{ uuid: this.#instanceId, event: '$incoming_webhook', distinct_id: '' },
        properties: withLeastDepth({}, this.#request.depth),
        ...{ timestamp: new Date(this.#frame.now).toISOString(), elements_chain: '', url: '' },
      },
      request: this.#request.seen,
      groups: {},
      variables: {},
    };
  }

  async #integrationsOf(inputs: StoredInputs) {
    const given: Record<string, unknown> = {};
    const substitutions: Substitution[] = [];
    const { project_id: projectId, inputs_schema: schemas } = this.#webhook;
    for (const { key } of integrationInputs(schemas)) {
      const id = inputs[key]?.value;
      if (typeof id !== 'number') continue;
      const asked = { seed: this.#instanceId, isMocked: false };
      const found = await this.#deps.integrations.resolve(projectId, id, asked);
      given[key] = found?.inputs ?? null;
      if (found) substitutions.push(found.substitution);
    }
    return { given, substitutions };
  }

  /** Stores what the program captured. A program without a distinct_id of its own names nobody. */
  async #capture(events: readonly unknown[]): Promise<void> {
    for (const one of events as {
      event: unknown;
      distinct_id?: unknown;
      properties: Record<string, unknown>;
    }[]) {
      const { event, distinct_id: distinctId = '', properties } = one;
      await this.#deps.capture(this.#webhook, {
        ...{ event: String(event), distinct_id: String(distinctId), properties },
      });
    }
  }
}

type Finished = Step & { status: 'finished' };

/** The state of a function as it is now. One that was disabled for a while is on probation afterwards. */
function stateNow({ state, disabled_until: until }: SourceWebhookRow): number {
  const isOver = state === STATE.disabled && until !== null && Date.parse(until) <= Date.now();
  return isOver ? STATE.degraded : state;
}
