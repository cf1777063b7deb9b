import { createHash } from 'node:crypto';
import type { Egress } from '../../egress/egress.ts';
import { egressRefusal } from '../../egress/egress-refused.ts';
import { depthHeader } from '../../values/function-depth.ts';
import type { FunctionCompiler } from '../compiler.ts';
import {
  type Fetched,
  type FetchFailure,
  fetchFor,
  IntegrationError,
  type Integrations,
  NotNowError,
  type ShownFetch,
  type Substitution,
} from '../effects.ts';
import { withPlace } from '../failure-place.ts';
import { completedLine, integrationsOf, redactorOf } from '../invocation.ts';
import { type Count, Counts } from '../rows/counts.ts';
import type { QueueRow } from '../rows/queue.ts';
import { depthOfGlobals } from '../rules/depth.ts';
import type { Frame } from '../rules/frame.ts';
import { type Globals, seenBy } from '../rules/globals.ts';
import { InvocationLog, type LogEntry } from '../rules/logs.ts';
import { microsecondsOf } from '../rules/microseconds.ts';
import { type AttemptRecord, NO_PROGRESS, type Progress } from '../rules/progress.ts';
import { redactor } from '../rules/redact.ts';
import { isTemporary, nextAttempt } from '../rules/retries.ts';
import { globalsOfStored, readTogether, type StoredEvent } from '../rules/stored-event.ts';
import type { Variant } from '../rules/variants.ts';
import { costOf } from '../rules/watcher.ts';
import type { ItemStep, StepItem } from '../run.ts';
import { isNoStep, RunnerLimitError } from '../runner.ts';
import type { Compute } from './compute.ts';
import type { Runnable } from './contents.ts';
import type { Hosts, Leave } from './hosts.ts';
import type { LargeAnswers, Place } from './large-answers.ts';

/** An event that a program asks to capture. */
export interface FunctionEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  properties: Record<string, unknown>;
}

export interface DeliveryDependencies {
  compute: Compute;
  /** Finds the places of errors. */
  compiler: FunctionCompiler;
  egress: Pick<Egress, 'fetch'>;
  integrations: Integrations;
  hosts: Hosts;
  largeAnswers: LargeAnswers;
  /** Notes that an invocation takes so many bytes more of memory. False: its project has too much in memory already. */
  hold(bytes: number): boolean;
  /** Stores events of programs. The same event is stored once. */
  capture(projectId: number, events: readonly FunctionEvent[]): Promise<void>;
  /** Stores how far an invocation is. Returns false if it belongs to somebody else by now. */
  keep(row: QueueRow, progress: Progress): Promise<boolean>;
  /** Makes sure that it is ours until a request has ended that begins now. Returns false if it may belong to somebody else. */
  secure(): Promise<boolean>;
}

/** What an attempt at an invocation came to. */
export interface Outcome {
  /** `lost`: it belongs to somebody else by now, and nothing of it counts. */
  status: 'succeeded' | 'failed' | 'cancelled' | 'postponed' | 'lost';
  error: string | null;
  attempts: AttemptRecord[];
  /** Of a postponed one: in how many milliseconds it is due. */
  after: number;
  attempt: number;
  progress: Progress | null;
  logs: LogEntry[];
  counts: Count[];
  /** Tokens that it takes from its function. */
  cost: number;
}

/** What undici says of a request that it does not send, whoever it is for: of a header, or of a length that is not that of the body. */
const UNSENDABLE = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
]);

/** Answers whether a request that got no answer would get none the next time either: it was refused before it was sent. */
const isFinal = (error: Error): boolean =>
  egressRefusal(error) !== undefined ||
  error instanceof IntegrationError ||
  error.name === 'SubstitutionError' ||
  error instanceof TypeError ||
  error instanceof RangeError ||
  UNSENDABLE.has((error as { code?: string }).code ?? '');

/** What a paused program takes is noted from so many bytes on. */
const NOTED = 256 * 1024;
/** When a program begins anew for which there was no room, in milliseconds. */
const AFTER_FULL = 2_000;
const SHOWN = 2_048;
const FAULT = 'The invocation could not be run, by a fault of Sluice. The log of the worker says which.';
const LONGEST_DELAY = 30 * 86_400_000;

const shortened = (text: string | null): string | null =>
  text !== null && text.length > SHOWN ? text.slice(0, SHOWN).toWellFormed() : text;

/** Globals that somebody else has made may have anything in this place. */
const isInstant = (value: unknown): value is string =>
  typeof value === 'string' && /^[\d:.TZ+-]+$/.test(value);

const textOf = (body: unknown): string => (typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));

/** What a program sees of one event of a batch. */
function itemOf(stored: StoredEvent, { facts, type }: Runnable): Globals {
  const { event, person = null, groups } = globalsOfStored(stored, facts, type);
  return { event, person, groups };
}

