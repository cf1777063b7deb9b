import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Egress } from '../../egress/egress.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { fetchFor, IntegrationError, type Integrations, type Substitution } from '../effects.ts';
import type { Entry } from '../journal.ts';
import { openInputs } from '../reads/secrets.ts';
import type { SourceWebhookRow } from '../rows/source-webhooks.ts';
import type { StoredInputs } from '../rules/definition.ts';
import type { Globals } from '../rules/globals.ts';
import { InvocationLog } from '../rules/logs.ts';
import { redactor } from '../rules/redact.ts';
import { expectedStatuses } from '../rules/statuses.ts';
import { answerOf, FINISHED, type SeenRequest, UNHANDLED, type WebhookAnswer } from '../rules/webhook.ts';
import { type Begun, integrationInputs, type Step } from '../run.ts';
import { type Runner, RunnerBusyError, RunnerLimitError } from '../runner.ts';

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
  runner: Pick<Runner, 'begin' | 'resume'>;
  egress: Pick<Egress, 'fetch'>;
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
}

const PATIENCE = 10_000;
const BUSY_PAUSE = 50;
/** Faults of the function, not of the server. */
const OURS = [RunnerLimitError, IntegrationError, CaptureRefusedError];
const TOO_LATE = 'The function waited longer than the request may take and was ended.';

/**
 * Runs a function with a request and returns its answer, and what is to be written down. The events that it captures are
 * committed before. Throws if the function could not be run and the client should try again.
 */
export async function answerWebhook(
  deps: AnswerWebhookDependencies,
  webhook: SourceWebhookRow,
  request: SeenRequest,
): Promise<AnsweredWebhook> {
  return new Run(deps, webhook, request).answer();
}

class Run {
  readonly #deps: AnswerWebhookDependencies;
  readonly #webhook: SourceWebhookRow;
  readonly #request: SeenRequest;
  readonly #instanceId = randomUUID();
  readonly #log: InvocationLog;
  readonly #counts = new Map<string, Entry['counts'][number]>();
  readonly #deadline: AbortSignal;
  #redact = redactor([], {});
  #captured = 0;

  constructor(deps: AnswerWebhookDependencies, webhook: SourceWebhookRow, request: SeenRequest) {
    this.#deps = deps;
    this.#webhook = webhook;
    this.#request = request;
    this.#deadline = AbortSignal.timeout(deps.patience ?? PATIENCE);
    this.#log = new InvocationLog(Date.now, (text) => this.#redact.text(text));
  }

