import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { census } from '../capture/support.ts';
import { eventually } from '../support/eventually.ts';

export interface Load {
  /** Every event that was sent, and those whose request was answered with 200. */
  readonly sent: Set<string>;
  readonly acknowledged: Set<string>;
  /** How often each status came; `broken` for connections that did without an answer. */
  readonly answers: Record<string, number>;
  /** Anything that no client should get: other statuses, a refusal that does not say when to come back. */
  readonly wrong: string[];
  /** Bytes of bodies that were sent, the repeated ones too. */
  bytes: number;
  /** Until `more` further events were acknowledged. */
  progress(more: number): Promise<void>;
  /** Until `more` further requests were answered so. */
  until(answer: '503' | 'broken', more: number): Promise<void>;
  /** Until each client was refused with 503 `times` more. */
  untilAllRefused(times: number): Promise<void>;
  /** No new events; waits until every event that was sent is acknowledged. */
  finish(): Promise<void>;
  /** Ends the clients whatever became of their events. */
  abandon(): Promise<void>;
}

export interface LoadOptions {
  url: string;
  token: string;
  clients: number;
  /** Of a request, and the bytes of text in each. */
  events?: number;
  padding?: number;
}

/** Clients in a closed loop over HTTP, each sending a request again until it is acknowledged, as SDKs do. */
export function startLoad({ url, token, clients, events = 5, padding = 200 }: LoadOptions): Load {
  const [sent, acknowledged] = [new Set<string>(), new Set<string>()];
  const answers: Record<string, number> = {};
  const wrong: string[] = [];
  const refusals = Array<number>(clients).fill(0);
  let [stopping, abandoned] = [false, false];
  const text = 'x'.repeat(padding);
  const giveUp = new AbortController();

  /** Sends once; answers the status. */
  async function attempt(body: string): Promise<string> {
    load.bytes += body.length;
    let status: string;
    try {
      const answer = await fetch(`${url}/batch/`, { method: 'POST', body, signal: giveUp.signal });
      status = String(answer.status);
      const received = await answer.text();
      if (status === '503' && !/^\d+$/.test(answer.headers.get('retry-after') ?? '')) {
        wrong.push(`503 without Retry-After: ${received}`);
      } else if (status !== '200' && status !== '503') wrong.push(`${status}: ${received}`);
    } catch {
      // Killed, or not listening yet.
      status = 'broken';
    }
    answers[status] = (answers[status] ?? 0) + 1;
    return status;
  }

  async function client(index: number): Promise<void> {
    while (!stopping) {
      const uuids = Array.from({ length: events }, () => uuidv7());
      for (const uuid of uuids) sent.add(uuid);
      const batch = uuids.map((uuid) => ({
        uuid,
        event: 'load',
        distinct_id: 'u',
        properties: { text },
      }));
      const body = JSON.stringify({ api_key: token, batch });
      for (let status = await attempt(body); status !== '200'; status = await attempt(body)) {
        if (status === '503') refusals[index] = (refusals[index] as number) + 1;
        if (abandoned) return;
        await pause(20);
      }
      for (const uuid of uuids) acknowledged.add(uuid);
    }
  }

  const load: Load = {
    sent,
    acknowledged,
    answers,
    wrong,
    bytes: 0,
    async progress(more) {
      const goal = acknowledged.size + more;
      await eventually(async () => acknowledged.size >= goal);
    },
    async until(answer, more) {
      const goal = (answers[answer] ?? 0) + more;
      await eventually(async () => (answers[answer] ?? 0) >= goal);
    },
    async untilAllRefused(times) {
      const goals = refusals.map((count) => count + times);
      await eventually(async () => goals.every((goal, index) => (refusals[index] as number) >= goal));
    },
    async finish() {
      stopping = true;
      await ended;
    },
    async abandon() {
      [stopping, abandoned] = [true, true];
      giveUp.abort();
      await ended;
    },
  };
  const ended = Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  return load;
}

/** What storage says about the events of a load; all three must be empty. */
export async function compare(pool: Pool, projectId: number, load: Load) {
  const { uuids, wrong } = await census(pool, projectId);
  return {
    lost: [...load.acknowledged].filter((uuid) => !uuids.has(uuid)),
    storedTwiceOrHalf: wrong,
    neverSent: [...uuids].filter((uuid) => !load.sent.has(uuid)),
  };
}

export const NOTHING_WRONG = { lost: [], storedTwiceOrHalf: [], neverSent: [] };
