// The API of an installation, as commands use it that run elsewhere: in a checkout, or in somebody's CI.
import type { InputSchema } from '../../functions/rules/definition.ts';
import type { OnError } from '../../functions/rules/on-error.ts';
import type { FunctionTypeName } from '../../functions/rules/types.ts';
import { type Access, askProject } from '../access.ts';
import { CommandError, UsageError } from '../context.ts';

/** A function as the API shows it. */
export interface RemoteFunction {
  id: string;
  type: FunctionTypeName;
  name: string | null;
  description: string;
  enabled: boolean;
  hog: string;
  filters: Record<string, unknown>;
  inputs_schema: InputSchema[];
  inputs: Record<string, Record<string, unknown>>;
  mappings: Record<string, unknown>[] | null;
  masking: Record<string, unknown> | null;
  icon_url: string | null;
  template_id: string | null;
  execution_order: number | null;
  on_error: OnError | null;
  updated_at: string;
}

/** A replay or broadcast as the API shows it. */
export interface RemoteReplay {
  id: string;
  kind: 'replay' | 'broadcast' | 'rerun';
  dry_run: boolean;
  status: 'running' | 'paused' | 'completed' | 'cancelled' | 'failed';
  reason: string | null;
  held: string | null;
  total: number | null;
  scanned: number;
  matched: number;
  queued: number;
}

/** An invocation that has ended, as the API shows it. */
export interface RemoteInvocation {
  id: string;
  status: string;
  event_id: string | null;
  distinct_id: string | null;
  error: string | null;
  attempts: { status: number | null }[];
  finished_at: string | null;
}

/** Which invocations are meant. */
export interface Chosen {
  invocation_ids?: string[];
  after?: string;
  before?: string;
  search?: string;
}

interface SettledAnswer {
  dismissed_count?: number;
  cancelled_count?: number;
  has_more: boolean;
  looked_at_before: string | null;
}

const PAGE = 1_000;
const TRIES = 5;

/** The functions of one project. No error contains the key. */
export class Remote {
  readonly #access: Access;

  constructor(access: Access) {
    this.#access = access;
  }

  /** All functions of the project, in the order of their creation. */
  async all(): Promise<RemoteFunction[]> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const found = new Map<string, RemoteFunction>();
      let count: number;
      for (let offset = 0; ; ) {
        const query = `?full=true&limit=${PAGE}&offset=${offset}`;
        const page = (await this.#ask('GET', query)) as { count: number; results: RemoteFunction[] };
        for (const one of page.results) found.set(one.id, one);
        offset += page.results.length;
        count = page.count;
        if (page.results.length === 0 || offset >= count) break;
      }
      // Ids begin with the time of creation.
      if (found.size === count) return [...found.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
      // A change between two pages has moved a function from one to the other.
    }
    throw new CommandError('The functions of the project change too often at the moment. Try again.');
  }

  /** Checks a function, stored or not. Throws a RemoteRefusal that says what is wrong. */
  async check(id: string | undefined, payload: object): Promise<string[]> {
    const answer = await this.#ask('POST', `${id ?? 'new'}/check/`, payload);
    return (answer as { warnings: string[] }).warnings;
  }

  create(payload: object): Promise<RemoteFunction> {
    return this.#ask('POST', '', payload) as Promise<RemoteFunction>;
  }

  /** Changes a function. `base` is its `updated_at` on which the change is based. */
  change(id: string, payload: object, base: string | undefined): Promise<RemoteFunction> {
    const change = base === undefined ? payload : { ...payload, base_updated_at: base };
    return this.#ask('PATCH', `${id}/`, change) as Promise<RemoteFunction>;
  }

  /** Runs a function once and stores nothing. */
  run(id: string | undefined, body: object): Promise<unknown> {
    return this.#ask('POST', `${id ?? 'new'}/invocations/`, body);
  }

  beginReplay(id: string, body: object): Promise<RemoteReplay> {
    return this.#ask('POST', `${segment(id)}/replay/`, body) as Promise<RemoteReplay>;
  }

  async beginBroadcast(id: string, body: object): Promise<RemoteReplay> {
    const answer = await this.#ask('POST', `${segment(id)}/broadcast/`, body);
    return (answer as { broadcast: RemoteReplay }).broadcast;
  }

  /** The newest replays and broadcasts of a function. */
  async replays(id: string): Promise<RemoteReplay[]> {
    return ((await this.#ask('GET', `${segment(id)}/replays/`)) as { results: RemoteReplay[] }).results;
  }

  replay(id: string, replay: string): Promise<RemoteReplay> {
    return this.#ask('GET', `${segment(id)}/replays/${segment(replay)}/`) as Promise<RemoteReplay>;
  }

  steerReplay(id: string, replay: string, step: 'pause' | 'resume' | 'cancel'): Promise<RemoteReplay> {
    return this.#ask('POST', `${segment(id)}/replays/${segment(replay)}/${step}/`) as Promise<RemoteReplay>;
  }

  /** Runs ended invocations again. `rerun`: what goes on with a range of time. */
  rerun(
    id: string,
    body: object,
  ): Promise<{ queued_count: number; skipped_count: number; rerun: RemoteReplay | null }> {
    return this.#ask('POST', `${segment(id)}/rerun/`, body) as ReturnType<Remote['rerun']>;
  }

  /** Lists failed invocations that nobody has done anything about, newest first. */
  async deadLetters(id: string, query: Record<string, string>): Promise<RemoteInvocation[]> {
    const asked = new URLSearchParams({ limit: '50', ...query, open: 'true' });
    const limit = Number(asked.get('limit'));
    const found: RemoteInvocation[] = [];
    // A page of a search may be empty and still be followed by others.
    for (;;) {
      const answer = await this.#ask('GET', `${segment(id)}/invocations/?${asked}`);
      const { results, next } = answer as { results: RemoteInvocation[]; next: string | null };
      found.push(...results);
      if (next === null || found.length >= limit) return found.slice(0, limit);
      asked.set('cursor', new URL(next).searchParams.get('cursor') as string);
    }
  }

  /** Settles invocations until none of the chosen ones is left. Returns how many. */
  async settle(id: string, what: 'dismiss' | 'cancel', chosen: Chosen): Promise<number> {
    let count = 0;
    for (let left = chosen; ; ) {
      const answer = await this.#ask('POST', `${segment(id)}/invocations/${what}/`, left);
      const { dismissed_count, cancelled_count, has_more, looked_at_before } = answer as SettledAnswer;
      count += dismissed_count ?? cancelled_count ?? 0;
      if (!has_more) return count;
      if (looked_at_before) left = { ...left, after: looked_at_before };
    }
  }

  #ask(method: string, path: string, body?: object): Promise<unknown> {
    return askProject(this.#access, method, `hog_functions/${path}`, body);
  }
}

/** A part of a path. Nothing that somebody types leads elsewhere. */
function segment(text: string): string {
  if (!/^[\w-]+$/.test(text)) throw new UsageError(`${JSON.stringify(text)} is not an id.`);
  return text;
}
