import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { afterEach } from '@jest/globals';
import type { ApiDependencies } from '../../api/dependencies.ts';
import type { LiveBounds } from '../../api/live-bounds.ts';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createRegistry } from '../../telemetry/metrics.ts';
import { capturedEvent } from '../capture/support.ts';
import { listenForFile, type Tenant, type TestApi } from './api.ts';
import { eventually } from './eventually.ts';

/** A message of a stream. */
export interface Message {
  id: string | undefined;
  event: string;
  data: unknown;
}

/** A stream of live events, as a client hears it. */
export interface Heard {
  status: number;
  headers: IncomingMessage['headers'];
  messages: Message[];
  /** The names of the events, in their order. */
  events(): string[];
  /** How many events were left out so far. */
  skipped(): number;
  /** Where a client that comes again goes on. */
  lastId(): string | undefined;
  /** Every byte that came. */
  text(): string;
  isOver(): boolean;
  /** Whether it ended as it should, and was not broken off. */
  isWhole(): boolean;
  pause(): void;
  resume(): void;
  leave(): void;
}

export interface Listening {
  query?: Record<string, string | string[]>;
  lastId?: string | undefined;
  project?: number | string;
}

/** Opens a stream. Whoever opens one leaves it. */
export async function listenTo(
  host: string,
  tenant: Tenant | string | null,
  { query = {}, lastId, project }: Listening = {},
): Promise<Heard> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) parameters.append(name, one);
  }
  const key = typeof tenant === 'string' ? tenant : tenant?.key;
  const place = project ?? (tenant as Tenant).projectId;
  const url = `${host}/api/projects/${place}/events/live/?${parameters}`;
  const { asked, answer } = await new Promise<{ asked: ClientRequest; answer: IncomingMessage }>(
    (resolve, reject) => {
      const asked: ClientRequest = request(
        url,
        {
          agent: false,
          headers: {
            ...(key && { authorization: `Bearer ${key}` }),
            ...(lastId !== undefined && { 'last-event-id': lastId }),
          },
        },
        (answer) => resolve({ asked, answer }),
      );
      asked.once('error', reject);
      asked.end();
    },
  );
  const messages: Message[] = [];
  let all = '';
  let rest = '';
  let last: string | undefined;
  let isOver = false;
  answer.setEncoding('utf8');
  answer.on('data', (piece: string) => {
    all += piece;
    const blocks = (rest + piece).split('\n\n');
    rest = blocks.pop() as string;
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^([^:]*):? ?(.*)$/s.exec(line) as unknown as string[]);
      const of = (name: string) => fields.find(([, one]) => one === name)?.[2];
      last = of('id') ?? last;
      const data = of('data');
      if (data !== undefined)
        messages.push({ id: last, event: of('event') ?? 'message', data: JSON.parse(data) });
    }
  });
  answer.on('error', () => undefined);
  answer.on('close', () => {
    isOver = true;
  });
  asked.on('error', () => undefined);
  return {
    status: answer.statusCode as number,
    headers: answer.headers,
    messages,
    events: () =>
      messages.filter((one) => one.event === 'message').map((one) => (one.data as { event: string }).event),
    skipped: () =>
      messages
        .filter((one) => one.event === 'skipped')
        .reduce((sum, one) => sum + ((one.data as { events: number | null }).events ?? 0), 0),
    lastId: () => last,
    text: () => all,
    isOver: () => isOver,
    isWhole: () => isOver && answer.complete,
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    leave: () => void asked.destroy(),
  };
}

/** Events with these names. */
export const named = (...names: string[]): Partial<CapturedEvent>[] => names.map((event) => ({ event }));

/** Streams of an API that end with the test that opened them. */
export function streamsForFile(api: TestApi) {
  const here = listenForFile(api);
  const open: Heard[] = [];
  const leave = () => {
    for (const one of open.splice(0)) one.leave();
  };
  const metric = async (name: string, registry = api.registry) =>
    Number(new RegExp(`^${name}\\{[^}]*\\} (.+)$`, 'm').exec(await registry.metrics())?.[1]);
  const listeners = () => metric('sluice_live_listeners');
  afterEach(async () => {
    leave();
    await eventually(async () => (await listeners()) === 0);
  });
  return {
    here,
    listeners,
    async listen(tenant: Tenant | string | null, options: Listening = {}, host = here.host): Promise<Heard> {
      const stream = await listenTo(host, tenant, options);
      open.push(stream);
      return stream;
    },
    store: (tenant: Tenant, ...events: Partial<CapturedEvent>[]) =>
      api.ingest.submit({
        projectId: tenant.projectId,
        events: events.map((one, index) => capturedEvent({ index, ...one })),
      }),
    /** A second process, so to speak: the same API with streams of its own. */
    async beside(
      { bounds = {}, ...changes }: Partial<ApiDependencies> & { bounds?: Partial<LiveBounds> },
      work: (host: string, metrics: (name: string) => Promise<number>) => Promise<void>,
    ): Promise<void> {
      const registry = createRegistry('beside');
      const app = await api.rebuild({ registry, liveBounds: { beat: 50, ...bounds }, ...changes });
      const host = await app.listen({ port: 0, host: '127.0.0.1' });
      try {
        await work(host, (name) => metric(name, registry));
      } finally {
        leave();
        await app.close();
      }
    },
  };
}

/** Waits until a stream has these many events. */
export const heard = (stream: Heard, count: number): Promise<true | undefined> =>
  eventually(async () => (stream.events().length >= count ? true : undefined));
