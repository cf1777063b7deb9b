// The OpenFeature Remote Evaluation Protocol (OFREP): flags for the providers of OpenFeature.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { CompiledFlag } from '../../flags/engine/compile.ts';
import type { Outcome } from '../../flags/engine/outcome.ts';
import type { Evaluated } from '../../flags/evaluator.ts';
import { freeForm } from '../fields.ts';
import type { Answer } from '../public/answer.ts';
import type { Handle, Incoming } from '../public/exchange.ts';
import type { AddRoute, Lane } from '../public/lane.ts';
import { decodeFlagBody, FlagBodyError } from './decode.ts';
import type { FlagRouteDependencies } from './dependencies.ts';
import { LIMITED } from './metered.ts';
import { OfrepError, readContext } from './ofrep-context.ts';
import { runtimeOf } from './request.ts';

const LONGEST_TOKEN = 64;
const NO_KEY = 'Send the key of the project (phc_…) as `Authorization: Bearer` or as `X-API-Key`.';
const WRONG_KEY = 'The key belongs to no project. Send the key of a project (phc_…).';
const OVER_QUOTA = 'The organization has used up its requests for feature flags of this month.';
/** Providers do not ask before. The quota may be raised, or the month be over. */
const RETRY = ['retry-after', '3600'];
const CIRCLE = 'The flag is on a circle of flags that depend on each other.';
const NO_JSON = 'The payload of the flag is not valid JSON.';

/** The reason of a value, by its name in OpenFeature. */
export type OfrepReason = 'STATIC' | 'TARGETING_MATCH' | 'SPLIT' | 'DEFAULT' | 'DISABLED';

/** Why a value is what it is: by a hash, by what is known of the subject, the same for everybody, or by nothing. */
export function reasonFor(flag: CompiledFlag, { code, conditionIndex }: Outcome): OfrepReason {
  const { conditions, variants, definition } = flag;
  switch (code) {
    case 'override':
    case 'super_condition_value':
      return 'TARGETING_MATCH';
    case 'holdout_condition_value':
    case 'out_of_rollout_bound':
      return 'SPLIT';
    case 'condition_match': {
      const condition = conditions[conditionIndex ?? 0];
      const { tests = [], rollout = null, variant = null, group = null } = condition ?? {};
      if ((rollout !== null && rollout < 100) || (variants.length > 0 && variant === null)) return 'SPLIT';
      const isForAll = conditionIndex === 0 && tests.length === 0 && group === null && flag.holdout === null;
      const isByChoice = flag.enrollment !== null || flag.legacyEnrollment !== null;
      return isForAll && !isByChoice && definition.overrides.size === 0 ? 'STATIC' : 'TARGETING_MATCH';
    }
    default:
      return 'DEFAULT';
  }
}

/** An entry of an answer as JSON, with the status that it has as an answer of its own. */
interface Entry {
  status: number;
  json: string;
}

const failure = (status: number, key: string, errorCode: string, errorDetails: string): Entry => ({
  status,
  json: JSON.stringify({ key, errorCode, errorDetails }),
});

/**
 * The value of a flag as JSON; undefined: the default in the code of the application counts. A flag for remote configuration
 * has its payload as its value, whatever type that has. Null: the payload cannot be read.
 */
function valueFor({ definition, variants }: CompiledFlag, { enabled, variant, payload }: Outcome) {
  if (definition.isRemoteConfiguration) {
    if (!enabled || payload === null) return undefined;
    try {
      return JSON.parse(payload) === null ? undefined : payload.trim();
    } catch {
      return null;
    }
  }
  if (enabled) return JSON.stringify(variant ?? true);
  // Its values are texts, so `false` would be of a wrong type.
  return variants.length > 0 ? undefined : 'false';
}

function write(flag: CompiledFlag, outcome: Outcome): Entry {
  const { key, id, version, isRemoteConfiguration } = flag.definition;
  const { code, failed, description, variant, payload } = outcome;
  if (failed) {
    const isAway = code === 'database_error' || code === 'hash_key_override_error';
    const status = isAway ? 503 : code === 'internal_error' ? 500 : 400;
    return failure(status, key, 'GENERAL', `${description}.`);
  }
  const value = valueFor(flag, outcome);
  if (value === null) return failure(400, key, 'PARSE_ERROR', NO_JSON);
  const metadata = {
    ...{ flag_id: id, flag_version: version, reason: description },
    ...(payload === null || isRemoteConfiguration ? {} : { payload }),
  };
  const rest = JSON.stringify({
    ...{ key, reason: reasonFor(flag, outcome) },
    ...(variant === null ? {} : { variant }),
    metadata,
  });
  return { status: 200, json: value === undefined ? rest : `{"value":${value},${rest.slice(1)}` };
}

/** What flags have been for somebody, written once: a flag has few outcomes. */
const entries = new WeakMap<Outcome, Entry>();

function entryOf(flag: CompiledFlag, { evaluation }: Evaluated): Entry {
  const outcome = evaluation.of(flag);
  let entry = entries.get(outcome);
  if (!entry) {
    entry = write(flag, outcome);
    entries.set(outcome, entry);
  }
  return entry;
}

const circleEntry = (key: string) => failure(400, key, 'GENERAL', CIRCLE);

