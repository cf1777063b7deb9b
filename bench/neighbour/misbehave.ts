// A process of who misbehaves. It does one kind of harm for a time, and prints how it was answered.
import { setTimeout as pause } from 'node:timers/promises';
import { floods } from './floods.ts';
import { type Answers, type Ask, type Client, client, count, task, timeIsOver } from './http.ts';
import { lists } from './lists.ts';
import { patches, patterns, queries } from './queries.ts';
import type { Tenant } from './tenants.ts';

export interface HarmTask {
  port: number;
  tenant: Tenant;
  harm: Harm;
}

export interface HarmResult {
  answers: Answers;
  /** CPU seconds of this process. */
  cpu: number;
}

/** What one kind of harm works with. */
export interface Means {
  port: number;
  tenant: Tenant;
  /** From the address of the tenant. */
  own: Client;
  /** From addresses of strangers. */
  strangers: Client[];
  isOver: () => boolean;
  /** Asks again and again, so many at once, until it is over. */
  keepAsking(kind: string, atOnce: number, next: () => Ask, from?: Client): Promise<void>;
}

const HARMS = { patterns, patches, queries, floods, lists };
export type Harm = keyof typeof HARMS;

const { port, tenant, harm } = task<HarmTask>();
const over = timeIsOver();
/** After a request that did not reach the server, so that a full table of sockets does not become a busy loop. */
const AFTER_FAILURE = 50;
const answers: Answers = {};
const own = client(port, '127.0.0.2');
const strangers = ['127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6'].map((ip) => client(port, ip));
const isOver = () => over.aborted;

async function ask(kind: string, next: () => Ask, from: Client): Promise<void> {
  while (!isOver()) {
    const status = await from.ask(next());
    if (isOver()) return;
    count(answers, kind, status);
    if (!/^\d/.test(status)) await pause(AFTER_FAILURE);
  }
}

const means: Means = {
  ...{ port, tenant, own, strangers, isOver },
  keepAsking: async (kind, atOnce, next, from = own) => {
    await Promise.all(Array.from({ length: atOnce }, () => ask(kind, next, from)));
  },
};
// Whoever still waits for an answer when it is over goes away.
void HARMS[harm](means);
await new Promise((resolve) => over.addEventListener('abort', resolve));
const { user, system } = process.cpuUsage();
own.close();
for (const one of strangers) one.close();
const result: HarmResult = { answers, cpu: (user + system) / 1e6 };
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
