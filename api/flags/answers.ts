import type { CompiledFlag } from '../../flags/engine/compile.ts';
import type { Outcome } from '../../flags/engine/outcome.ts';
import type { Evaluated } from '../../flags/evaluator.ts';
import { asciiJson } from '../../values/ascii-json.ts';
import { LIMITED, type Limited } from './metered.ts';

/** The forms of answers that clients of different ages read. */
export type Form = 'detailed' | 'values' | 'enabled values' | 'enabled keys';

export interface AnswerParts {
  form: Form;
  /** Undefined: flags were not asked for. Limited: nothing is left of the organization's quota. */
  evaluated: Evaluated | Limited | undefined;
  requestId: string;
  now: number;
  /** Settings of clients, beside the flags. */
  config: Record<string, unknown> | undefined;
}

/** The details of the flags as the inside of an object, and whether one of them has failed. */
function detailsOf({ selection, evaluation, hasCircle }: Evaluated): { details: string; hasFailed: boolean } {
  const { constant, varying } = selection;
  for (let index = 0; index < constant.length; index += 1) (constant[index] as Outcome).told += 1;
  let details = selection.constantDetails;
  let hasFailed = hasCircle;
  for (let index = 0; index < varying.length; index += 1) {
    const outcome = evaluation.of(varying[index] as CompiledFlag);
    outcome.told += 1;
    if (outcome.failed) hasFailed = true;
    details += details === '' ? outcome.detail : outcome.furtherDetail;
  }
  return { details, hasFailed };
}

interface Lists {
  values: string[];
  enabledValues: string[];
  enabledKeys: string[];
  payloads: string[];
  hasFailed: boolean;
}

/** The same for older answers. */
function listsOf({ flags, evaluation, hasCircle }: Evaluated): Lists {
  const lists: Lists = { values: [], enabledValues: [], enabledKeys: [], payloads: [], hasFailed: hasCircle };
  for (const flag of flags) {
    const outcome = evaluation.of(flag);
    outcome.told += 1;
    if (outcome.failed) lists.hasFailed = true;
    lists.values.push(outcome.value);
    if (outcome.payloadEntry !== null) lists.payloads.push(outcome.payloadEntry);
    if (!outcome.enabled) continue;
    lists.enabledValues.push(outcome.value);
    lists.enabledKeys.push(asciiJson(flag.definition.key));
  }
  return lists;
}

function flagsOf(form: Form, evaluated: Evaluated | undefined): string {
  if (form === 'detailed') {
    const { details, hasFailed } = evaluated ? detailsOf(evaluated) : { details: '', hasFailed: false };
    return `"errorsWhileComputingFlags":${hasFailed},"flags":{${details}}`;
  }
  const { values, enabledValues, enabledKeys, payloads, hasFailed } = evaluated
    ? listsOf(evaluated)
    : { values: [], enabledValues: [], enabledKeys: [], payloads: [], hasFailed: false };
  switch (form) {
    case 'values':
      return (
        `"errorsWhileComputingFlags":${hasFailed},"featureFlags":{${values.join(',')}},` +
        `"featureFlagPayloads":{${payloads.join(',')}}`
      );
    case 'enabled values':
      return `"featureFlags":{${enabledValues.join(',')}}`;
    case 'enabled keys':
      return `"featureFlags":[${enabledKeys.join(',')}]`;
  }
}

/** Writes the answer, in ASCII. Its parts are texts already, so nothing is turned into JSON again. */
export function writeAnswer({ form, evaluated, requestId, now, config }: AnswerParts): string {
  const isLimited = evaluated === LIMITED;
  const told = flagsOf(form, isLimited ? undefined : evaluated);
  const quota = isLimited ? ',"quotaLimited":["feature_flags"]' : '';
  const settings = config ? `,${asciiJson(config).slice(1, -1)}` : '';
  return `{${told},"requestId":"${requestId}","evaluatedAt":${now}${quota}${settings}}`;
}