/** The flag that a request names. */
function entryFor(key: string, evaluated: Evaluated): Entry {
  const flag = evaluated.flags.find((one) => one.definition.key === key);
  if (flag) return entryOf(flag, evaluated);
  const { set } = evaluated.project;
  const known = set.byKey.get(key);
  if (known && !known.definition.isActive) {
    const { id, version } = known.definition;
    const metadata = { flag_id: id, flag_version: version };
    return { status: 200, json: JSON.stringify({ key, reason: 'DISABLED', metadata }) };
  }
  if (evaluated.hasCircle) return circleEntry(key);
  return failure(404, key, 'FLAG_NOT_FOUND', `There is no flag ${JSON.stringify(key.slice(0, 400))}.`);
}

/** All flags, as an answer that a client keeps until it changes. */
function bulkAnswer(evaluated: Evaluated, known: string | undefined): Answer {
  const { set } = evaluated.project;
  const list = evaluated.flags.map((flag) => entryOf(flag, evaluated).json);
  for (const { definition } of set.circular) {
    if (definition.isActive) list.push(circleEntry(definition.key).json);
  }
  const body = `{"flags":[${list.join(',')}]}`;
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers = ['etag', etag, 'cache-control', 'private, must-revalidate'];
  if (known?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')) {
    return { status: 304, body: '', headers };
  }
  return { status: 200, body, headers: [...headers, 'content-type', 'application/json; charset=utf-8'] };
}

function tokenOf({ headers }: Incoming['request']): string {
  const bearer = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
  const own = headers['x-api-key'];
  return (bearer ?? (Array.isArray(own) ? own[0] : own) ?? '').trim();
}

const refusal = (status: number, body: unknown): Answer => ({ status, body: JSON.stringify(body) });

const contextSchema = z
  .object({
    context: z
      .looseObject({
        targetingKey: z.string().meta({ description: 'The distinct id of the user.' }),
        groups: freeForm.optional().meta({ description: 'The keys of groups, by type.' }),
        group_properties: freeForm.optional().meta({ description: 'The properties of groups, by type.' }),
        $device_id: z.string().optional(),
        $anon_distinct_id: z.string().optional(),
        $geoip_disable: z.boolean().optional(),
      })
      .meta({ description: 'All other fields are properties of the person.' }),
  })
  .meta({ id: 'OfrepRequest' });
const entrySchema = z
  .object({
    key: z.string(),
    value: z.unknown().optional().meta({ description: 'Without a value, the default in the code counts.' }),
    reason: z.enum(['STATIC', 'TARGETING_MATCH', 'SPLIT', 'DEFAULT', 'DISABLED']).optional(),
    variant: z.string().optional(),
    metadata: freeForm.optional(),
    errorCode: z.string().optional(),
    errorDetails: z.string().optional(),
  })
  .meta({ id: 'OfrepEvaluation' });

/** Adds the routes of OFREP. */
export function addOfrep(
  add: AddRoute,
  lane: Pick<Lane, 'keys'>,
  { flags, flagPlace }: FlagRouteDependencies,
): void {
  /** Evaluates all flags, or the one of this key. An answer instead: the request is refused. */
  async function evaluated(incoming: Incoming, key: string | undefined): Promise<Evaluated | Answer> {
    const { request } = incoming;
    const token = tokenOf(request);
    if (token === '') return refusal(401, { errorDetails: NO_KEY });
    const project = token.length > LONGEST_TOKEN ? undefined : await lane.keys.find(token, request.ip);
    if (!project) return refusal(401, { errorDetails: WRONG_KEY });
    try {
      const { distinctId, geoipDisable, request: asked } = readContext(await decodeFlagBody(incoming));
      // A server asks for one flag after the other, and its address says nothing about the user.
      const isServer = key !== undefined;
      const found = await flags.metered.evaluate(project.id, {
        ...{ ...asked, distinctId, keys: key === undefined ? undefined : [key] },
        place: isServer || geoipDisable || !flagPlace ? {} : flagPlace(request.ip),
        runtime: runtimeOf(request.headers) ?? (isServer ? 'server' : 'client'),
      });
      if (key !== undefined) flags.calls.note(project.id, key);
      if (found === LIMITED) return { ...refusal(429, { errorDetails: OVER_QUOTA }), headers: RETRY };
      return found ?? refusal(401, { errorDetails: WRONG_KEY });
    } catch (error) {
      const own = key === undefined ? {} : { key };
      if (error instanceof OfrepError) {
        return refusal(400, { ...own, errorCode: error.code, errorDetails: error.message });
      }
      if (error instanceof FlagBodyError) {
        return refusal(error.status, { ...own, errorCode: 'PARSE_ERROR', errorDetails: error.message });
      }
      throw error;
    }
  }

  const one: Handle = async (incoming) => {
    const { key } = incoming.request.params as { key: string };
    const found = await evaluated(incoming, key);
    if ('status' in found) return found;
    const { status, json } = entryFor(key, found);
    return { status, body: json };
  };
  const all: Handle = async (incoming) => {
    const found = await evaluated(incoming, undefined);
    return 'status' in found ? found : bulkAnswer(found, incoming.request.headers['if-none-match']);
  };
  add('POST', '/ofrep/v1/evaluate/flags/:key', one, {
    summary: 'One flag, for OpenFeature',
    body: contextSchema,
    params: z.object({ key: z.string() }),
    answer: entrySchema,
  });
  add('POST', '/ofrep/v1/evaluate/flags', all, {
    summary: 'All flags, for OpenFeature',
    body: contextSchema,
    answer: z.object({ flags: z.array(entrySchema) }).meta({ id: 'OfrepEvaluations' }),
  });
}
