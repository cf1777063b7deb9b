import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { PublicProjectRow } from '../../db/projects.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { Evaluated, FlagRequest } from '../../flags/evaluator.ts';
import { isUuid } from '../../values/uuid.ts';
import { ApiError, errors } from '../errors.ts';
import { freeForm } from '../fields.ts';
import type { Answer } from '../public/answer.ts';
import { type Handle, type Incoming, lastOf, type Query } from '../public/exchange.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { settingsOf } from '../settings.ts';
import type { OfferedSurveys } from '../surveys/offered.ts';
import { type Form, writeAnswer } from './answers.ts';
import { decodeFlagBody, FlagBodyError, MOST_BYTES } from './decode.ts';
import { DEFINITION_PATHS, wantsCohorts } from './definition-answers.ts';
import type { FlagRouteDependencies } from './dependencies.ts';
import type { Limited } from './metered.ts';
import { addOfrep } from './ofrep.ts';
import { type FlagBody, readFlagBody, runtimeOf } from './request.ts';

const MEMBER: LaneMember = {
  name: 'flags',
  tag: 'flags',
  startsAlone: true,
  share: { held: 16 * MOST_BYTES, atWork: MOST_BYTES, unpacking: 0 },
  largestBody: { bytes: MOST_BYTES, refusal: `The request is larger than ${MOST_BYTES} bytes.` },
};
/** The compressions of events. */
const COMPRESSION = ['gzip', 'gzip-js', 'lz64'];
const LONGEST_TOKEN = 64;
const TEXT = ['content-type', 'text/plain; charset=utf-8'];
const NO_ID = 'The distinct_id field is missing from the request. Please include a valid identifier.';
const NO_TOKEN = 'No API token provided. Please include a valid API token in your request.';
const WRONG_TOKEN =
  'The provided API key is invalid or has expired. Please check your API key and try again.';

/** What an endpoint answers with, beside the flags. */
export interface Wanted {
  form: Form;
  /** The settings of clients. */
  settings?: (project: PublicProjectRow, token: string) => Settings | Promise<Settings>;
}

type Settings = Record<string, unknown> | undefined;

const inText = (status: number, body: string): Answer => ({ status, body, headers: TEXT });

/** Whether a parameter of the query says yes. An empty one is as if it were not there. */
const isOn = (value: string | undefined): boolean => value !== undefined && /^(?:true|1)$/i.test(value);
const given = (value: string | string[] | undefined): string | undefined => lastOf(value) || undefined;

/** The version of the answer that a query asks for. Undefined: it asks for none. */
export function versionOf(query: Query): number | undefined {
  const texts = [query.version, query.v].flat().filter((text) => text !== undefined && text !== '');
  if (texts.length === 0) return undefined;
  // posthog-js 1.19.0 sends its own version as a second one.
  return Number(texts.findLast((text) => /^\d{1,9}$/.test(text as string)) ?? 1);
}

/** The form of an answer of `/flags`, and whether it has the settings. */
export function flagsForm(query: Query): { form: Form; withSettings: boolean } {
  const version = versionOf(query);
  const config = given(query.config);
  if (version === undefined && config === undefined) return { form: 'detailed', withSettings: true };
  return { form: (version ?? 1) >= 2 ? 'detailed' : 'values', withSettings: isOn(config) };
}

/** Answers requests for the flags of a user. */
export function createFlagAnswers(lane: Pick<Lane, 'keys'>, deps: FlagRouteDependencies) {
  const { flags, flagPlace } = deps;

  function requestOf(body: FlagBody, { request }: Incoming): FlagRequest {
    const surveys = isOn(given((request.query as Query).only_evaluate_survey_feature_flags));
    return {
      ...body.request,
      distinctId: body.distinctId ?? '',
      place: body.geoipDisable || !flagPlace ? {} : flagPlace(request.ip),
      runtime: body.runtime ?? runtimeOf(request.headers),
      surveysOnly: surveys,
    };
  }

  /** Throws what refuses the request. Nothing of it needs a promise as long as all that is asked for is in memory. */
  function answer(incoming: Incoming, json: unknown, wanted: Wanted): Answer | Promise<Answer> {
    const { request } = incoming;
    const body = readFlagBody(json);
    const query = request.query as Query;
    const token = (body.token ?? given(query.token) ?? given(query.api_key) ?? '').trim();
    if (token === '') {
      throw new ApiError(401, { ...errors.notAuthenticated().body, detail: NO_TOKEN });
    }
    const answerFor = (project: PublicProjectRow | undefined): Answer | Promise<Answer> => {
      if (!project) throw errors.authenticationFailed(WRONG_TOKEN);
      if (body.distinctId === undefined && !body.disableFlags) return inText(400, NO_ID);
      return then(evaluate(project), (evaluated) =>
        then(wanted.settings?.(project, token), (config) => written(evaluated, config)),
      );
    };
    const evaluate = (project: PublicProjectRow) => {
      if (body.disableFlags) return undefined;
      // Who asks for all flags may use none of them; SDKs tell by events which ones were used.
      for (const key of body.request.keys ?? []) flags.calls.note(project.id, key);
      return flags.metered.evaluate(project.id, requestOf(body, incoming));
    };
    const written = (evaluated: Evaluated | Limited | undefined, config: Settings): Answer => {
      // The id of a request is what the client named it, if the name is sane, and otherwise a uuid.
      const requestId = isUuid(request.id) ? request.id : uuidv7();
      const now = Date.now();
      const body = writeAnswer({ form: wanted.form, evaluated, requestId, now, config });
      return { status: 200, body, isAscii: true };
    };
    return then(token.length > LONGEST_TOKEN ? undefined : lane.keys.find(token, request.ip), answerFor);
  }

  return (incoming: Incoming, wanted: Wanted): Answer | Promise<Answer> => {
    try {
      const answered = then(decodeFlagBody(incoming), (json) => answer(incoming, json, wanted));
      return answered instanceof Promise ? answered.catch(inTextIfUnreadable) : answered;
    } catch (error) {
      return inTextIfUnreadable(error);
    }
  };
}

