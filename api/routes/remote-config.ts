import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { decodeBody } from '../../capture/decode/decode.ts';
import { readEnvelope } from '../../capture/parse/envelope.ts';
import type { Capture } from '../capture/capture.ts';
import type { Gate } from '../capture/gate.ts';
import { toRefusal } from '../capture/refusals.ts';
import { decideAnswer, remoteConfig, remoteConfigScript } from '../capture/remote-config.ts';
import { publicRoute } from '../capture/route-options.ts';
import type { App } from '../dependencies.ts';
import { ApiError, errors } from '../errors.ts';
import { freeForm } from '../schemas/fields.ts';

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

async function tokenOf(request: FastifyRequest, gate: Gate): Promise<unknown> {
  const { ticket } = request;
  const query = request.query as Record<string, string | undefined>;
  try {
    const decoded = await decodeBody({
      bytes: (request.body as Buffer | undefined) ?? Buffer.alloc(0),
      contentType: request.wireType,
      contentEncoding: request.headers['content-encoding'],
      compression: query.compression,
      data: query.data,
      ...(ticket ? { admit: (bytes: number) => gate.enter(ticket, bytes) } : {}),
    });
    return readEnvelope(decoded).token ?? query.token ?? query.api_key;
  } catch (error) {
    throw toRefusal(error);
  }
}

/** What browsers ask before they send. Answers the paths, for their preflights. */
export function remoteConfigRoutes(app: App, capture: Capture, gate: Gate): string[] {
  const params = z.object({ token: z.string() });
  app.get<{ Params: { token: string } }>(
    CONFIG_PATH,
    publicRoute({ summary: "A browser's settings", params, answer: freeForm }),
    async (request, reply) => {
      await requireProject(capture, request.params.token);
      reply.header('cache-control', CACHE).header('content-type', 'application/json; charset=utf-8');
      return reply.send(JSON.stringify(remoteConfig(request.params.token)));
    },
  );
  app.get<{ Params: { token: string } }>(
    SCRIPT_PATH,
    publicRoute({ summary: "A browser's settings as a script", params, answer: z.string() }),
    async (request, reply) => {
      await requireProject(capture, request.params.token);
      reply.header('cache-control', CACHE).header('content-type', 'application/javascript; charset=utf-8');
      return reply.send(remoteConfigScript(request.params.token));
    },
  );
  app.post(
    DECIDE_PATH,
    publicRoute({ summary: 'The settings of older clients', answer: freeForm }),
    async (request, reply) => {
      try {
        const token = await tokenOf(request, gate);
        await capture.authenticate(token);
        reply.header('content-type', 'application/json; charset=utf-8');
        return reply.send(JSON.stringify(decideAnswer(String(token).trim())));
      } finally {
        if (request.ticket) gate.leave(request.ticket);
      }
    },
  );
  return [CONFIG_PATH, SCRIPT_PATH, DECIDE_PATH];
}
