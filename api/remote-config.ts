import { z } from 'zod';
import type { PublicProjectRow } from '../db/projects.ts';
import { readSite, SITE_FUNCTIONS_CHANNEL } from '../functions/rows/site.ts';
import { MOST_SITE_BYTES } from '../functions/rules/limits.ts';
import type { ApiDependencies } from './dependencies.ts';
import { ApiError, errors } from './errors.ts';
import { freeForm } from './fields.ts';
import type { Form } from './flags/answers.ts';
import { MOST_BYTES } from './flags/decode.ts';
import type { FlagRouteDependencies } from './flags/dependencies.ts';
import { createFlagAnswers, versionOf } from './flags/evaluate.ts';
import { LOADED_BY_OLDER, siteScript } from './functions/site-script.ts';
import type { Answer } from './public/answer.ts';
import { createCopied } from './public/copied.ts';
import type { LaneRequest } from './public/direct.ts';
import { type Handle, type Incoming, type Query, whenPrepared } from './public/exchange.ts';
import type { Lane, LaneMember } from './public/lane.ts';
import { type Packed, packed, packedAnswer } from './public/packed.ts';
import { LATE, Patience } from './public/patience.ts';
import type { ProjectKeys } from './public/project-keys.ts';
import { createRemembered } from './public/remembered.ts';
import { settingsOf } from './settings.ts';
import type { OfferedSurveys } from './surveys/offered.ts';

/** The share has room for one largest body, which counts twice: as received and as decompressed. */
const MEMBER: LaneMember = {
  name: 'remote config',
  tag: 'capture',
  startsAlone: true,
  share: { held: 2 * MOST_BYTES, atWork: 1024 * 1024, unpacking: 0 },
  largestBody: { bytes: MOST_BYTES, refusal: `The request is larger than ${MOST_BYTES} bytes.` },
};
const CONFIG_PATH = '/array/:token/config';
const SCRIPT_PATH = '/array/:token/config.js';
const DECIDE_PATH = '/decide/';
/** Short, so that a change of the project's settings reaches browsers soon. */
const CACHE = 'public, max-age=60';

/**
 * The settings for older clients, which ask `/decide` for them and know some by other names. They load the functions of
 * the project from a script that they are told of.
 */
function olderSettings(
  token: string,
  { hasFunctions, hasFlags, hasSurveys }: Pick<SiteConfig, 'hasFunctions' | 'hasFlags' | 'hasSurveys'>,
) {
  const script = { id: LOADED_BY_OLDER, url: SCRIPT_PATH.replace(':token', () => encodeURIComponent(token)) };
  return {
    ...settingsOf(token, hasFlags, hasSurveys),
    siteApps: hasFunctions ? [script] : [],
    editorParams: {},
  };
}

/** The form of flags that a client reads, by the version that it asks `/decide` for. */
function decideForm(version: number | undefined): Form {
  if (version === undefined || version <= 1) return 'enabled keys';
  if (version === 2) return 'enabled values';
  return version === 3 ? 'values' : 'detailed';
}

/** The path names the key, so a key that no project has is 404. */
async function requireProject(
  keys: ProjectKeys,
  token: string,
  { ip }: Pick<LaneRequest, 'ip'>,
): Promise<PublicProjectRow> {
  try {
    return await keys.authenticate(token, ip);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw errors.notFound('No project has this key.');
    throw error;
  }
}

/** What browsers load of a project. */
interface SiteConfig {
  token: string;
  script: Packed;
  hasFunctions: boolean;
  hasFlags: boolean;
  hasSurveys: boolean;
}

/** What browsers ask before they send. */
export function remoteConfigRoutes(
  lane: Lane,
  deps: Pick<ApiDependencies, 'lanePool' | 'listener' | 'copies' | 'isPrepared'> &
    FlagRouteDependencies & { surveys: OfferedSurveys },
): void {
  const { keys } = lane;
  const database = whenPrepared(deps.lanePool, deps.isPrepared);
  const waiting = new Patience();
  /** Reads what browsers load. */
  const readSiteOf = createCopied((projectId) => readSite(database, Number(projectId), MOST_SITE_BYTES), {
    copies: deps.copies,
    kind: 'sites',
    isGone: ({ token }) => token === undefined,
  });
  const scripts = createRemembered<SiteConfig>({
    channel: SITE_FUNCTIONS_CHANNEL,
    listener: deps.listener,
    // The key of what is remembered is the project. The script names the public key of the project, too.
    read: async (projectId) => {
      const { token, functions } = await readSiteOf(projectId);
      if (token === undefined) return undefined;
      const hasFlags = await deps.flags.hasFlags(Number(projectId));
      const hasSurveys = await deps.surveys.areRunning(Number(projectId));
      const script = await packed(siteScript(settingsOf(token, hasFlags, hasSurveys), functions));
      const value = { token, script, hasFunctions: functions.length > 0, hasFlags, hasSurveys };
      return { value, bytes: script.plain.length + script.gzip.length };
    },
  });
  /** What browsers load of a project. A project whose key was replaced, or that has its first flag or survey, is read again. */
  async function siteOf({ id }: PublicProjectRow, token: string): Promise<SiteConfig> {
    const key = String(id);
    const known = await scripts.of(key);
    const isSame =
      known?.token === token &&
      known.hasFlags === (await deps.flags.hasFlags(id)) &&
      known.hasSurveys === (await deps.surveys.areRunning(id));
    if (isSame) return known;
    scripts.forget(key);
    const read = await scripts.of(key);
    if (read?.token !== token) throw errors.notFound('No project has this key.');
    return read;
  }
  lane.onClose(() => scripts.close());
  const { add } = lane.join(MEMBER);
  const answers = createFlagAnswers(lane, deps);
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
    const { id } = await requireProject(keys, token, incoming.request);
    const settings = settingsOf(token, await deps.flags.hasFlags(id), await deps.surveys.areRunning(id));
    return cached(JSON.stringify(settings), 'application/json');
  };
  const script: Handle = async (incoming) => {
    const token = inPath(incoming);
    const { script } = await siteOf(await requireProject(keys, token, incoming.request), token);
    return packedAnswer(incoming.request, script, 'application/javascript', CACHE);
  };
  const decide: Handle = (incoming) =>
    answers(incoming, {
      form: decideForm(versionOf(incoming.request.query as Query)),
      settings: async (project, key) => {
        const site = await waiting.wait(siteOf(project, key));
        if (site !== LATE) {
          waiting.answered();
          return olderSettings(key, site);
        }
        // Without the database, it may be unknown which functions there are. That must not cost anybody the flags.
        const hasFlags = await deps.flags.hasFlags(project.id);
        return olderSettings(key, { hasFunctions: false, hasSurveys: false, hasFlags });
      },
    });
  add('GET', CONFIG_PATH, config, { summary: "A browser's settings", params, answer: freeForm });
  const asScript = "A browser's settings as a script";
  add('GET', SCRIPT_PATH, script, { summary: asScript, params, answer: z.string() });
  add('POST', DECIDE_PATH, decide, { summary: 'The settings of older clients', answer: freeForm });
}