/** Goes on at once if the value is there. */
function then<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function inTextIfUnreadable(error: unknown): Answer {
  if (error instanceof FlagBodyError) return inText(error.status, error.message);
  throw error;
}

const requestSchema = z
  .object({
    api_key: z.string().meta({ description: 'The key of the project; `token` is another name of it.' }),
    distinct_id: z.string().meta({ description: 'The user. At most 200 characters count.' }),
    groups: freeForm.optional().meta({ description: 'The keys of groups, by type.' }),
    person_properties: freeForm
      .optional()
      .meta({ description: 'Count more than the stored properties of the person.' }),
    group_properties: freeForm
      .optional()
      .meta({ description: 'By type of group. Count more than the stored properties of the groups.' }),
    $anon_distinct_id: z.string().optional().meta({
      description:
        'The id that the user had before. Flags with experience continuity stay what they were for it.',
    }),
    $device_id: z
      .string()
      .optional()
      .meta({ description: 'By this id flags count that are bucketed by device.' }),
    disable_flags: z.boolean().optional().meta({ description: 'True: the answer has no flags.' }),
    flag_keys: z
      .array(z.string())
      .optional()
      .meta({ description: 'Only these flags, and those that they depend on.' }),
    geoip_disable: z
      .boolean()
      .optional()
      .meta({ description: "True: the client's address adds no place to the properties." }),
    evaluation_runtime: z.enum(['all', 'client', 'server']).optional(),
    evaluation_contexts: z.array(z.string()).optional(),
  })
  .meta({ id: 'FlagRequest' });

/** Adds `/flags`, and the routes of OpenFeature. */
export function flagRoutes(lane: Lane, deps: FlagRouteDependencies & { surveys: OfferedSurveys }): void {
  const { add, addShortcut } = lane.join(MEMBER);
  const answers = createFlagAnswers(lane, deps);
  const evaluate: Handle = (incoming) => {
    const { form, withSettings } = flagsForm(incoming.request.query as Query);
    return answers(incoming, {
      form,
      ...(withSettings
        ? {
            settings: async (project, token) => ({
              ...settingsOf(
                token,
                await deps.flags.hasFlags(project.id),
                await deps.surveys.areRunning(project.id),
              ),
              supportedCompression: COMPRESSION,
            }),
          }
        : {}),
    });
  };
  /** Old clients look whether the endpoint is there. */
  const look: Handle = () => ({
    status: 200,
    body: JSON.stringify({
      ...{ supportedCompression: COMPRESSION, config: { enable_collect_everything: true } },
      ...{ toolbarParams: {}, isAuthenticated: false, sessionRecording: false },
      ...{ featureFlags: {}, flags: {}, errorsWhileComputingFlags: false },
    }),
  });
  add('POST', '/flags', evaluate, {
    summary: 'The feature flags of a user',
    body: requestSchema,
    answer: freeForm,
  });
  add('GET', '/flags', look, { summary: 'Whether the service evaluates flags', answer: freeForm });
  addOfrep(add, lane, deps);
  const { admitted, answer } = deps.flags.definitionAnswers;
  for (const path of DEFINITION_PATHS) {
    const takes = (request: IncomingMessage) => admitted.has(request);
    addShortcut('GET', path, takes, ({ request }) =>
      answer(request, admitted.projectOf(request.raw), { hasCohorts: wantsCohorts(request.raw) }),
    );
  }
}
