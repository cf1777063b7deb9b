import { z } from 'zod';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { readJson } from '../../capture/decode/json.ts';
import { DecodeError } from '../../capture/decode/limits.ts';
import { EventsRefusedError, IngestUnavailableError } from '../../capture/ingest.ts';
import { parseEvents, removeAddresses } from '../../capture/parse/parse.ts';
import type { Warnings } from '../../capture/warnings.ts';
import { uuidv7 } from '../../db/uuid.ts';
import {
  type AskedEvent,
  answerWebhook,
  CaptureRefusedError,
} from '../../functions/commands/answer-webhook.ts';
import { Ledger } from '../../functions/ledger.ts';
import {
  findSourceWebhook,
  SOURCE_WEBHOOKS_CHANNEL,
  type SourceWebhookRow,
} from '../../functions/rows/source-webhooks.ts';
import { enqueueUnstored, hasBacklog } from '../../functions/rows/unstored.ts';
import {
  BodyError,
  faulty,
  MOST_WEBHOOK_BYTES,
  TOO_LARGE,
  UNKNOWN,
  type WebhookAnswer,
  webhookRequest,
} from '../../functions/rules/webhook.ts';
import { RunnerBusyError } from '../../functions/runner.ts';
import { Refusal } from '../../refusals.ts';
import { Allowances } from '../../values/allowances.ts';
import { clientAddress, clientNetwork } from '../../values/clients.ts';
import { isUuid } from '../../values/uuid.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm } from '../fields.ts';
import type { Answer } from '../public/answer.ts';
import type { Handle, Incoming, Query } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { createRemembered } from '../public/remembered.ts';
import { functionRouteDependencies } from './dependencies.ts';

const MIB = 1024 * 1024;
const MEMBER: LaneMember = {
  name: 'source webhooks',
  tag: 'functions',
  share: { held: 16 * MIB, atWork: MIB, unpacking: 0 },
  largestBody: { bytes: MOST_WEBHOOK_BYTES, refusal: TOO_LARGE.error, answer: TOO_LARGE },
};
const NOTHING = Buffer.alloc(0);
const PATH = '/public/webhooks/:id';
const PICTURE = '.gif';
const RETRY_SECONDS = 2;
/** What may be under way: requests of one project, of all together, and bytes of one project. */
const MOST_OF_ONE = 50;
const MOST = 400;
const MOST_BYTES_OF_ONE = 4 * MIB;
const MOST_KEPT = 32 * MIB;
/** How many requests of one function wait for workers, and when to come again if there are more. */
const MOST_QUEUED = 1_000;
const BACKLOG_SECONDS = 10;

/** Nothing that a program answers may run in a browser. */
const SAFE = ['x-content-type-options', 'nosniff', 'content-security-policy', "default-src 'none'"];

const asAnswer = ({ status, body, contentType }: WebhookAnswer): Answer => ({
  ...{ status, body },
  headers: contentType === undefined ? SAFE : ['content-type', typed(contentType), ...SAFE],
});
const typed = (contentType: string) =>
  /^(?:text\/|application\/(?:json|xml))/.test(contentType) ? `${contentType}; charset=utf-8` : contentType;

/** What is under way: requests, and the bytes of their bodies, which take many times as much while programs run. */
class UnderWay {
  readonly #byProject = new Map<number, { requests: number; bytes: number }>();
  #requests = 0;

  begin(projectId: number, bytes: number): void {
    const own = this.#byProject.get(projectId) ?? { requests: 0, bytes: 0 };
    const isFull = own.requests >= MOST_OF_ONE || (own.requests > 0 && own.bytes + bytes > MOST_BYTES_OF_ONE);
    if (isFull || this.#requests >= MOST) {
      throw errors.unavailable('Too many requests are under way. Send it again.', RETRY_SECONDS);
    }
    this.#byProject.set(projectId, { requests: own.requests + 1, bytes: own.bytes + bytes });
    this.#requests += 1;
  }

  end(projectId: number, bytes: number): void {
    const own = this.#byProject.get(projectId) as { requests: number; bytes: number };
    if (own.requests === 1) this.#byProject.delete(projectId);
    else this.#byProject.set(projectId, { requests: own.requests - 1, bytes: own.bytes - bytes });
    this.#requests -= 1;
  }
}

