import type { FlagRequest } from '../../flags/evaluator.ts';
import { ExactNumber, isExactObject } from '../../values/exact-json.ts';
import { readFlagBody } from './request.ts';

/** Why nothing can be evaluated, by its name in OpenFeature. */
export type RequestErrorCode = 'PARSE_ERROR' | 'TARGETING_KEY_MISSING' | 'INVALID_CONTEXT';

/** A request that cannot be evaluated. */
export class OfrepError extends Error {
  override name = 'OfrepError';
  readonly code: RequestErrorCode;

  constructor(code: RequestErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The parts of a context that are not properties of the person. */
const OWN = new Set([
  ...['targetingKey', 'groups', 'group_properties'],
  ...['$device_id', '$anon_distinct_id', '$geoip_disable'],
]);

export interface OfrepContext {
  distinctId: string;
  geoipDisable: boolean;
  request: Omit<FlagRequest, 'distinctId' | 'place' | 'runtime' | 'surveysOnly'>;
}

/** Reads an evaluation context of OpenFeature. Whatever has no meaning of its own is a property of the person. */
export function readContext(body: unknown): OfrepContext {
  if (!isExactObject(body)) throw new OfrepError('PARSE_ERROR', 'The body must be an object with a context.');
  const { context = {} } = body;
  if (!isExactObject(context)) throw new OfrepError('INVALID_CONTEXT', 'context must be an object.');
  const { targetingKey, $geoip_disable: geoipDisable } = context;
  const isNumber = typeof targetingKey === 'number' || targetingKey instanceof ExactNumber;
  if (targetingKey === undefined || targetingKey === null || targetingKey === '') {
    throw new OfrepError('TARGETING_KEY_MISSING', 'context.targetingKey is missing: it is the distinct id.');
  }
  if (typeof targetingKey !== 'string' && !isNumber) {
    throw new OfrepError('INVALID_CONTEXT', 'context.targetingKey must be a string.');
  }
  try {
    const { distinctId = '', request } = readFlagBody({
      distinct_id: targetingKey,
      groups: context.groups,
      group_properties: context.group_properties,
      $device_id: context.$device_id,
      $anon_distinct_id: context.$anon_distinct_id,
      person_properties: Object.fromEntries(Object.entries(context).filter(([name]) => !OWN.has(name))),
    });
    return { distinctId, geoipDisable: geoipDisable === true, request };
  } catch (error) {
    throw new OfrepError('INVALID_CONTEXT', `The context cannot be read: ${reasonOf(error)}`);
  }
}

/** What of the sentence about a body concerns the field. */
function reasonOf(error: unknown): string {
  const { message } = error as Error;
  return /invalid JSON: (.*?)\. Please/.exec(message)?.[1] ?? message;
}