/** The uuid of an event that an invocation captures: the same whenever it runs again. */
export function capturedUuid(invocation: string, ordinal: number): string {
  const hex = createHash('sha256').update(`${invocation}:${ordinal}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** Runs an invocation as far as it comes now. */
export class Delivery {
  readonly #deps: DeliveryDependencies;
  readonly #row: QueueRow;
  readonly #runnable: Runnable;
  readonly #variant: Variant;
  readonly #globals: Globals;
  /** Of the events and the answers so far, in bytes. What is not stored may be large. */
  #bytes: number;
  readonly #frame: Frame;
  readonly #counts = new Counts();
  readonly #log: InvocationLog;
  readonly #progress: Progress;
  #redact = redactor([], {});
  #captured: unknown[] = [];
  /** Where its large answers are. */
  #place: Place | undefined;
  /** For how many bytes of the paused program room is held. */
  #paused = 0;
  /** What it has taken so far, in milliseconds: its program, and each of its requests. */
  #program = 0;
  readonly #requests: number[] = [];

  /** For how many invocations this stands. */
  readonly #size: number;

  /** `items`: the events of a batch. */
  constructor(
    deps: DeliveryDependencies,
    row: QueueRow,
    runnable: Runnable,
    event: StoredEvent | null,
    items?: readonly StoredEvent[],
  ) {
    this.#deps = deps;
    this.#row = row;
    this.#runnable = runnable;
    this.#variant = runnable.variants[row.mapping ?? 0] as Variant;
    const isNew = event !== null && row.progress === null;
    const bytesOf = (one: StoredEvent) => one.properties.length + one.person_properties.length;
    const seen = items ?? (event === null ? [] : [event]);
    this.#bytes = isNew ? seen.reduce((sum, one) => sum + bytesOf(one), 0) : Number.POSITIVE_INFINITY;
    const groups = (row.groups ?? null) as StoredEvent['groups'];
    this.#size = 1 + (row.others?.length ?? 0);
    const globals = event
      ? globalsOfStored({ ...event, groups }, runnable.facts, runnable.type, readTogether(event))
      : seenBy(runnable.type, row.globals as Globals);
    this.#globals = items ? { ...globals, items: items.map((one) => itemOf(one, runnable)) } : globals;
    this.#frame = { now: Date.parse(row.clock), seed: row.seed };
    this.#log = new InvocationLog(Date.now, (text) => this.#redact.text(text));
    const { answers, attempts, ...more } = row.progress ?? NO_PROGRESS;
    this.#progress = { ...more, answers: [...answers], attempts: [...attempts] };
  }

  async run(): Promise<Outcome> {
    try {
      return await this.#run();
    } finally {
      this.#place?.leave();
    }
  }

  async #run(): Promise<Outcome> {
    const { project_id: projectId, id } = this.#row;
    const uuid = this.#event.uuid;
    if (!this.#variant) return this.#fail('failed', 'The mapping of the invocation is gone.');
    let found: Awaited<ReturnType<typeof integrationsOf>>;
    try {
      found = await integrationsOf(this.#deps, this.#variant, { projectId, seed: id, isMocked: false });
    } catch (error) {
      if (!(error instanceof IntegrationError)) throw error;
      return this.#withoutIntegration(error);
    }
    this.#redact = redactorOf(this.#deps, this.#variant, found.substitutions);
    const began = performance.now();
    const item: StepItem = {
      ...{ globals: this.#globals, frame: this.#frame, given: found.given },
      answers: this.#progress.answers,
    };
    let step: ItemStep;
    let memory = 0;
    let skipped = this.#progress.printed;
    try {
      step = await this.#step(item);
      for (;;) {
        for (const line of step.printed) {
          if (skipped > 0) skipped -= 1;
          else {
            this.#log.print(line, this.#event.url);
            this.#progress.printed += 1;
          }
        }
        this.#captured.push(...step.captured);
        memory = Math.max(memory, step.memory);
        this.#program = step.milliseconds;
        if (step.status !== 'waits') break;
        const more = step.memory > NOTED ? Math.max(0, step.memory - this.#paused) : 0;
        if (more > 0 && !this.#deps.hold(more)) return this.#later();
        this.#paused += more;
        const answer = await this.#answer(step, found.substitutions);
        if ('status' in answer && 'logs' in answer) return answer;
        const { state } = step;
        step = await this.#step({
          ...item,
          answers: [],
          paused: { state, result: answer.result, captured: this.#captured.length, inputs: step.inputs },
        });
      }
    } catch (error) {
      if (!isNoStep(error)) throw error;
      if (error instanceof RunnerLimitError) this.#program += error.milliseconds;
      return this.#fail('failed', `Error executing function on event ${uuid}: ${error.message}`);
    }
    if (step.status === 'failed') {
      const isInput = step.where === 'inputs';
      const what = isInput ? 'Error building inputs for event' : 'Error executing function on event';
      const reason = await withPlace(this.#deps.compiler, projectId, this.#runnable, step);
      return this.#fail(isInput ? 'inputs_failed' : 'failed', `${what} ${uuid}: ${reason}`);
    }
    await this.#capture();
    const total = performance.now() - began;
    this.#log.add('debug', completedLine({ total, ...step, memory, url: this.#event.url }));
    if (!this.#progress.failed) {
      this.#counts.add(projectId, this.#runnable.id, 'success', 'succeeded', this.#size);
      return this.#outcome({ status: 'succeeded' });
    }
    this.#counts.add(projectId, this.#runnable.id, 'failure', 'failed', this.#size);
    const last = this.#progress.attempts.findLast((one) => one.error !== null || (one.status ?? 0) >= 400);
    const error = last?.error ?? `${last?.method} ${last?.url} was answered with ${last?.status}.`;
    return this.#outcome({ status: 'failed', error });
  }

  /** Ends here until its project has less in memory. The program begins anew then, with the answers that it has had. */
  #later(): Outcome {
    const { attempt } = this.#row;
    const after = AFTER_FULL * (1 + Math.random());
    return this.#outcome({ status: 'postponed', after, attempt, progress: this.#progress });
  }

  /** An error of ours has ended it. What the program has had is not asked for again. */
  afterFault(): Outcome {
    const attempt = this.#row.attempt + 1;
    const age = Date.now() - Date.parse(this.#row.created_at);
    // How often a request may be made is no limit for what is no fault of the function.
    const { max_attempts: _, ...retry } = this.#runnable.delivery?.retry ?? {};
    const after = nextAttempt({ attempt, age, retryAfter: null, random: Math.random() }, retry);
    if (after === null) return this.#fail('failed', FAULT);
    this.#log.add('error', `${FAULT} Retrying.`);
    return this.#outcome({ status: 'postponed', after, attempt, progress: this.#progress });
  }

  /** Waits for an integration that may be usable later, or gives up. */
  #withoutIntegration({ message, isTemporary }: IntegrationError): Outcome {
    const text = `Error building inputs for event ${this.#event.uuid}: ${message}`;
    const attempt = this.#row.attempt + 1;
    const failure = { status: null, error: null, retryAfter: null };
    const after = isTemporary ? this.#delayAfter(failure, attempt) : null;
    if (after === null) return this.#fail('inputs_failed', text);
    this.#log.add('error', `${text} Retrying.`);
    return this.#outcome({ status: 'postponed', after, attempt, progress: this.#row.progress });
  }

  get #event() {
    return this.#globals.event as { uuid: string; url: string; distinct_id: string; timestamp: unknown };
  }

  #step(item: StepItem): Promise<ItemStep> {
    const { project_id: projectId, version, mapping } = this.#row;
    const key = `${this.#runnable.id}:${version}:${mapping}`;
    const given = { item, size: this.#bytes + this.#paused };
    return this.#deps.compute.step(projectId, key, this.#runnable, this.#variant.inputs, given);
  }

  /** Does what the program waits for. Returns what it gets, or the outcome if the invocation ends or waits here. */
  async #answer(
    step: ItemStep & { status: 'waits' },
    substitutions: readonly Substitution[],
  ): Promise<{ result: unknown } | Outcome> {
    const { name, args } = step.call;
    const { answers } = this.#progress;
    if (name === 'sleep') {
      const milliseconds = Math.min(Math.max(0, Number(args[0]) * 1_000 || 0), LONGEST_DELAY);
      answers.push(null);
      return this.#outcome({ status: 'postponed', after: milliseconds, progress: this.#progress });
    }
    // A crash during this request must not repeat those before it.
    if (answers.length > (this.#row.progress?.answers.length ?? 0)) {
      if (!(await this.#deps.keep(this.#row, this.#progress))) return this.#outcome({ status: 'lost' });
      this.#row.progress = { ...this.#progress, answers: [...answers] };
      this.#row.attempt = 0;
    }
    if (!(await this.#deps.secure())) return this.#outcome({ status: 'lost' });
    const attempt = this.#row.attempt + 1;
    let after: number | null = null;
    let fetched: Fetched;
    try {
      fetched = await this.#fetch(args, step.inputs, substitutions, attempt, (failure) => {
        after = this.#delayAfter(failure, attempt);
        return after;
      });
    } catch (error) {
      if (!(error instanceof NotNowError)) throw error;
      return this.#outcome({
        ...{ status: 'postponed', attempt: this.#row.attempt, progress: this.#progress },
        after: error.milliseconds * (1 + Math.random()),
      });
    }
    const { shown, result, failed, repeat } = fetched;
    this.#bytes += fetched.size;
    this.#requests.push(shown.duration_ms);
    this.#progress.attempts.push(this.#record(shown, attempt, failed || repeat !== null));
    if (repeat && after !== null) {
      return this.#outcome({ status: 'postponed', after, attempt, progress: this.#progress });
    }
    this.#counts.add(this.#row.project_id, this.#runnable.id, 'other', 'fetch');
    if (failed) this.#progress.failed = true;
    answers.push(result);
    return { result };
  }

  /** In how many milliseconds a failed attempt is repeated. Null: it is not. */
  #delayAfter({ status, error, retryAfter }: FetchFailure, attempt: number): number | null {
    const { retry } = this.#runnable.delivery ?? {};
    if ((error && isFinal(error)) || !isTemporary(status, retry)) return null;
    const age = Date.now() - Date.parse(this.#row.created_at);
    return nextAttempt({ attempt, age, retryAfter, random: Math.random() }, retry);
  }

  /** What each request says about itself, unless the program says something else. */
  get #headers(): Record<string, string> {
    const { id, batch, created_at: queuedAt } = this.#row;
    const { timestamp } = this.#event;
    return {
      'Idempotency-Key': `${batch ?? id}-${this.#progress.answers.length}`,
      // A number of the queue itself would tell receivers how much others send.
      'Sluice-Sequence': String(microsecondsOf(queuedAt)),
      ...(isInstant(timestamp) ? { 'Sluice-Event-Time': timestamp } : {}),
    };
  }

  async #fetch(
    args: readonly unknown[],
    inputs: unknown,
    substitutions: readonly Substitution[],
    attempt: number,
    repeats: (failure: FetchFailure) => number | null,
  ): Promise<Fetched> {
    const { egress, integrations, hosts } = this.#deps;
    const entered: { leave?: Leave } = {};
    let answered: boolean | null = false;
    try {
      const fetched = await fetchFor(args, {
        ...{ egress, integrations, substitutions, redact: this.#redact, log: this.#log, attempt },
        ...{ isMocked: false, answers: [] },
        repeats: (failure) => {
          if (failure.error && isFinal(failure.error)) answered = null;
          return repeats(failure);
        },
        expects: this.#runnable.expects[this.#row.mapping ?? 0] ?? (() => false),
        input: (key) => (inputs as Record<string, unknown>)[key],
        integrationId: (key) => {
          const value = this.#variant.inputs[key]?.value;
          return typeof value === 'number' ? value : undefined;
        },
        headers: this.#headers,
        ownHeaders: depthHeader(depthOfGlobals(this.#globals)),
        enter: async (host) => {
          // What one project asks of a host does not count against another one.
          entered.leave = hosts.enter(`${this.#row.project_id} ${host}`, host);
        },
        admit: () => {
          if (this.#place) return undefined;
          this.#place = this.#deps.largeAnswers.enter(this.#row.project_id);
          return this.#place.granted;
        },
      });
      if (fetched.shown.response !== null) answered = true;
      return fetched;
    } finally {
      entered.leave?.(answered);
    }
  }

  #record(
    { url, method, body, response, error, duration_ms }: ShownFetch,
    attempt: number,
    isWhole: boolean,
  ): AttemptRecord {
    return {
      ...{
        step: this.#progress.answers.length,
        attempt,
        at: new Date().toISOString(),
        duration_ms,
        method,
        url,
      },
      request_body: isWhole ? shortened(body) : null,
      status: response?.status ?? null,
      response_body: isWhole && response ? shortened(textOf(response.body)) : null,
      error,
    };
  }

  async #capture(): Promise<void> {
    const events = this.#captured
      .map((one, index) => ({
        ...(one as Omit<FunctionEvent, 'uuid'>),
        uuid: capturedUuid(this.#row.batch ?? this.#row.id, index),
      }))
      .filter(({ distinct_id: id }) => {
        if (id) return true;
        this.#log.add('warn', 'An event was not captured: it has no distinct_id.');
        return false;
      });
    if (events.length === 0) return;
    await this.#deps.capture(this.#row.project_id, events);
  }

  #fail(name: 'failed' | 'inputs_failed', message: string): Outcome {
    this.#log.add('error', message);
    this.#counts.add(this.#row.project_id, this.#runnable.id, 'failure', name, this.#size);
    return this.#outcome({ status: 'failed', error: this.#redact.text(message) });
  }

  #outcome(given: Partial<Outcome> & Pick<Outcome, 'status'>): Outcome {
    return {
      ...{ error: null, after: 0, attempt: 0, progress: null, attempts: this.#progress.attempts },
      ...{ logs: this.#log.entries, counts: this.#counts.all },
      cost: costOf(this.#program, this.#requests),
      ...given,
    };
  }
}