/** Requests from outside that become events: each goes to the function whose id is in the path. */
export function webhookRoutes(lane: Lane, deps: ApiDependencies & { warnings: Warnings }): void {
  const { lanePool, listener, logger, config } = deps;
  const { add } = lane.join(MEMBER);
  const { runner, integrations, keyring } = functionRouteDependencies(deps);
  const underWay = new UnderWay();
  const guesses = new Allowances(config.SLUICE_REFUSALS_PER_MINUTE);
  const ledger = new Ledger({ queryable: lanePool, logger });
  const webhooks = createRemembered<SourceWebhookRow>({
    channel: SOURCE_WEBHOOKS_CHANNEL,
    listener,
    mostKept: MOST_KEPT,
    read: async (id) => {
      const value = await findSourceWebhook(lanePool, id);
      return value && { value, bytes: value.bytes };
    },
  });
  lane.onClose(async () => {
    webhooks.close();
    await ledger.close();
  });

  /** Stores an event in the way of every other event of the project. */
  async function capture(webhook: SourceWebhookRow, asked: AskedEvent): Promise<void> {
    const { project_id: projectId, project_token: token } = webhook;
    const now = Date.now();
    const { notices, events } = await parsed(asked, { token, now });
    // A project whose key was replaced a moment ago is taken as one that wants no addresses.
    const project = await lane.keys.find(token);
    const { transform } = deps;
    const known = { id: projectId, transformations: project?.transformations };
    const transformed: CapturedEvent[] = transform ? await transform(known, events, notices) : events;
    if (project?.anonymize_ips !== false) removeAddresses(transformed);
    if (transformed.length > 0) {
      const { notices: changes = [] } = await deps.ingest.submit({ projectId, events: transformed });
      for (const one of changes) notices.notApplied(one.reason, one.index, one.detail);
    }
    deps.warnings.add(projectId, notices, now);
  }

  /** Finds the function of a path. An unknown id costs a query at most once, and an address has few of them. */
  async function find(id: string, ip: string): Promise<SourceWebhookRow | undefined> {
    if (!isUuid(id)) return undefined;
    const key = id.toLowerCase();
    if (webhooks.knows(key)) return webhooks.of(key);
    const network = clientNetwork(ip);
    const seconds = guesses.wait(network, Date.now());
    if (seconds > 0) {
      const refusal = 'Too many requests from this address were for unknown functions. Send it again.';
      throw errors.unavailable(refusal, Math.max(seconds, RETRY_SECONDS));
    }
    const found = await webhooks.of(key);
    if (!found) guesses.count(network, Date.now());
    return found;
  }

  async function answered(webhook: SourceWebhookRow, incoming: Incoming): Promise<WebhookAnswer> {
    const { request, body } = incoming;
    // The request lives until its answer. Its body need not.
    incoming.body = NOTHING;
    const { headers, ip } = request;
    const method = request.raw.method as string;
    const query = request.query as Query;
    try {
      const asked = webhookRequest({ method, headers, query, ip: clientAddress(ip), body });
      const run = {
        ...{ runner, integrations, keyring },
        capture: (...event: Parameters<typeof capture>) =>
          capture(...event).catch((error: unknown) => {
            throw refusal(error);
          }),
      };
      const { answer, entry, cost, queued } = await answerWebhook(run, webhook, asked);
      if (queued) {
        if (await hasBacklog(lanePool, queued, MOST_QUEUED)) {
          throw errors.unavailable(
            'Too many requests wait for the function. Send it again.',
            BACKLOG_SECONDS,
          );
        }
        await enqueueUnstored(lanePool, [queued]);
      }
      ledger.add(entry);
      ledger.charge({ projectId: webhook.project_id, functionId: webhook.id, cost });
      return answer;
    } catch (error) {
      if (error instanceof BodyError) return faulty(400, error.message);
      if (error instanceof RunnerBusyError) throw errors.unavailable(error.message, RETRY_SECONDS);
      throw error;
    }
  }

  const handle: Handle = async (incoming) => {
    const { request } = incoming;
    const { id: named } = request.params as { id: string };
    const id = named.endsWith(PICTURE) ? named.slice(0, -PICTURE.length) : named;
    const webhook = await find(id, request.ip);
    // HEAD comes by the route of GET. It asks for no event.
    if (!webhook || request.raw.method === 'HEAD') return asAnswer(UNKNOWN);
    const { length: bytes } = incoming.body;
    underWay.begin(webhook.project_id, bytes);
    try {
      return asAnswer(await answered(webhook, incoming));
    } finally {
      underWay.end(webhook.project_id, bytes);
    }
  };
  const params = z.object({
    id: z.string().meta({ description: 'The id of the function, with .gif or without.' }),
  });
  const about = { params, answer: freeForm };
  add('POST', PATH, handle, { summary: 'Send a request to a function', body: z.looseObject({}), ...about });
  add('GET', PATH, handle, { summary: 'Send a request without a body to a function', ...about });
}

/** Parses an event as if a client had sent it. */
async function parsed(asked: AskedEvent, { token, now }: { token: string; now: number }) {
  const decoded = await readJson(written({ ...asked, api_key: token }), false);
  return parseEvents(decoded, { now, ip: undefined, newUuid: uuidv7, checkToken: String });
}

function written(event: object): string {
  try {
    return JSON.stringify(event);
  } catch (error) {
    // A value that contains itself, or one that is nested too deep.
    throw new CaptureRefusedError(`The event cannot be written as JSON: ${(error as Error).message}`);
  }
}

/** Translates what capture says of an event. */
function refusal(error: unknown): unknown {
  if (error instanceof DecodeError || error instanceof EventsRefusedError) {
    return new CaptureRefusedError(error.message);
  }
  if (error instanceof IngestUnavailableError)
    return errors.unavailable(error.message, error.retryAfterSeconds);
  if (error instanceof Refusal) return errors.unavailable(error.message, error.retrySeconds);
  return error;
}
