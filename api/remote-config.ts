import { z } from 'zod';
import { decodeBody } from '../capture/decode/decode.ts';
import { readEnvelope } from '../capture/parse/envelope.ts';
import type { Capture } from './capture/capture.ts';
import { toRefusal } from './capture/refusals.ts';
import { decideAnswer, remoteConfig, remoteConfigScript } from './capture/remote-config.ts';
import type { AddRoute } from './capture/routes.ts';
import { ApiError, errors } from './errors.ts';
import { freeForm } from './fields.ts';
import type { Answer, Handle, Incoming } from './public/exchange.ts';
import type { Gate } from './public/gate.ts';
import { type CaptureQuery, lastOf } from './public/query.ts';

const CONFIG_PATH = '/array/:token/config';
const SCRIPT_PATH = '/array/:token/config.js';
const DECIDE_PATH = '/decide/';
/** Short, so that a change of the project's settings reaches browsers soon. */
const CACHE = 'public, max-age=60';

/** A page asks for the settings of a key that does not exist: 404, as the address is the key. */
async function requireProject(capture: Capture, token: string): Promise<void> {
  try {
    await capture.authenticate(token);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw errors.notFound('No project has this key.');
    throw error;
  }
}

async function tokenOf({ request, body, ticket }: Incoming, gate: Gate): Promise<unknown> {
  const query = request.query as CaptureQuery;
  try {
    const decoded = await decodeBody({
      bytes: body,
      contentType: request.headers['content-type'],
      contentEncoding: request.headers['content-encoding'],
      compression: lastOf(query.compression),
      data: lastOf(query.data),
      admit: (bytes) => gate.enter(ticket, bytes),
    });
    return readEnvelope(decoded).token ?? lastOf(query.token) ?? lastOf(query.api_key);
  } catch (error) {
    throw toRefusal(error);
  }
}

/** What browsers ask before they send. */
export function remoteConfigRoutes(add: AddRoute, capture: Capture, gate: Gate): void {
  const params = z.object({ token: z.string() });
  const inPath = ({ request }: Incoming) => (request.params as { token: string }).token;
  const cached = (body: string, type: string): Answer => ({
    status: 200,
    body,
    headers: ['content-type', `${type}; charset=utf-8`, 'cache-control', CACHE],
  });
  const config: Handle = async (incoming) => {
    const token = inPath(incoming);
    await requireProject(capture, token);
    return cached(JSON.stringify(remoteConfig(token)), 'application/json');
  };
  const script: Handle = async (incoming) => {
    const token = inPath(incoming);
    await requireProject(capture, token);
    return cached(remoteConfigScript(token), 'application/javascript');
  };
  const decide: Handle = async (incoming) => {
    const token = await tokenOf(incoming, gate);
    await capture.authenticate(token);
    return { status: 200, body: JSON.stringify(decideAnswer(String(token).trim())) };
  };
  add('GET', CONFIG_PATH, config, { summary: "A browser's settings", params, answer: freeForm });
  const asScript = "A browser's settings as a script";
  add('GET', SCRIPT_PATH, script, { summary: asScript, params, answer: z.string() });
  add('POST', DECIDE_PATH, decide, { summary: 'The settings of older clients', answer: freeForm });
}