  async answer(): Promise<AnsweredWebhook> {
    const began = performance.now();
    let step: Step | undefined;
    try {
      step = await this.#run();
    } catch (error) {
      const isOurs = OURS.some((one) => error instanceof one);
      if (!isOurs && !this.#deadline.aborted) throw error;
      this.#fail(isOurs ? (error as Error).message : TOO_LATE);
    }
    if (step?.status === 'failed')
      this.#fail(step.error, step.where === 'inputs' ? 'inputs_failed' : 'failed');
    const answer = step?.status === 'finished' ? this.#finished(step, performance.now() - began) : UNHANDLED;
    const { project_id: projectId, id: functionId } = this.#webhook;
    return {
      answer,
      entry: {
        ...{ projectId, functionId, instanceId: this.#instanceId },
        ...{ logs: this.#log.entries, counts: [...this.#counts.values()] },
      },
    };
  }

  #count(kind: Entry['counts'][number]['kind'], name: string): void {
    this.#counts.set(name, { kind, name, count: (this.#counts.get(name)?.count ?? 0) + 1 });
  }

  #fail(message: string, name = 'failed'): void {
    this.#log.add('error', `Error executing function: ${message}`);
    this.#count('failure', name);
  }

  #finished(step: Step & { status: 'finished' }, total: number): WebhookAnswer {
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
    const { project_id: projectId, inputs: shown, inputs_schema: schemas, bytecode } = this.#webhook;
    const { inputs: secret } = openInputs(keyring, this.#webhook);
    const inputs = { ...shown, ...secret };
    const { given, substitutions } = await this.#integrationsOf(inputs);
    const valuesOf = (some: StoredInputs) =>
      Object.entries(some).map(([key, { value }]) => [key, value] as const);
    this.#redact = redactor(
      [valuesOf(secret).map(([, value]) => value), integrations.secretValues(substitutions)],
      Object.fromEntries(valuesOf(inputs)),
    );
    const now = Date.now();
    const job = {
      ...{ bytecode: bytecode as Bytecode, isTransformation: false },
      frame: { now, seed: Math.floor(Math.random() * 2 ** 32) },
    };
    this.#count('other', 'triggered');
    const begun: Begun = await runner.begin(
      projectId,
      { ...job, inputs, given, globals: this.#globals(now) },
      this.#deadline,
    );
    const { globals } = begun;
    let step: Step = begun;
    for (;;) {
      for (const line of step.printed) this.#log.print(line, String(this.#instanceId));
      await this.#capture(step.captured);
      if (step.status !== 'waits') return step;
      const context = { globals, substitutions, expects: expectedStatuses(schemas, inputs), inputs };
      const result = await this.#awaitInline(step.call, context);
      step = await this.#resume({ ...job, globals, state: step.state, result, captured: this.#captured });
    }
  }

  /**
   * Goes on with a run. Where no thread is free it waits for one: a refusal would make the client send again what has
   * taken effect already.
   */
  async #resume(job: Parameters<Runner['resume']>[1]): Promise<Step> {
    for (;;) {
      try {
        return await this.#deps.runner.resume(this.#webhook.project_id, job, this.#deadline);
      } catch (error) {
        if (!(error instanceof RunnerBusyError)) throw error;
        await pause(BUSY_PAUSE, undefined, { signal: this.#deadline });
      }
    }
  }

  #globals(now: number): Globals {
    const { project_id: id, id: functionId, name } = this.#webhook;
    return {
      project: { id, name: '', url: '' },
      source: { name: name ?? '', url: `/project/${id}/functions/${functionId}` },
      event: {
        ...{ uuid: this.#instanceId, event: '$incoming_webhook', distinct_id: '', properties: {} },
        ...{ timestamp: new Date(now).toISOString(), elements_chain: '', url: '' },
      },
      request: this.#request,
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
      this.#captured += 1;
      const { event, distinct_id: distinctId = '', properties } = one;
      await this.#deps.capture(this.#webhook, {
        ...{ event: String(event), distinct_id: String(distinctId), properties },
      });
    }
  }

  /**
   * Does what a paused run waits for, within the request. Runs that are paused would be handed over to a queue here, and
   * the request answered with 201 and `queued`. There is no such queue: the client waits, and a run that would take
   * longer than a request may is ended.
   */
  async #awaitInline(
    { name, args }: { name: string; args: unknown[] },
    context: Pick<Parameters<typeof fetchFor>[1], 'substitutions' | 'expects'> & {
      globals: Globals;
      inputs: StoredInputs;
    },
  ): Promise<unknown> {
    if (name !== 'fetch') {
      const seconds = Number(args[0]);
      await pause(Math.min(Math.max(0, seconds || 0) * 1000, 2 ** 31 - 1), undefined, {
        signal: this.#deadline,
      });
      return null;
    }
    const { egress, integrations } = this.#deps;
    const { globals, inputs, ...own } = context;
    const { result } = await fetchFor(args, {
      ...{ egress, integrations, redact: this.#redact, log: this.#log, isMocked: false, answers: [] },
      ...own,
      input: (key) => (globals.inputs as Record<string, unknown>)[key],
      integrationId: (key) => {
        const value = inputs[key]?.value;
        return typeof value === 'number' ? value : undefined;
      },
      signal: this.#deadline,
    });
    this.#count('other', 'fetch');
    return result;
  }
}
