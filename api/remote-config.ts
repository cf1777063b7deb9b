import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { decodeBody } from '../capture/decode/decode.ts';
import { DecodeError, MAX_BODY_BYTES, tooLarge } from '../capture/decode/limits.ts';
import { readEnvelope } from '../capture/parse/envelope.ts';
import type { PublicProjectRow } from '../db/projects.ts';
import { readSite, SITE_FUNCTIONS_CHANNEL } from '../functions/rows/site.ts';
import { MOST_SITE_BYTES } from '../functions/rules/limits.ts';
import type { ApiDependencies } from './dependencies.ts';
import { ApiError, errors } from './errors.ts';
import { freeForm } from './fields.ts';
import { LOADED_BY_OLDER, siteScript } from './functions/site-script.ts';
import type { Answer } from './public/answer.ts';
import { type Handle, type Incoming, lastOf, type Query } from './public/exchange.ts';
import type { Gate } from './public/gate.ts';
import type { Lane, LaneMember } from './public/lane.ts';
import { type Packed, packed, packedAnswer } from './public/packed.ts';
import type { ProjectKeys } from './public/project-keys.ts';
import { bodyRefusal } from './public/read-body.ts';
import { createRemembered } from './public/remembered.ts';

/** The share has room for one largest body, which counts twice: as received and as decompressed. */
const MEMBER: LaneMember = {
  name: 'remote config',
  tag: 'capture',
  share: { held: 2 * MAX_BODY_BYTES, atWork: 1024 * 1024, unpacking: 1 },
  largestBody: { bytes: MAX_BODY_BYTES, refusal: tooLarge('the body').message },
};
const CONFIG_PATH = '/array/:token/config';
const SCRIPT_PATH = '/array/:token/config.js';
const DECIDE_PATH = '/decide/';
/** Short, so that a change of the project's settings reaches browsers soon. */
const CACHE = 'public, max-age=60';

/** What a browser asks for before it sends: how to send events, and which features stay off. */
function remoteConfig(token: string) {
  return {
    token,
    supportedCompression: ['gzip', 'gzip-js'],
    hasFeatureFlags: false,
    captureDeadClicks: false,
    capturePerformance: false,
    autocapture_opt_out: false,
    autocaptureExceptions: false,
    analytics: { endpoint: '/i/v0/e/' },
    elementsChainAsString: true,
    errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
    sessionRecording: false,
    heatmaps: false,
    surveys: false,
    productTours: false,
    conversations: false,
    logs: { captureConsoleLogs: false },
    defaultIdentifiedOnly: true,
    isAuthenticated: false,
    siteApps: [],
    toolbarParams: {},
  };
}

/**
 * The settings for older clients, which ask `/decide` for them and know some by other names. They load the functions of
 * the project from a script that they are told of.
 */
function decideAnswer(token: string, hasFunctions: boolean) {
  const script = { id: LOADED_BY_OLDER, url: SCRIPT_PATH.replace(':token', () => encodeURIComponent(token)) };
  return {
    ...remoteConfig(token),
    siteApps: hasFunctions ? [script] : [],
    config: { enable_collect_everything: true },
    editorParams: {},
    featureFlags: {},
    featureFlagPayloads: {},
    errorsWhileComputingFlags: false,
  };
}

/** The path names the key, so a key that no project has is 404. */
async function requireProject(
  keys: ProjectKeys,
  token: string,
  { ip }: FastifyRequest,
): Promise<PublicProjectRow> {
  try {
    return await keys.authenticate(token, ip);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw errors.notFound('No project has this key.');
    throw error;
  }
}

/** The project key in a body of any form that events may have, or in the query. */
async function tokenOf({ request, body, ticket }: Incoming, gate: Gate): Promise<unknown> {
  const query = request.query as Query;
  try {
    const decoded = await decodeBody({
      bytes: body,
      contentType: request.headers['content-type'],
      contentEncoding: request.headers['content-encoding'],
      compression: lastOf(query.compression),
      data: lastOf(query.data),
      admit: (bytes) => gate.enter(ticket, bytes),
      memory: gate.memoryOf(ticket),
    });
    return readEnvelope(decoded).token ?? lastOf(query.token) ?? lastOf(query.api_key);
  } catch (error) {
    throw error instanceof DecodeError ? bodyRefusal(error.status, error.message) : error;
  }
}

/** What browsers load of a project. */
interface SiteConfig {
  token: string;
  script: Packed;
  hasFunctions: boolean;
}

/** What browsers ask before they send. */
export function remoteConfigRoutes(lane: Lane, deps: Pick<ApiDependencies, 'lanePool' | 'listener'>): void {
  const { keys } = lane;
  const scripts = createRemembered<SiteConfig>({
    channel: SITE_FUNCTIONS_CHANNEL,
    listener: deps.listener,
    // The key of what is remembered is the project. The script names the public key of the project, too.
    read: async (projectId) => {
      const { token, functions } = await readSite(deps.lanePool, Number(projectId), MOST_SITE_BYTES);
      if (token === undefined) return undefined;
      const script = await packed(siteScript(remoteConfig(token), functions));
      const value = { token, script, hasFunctions: functions.length > 0 };
      return { value, bytes: script.plain.length + script.gzip.length };
    },
  });
  /** What browsers load of a project. A project whose key was replaced is read again. */
  async function siteOf({ id }: PublicProjectRow, token: string): Promise<SiteConfig> {
    const key = String(id);
    const known = await scripts.of(key);
    if (known?.token === token) return known;
    scripts.forget(key);
    const read = await scripts.of(key);
    if (read?.token !== token) throw errors.notFound('No project has this key.');
    return read;
  }
  lane.onClose(() => scripts.close());
  const { gate, add } = lane.join(MEMBER);
  const params = z.object({ token: z.string() });
  // Spaces around a key do not matter, and must not make the functions of a project be read once for each spelling.
  const inPath = ({ request }: Incoming) => (request.params as { token: string }).token.trim();
  const cached = (body: string, type: string): Answer => ({
    status: 200,
    body,
    headers: ['content-type', `${type}; charset=utf-8`, 'cache-control', CACHE],
  });
  const config: Handle = async (incoming) => {
    const token = inPath(incoming);
    await requireProject(keys, token, incoming.request);
    return cached(JSON.stringify(remoteConfig(token)), 'application/json');
  };
  const script: Handle = async (incoming) => {
    const token = inPath(incoming);
    const { script } = await siteOf(await requireProject(keys, token, incoming.request), token);
    return packedAnswer(incoming.request, script, 'application/javascript', CACHE);
  };
  const decide: Handle = async (incoming) => {
    const token = await tokenOf(incoming, gate);
    const project = await keys.authenticate(token, incoming.request.ip);
    const key = String(token).trim();
    const { hasFunctions } = await siteOf(project, key);
    return { status: 200, body: JSON.stringify(decideAnswer(key, hasFunctions)) };
  };
  add('GET', CONFIG_PATH, config, { summary: "A browser's settings", params, answer: freeForm });
  const asScript = "A browser's settings as a script";
  add('GET', SCRIPT_PATH, script, { summary: asScript, params, answer: z.string() });
  add('POST', DECIDE_PATH, decide, { summary: 'The settings of older clients', answer: freeForm });
}
