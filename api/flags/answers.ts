import type { Evaluated } from '../../flags/evaluator.ts';
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

interface Lists {
  details: string[];
  values: string[];
  enabledValues: string[];
  enabledKeys: string[];
  payloads: string[];
  hasFailed: boolean;
}

function listsOf(evaluated: Evaluated | undefined, form: Form): Lists {
  const lists: Lists = {
    ...{ details: [], values: [], enabledValues: [], enabledKeys: [], payloads: [] },
    hasFailed: evaluated?.hasCircle ?? false,
  };
  if (!evaluated) return lists;
  for (const flag of evaluated.flags) {
    const outcome = evaluated.evaluation.of(flag);
    outcome.told += 1;
    if (outcome.failed) lists.hasFailed = true;
    if (form === 'detailed') lists.details.push(outcome.detail);
    else {
      lists.values.push(outcome.value);
      if (outcome.payloadEntry !== null) lists.payloads.push(outcome.payloadEntry);
      if (!outcome.enabled) continue;
      lists.enabledValues.push(outcome.value);
      lists.enabledKeys.push(JSON.stringify(flag.definition.key));
    }
  }
  return lists;
}

/** Writes the answer. Its parts are texts already, so nothing is turned into JSON again. */
export function writeAnswer(parts: AnswerParts): string {
  const { form, evaluated, requestId, now, config } = parts;
  const isLimited = evaluated === LIMITED;
  const { details, values, enabledValues, enabledKeys, payloads, hasFailed } = listsOf(
    isLimited ? undefined : evaluated,
    form,
  );
  const quota = isLimited ? ',"quotaLimited":["feature_flags"]' : '';
  const rest = `,"requestId":"${requestId}","evaluatedAt":${now}${quota}${
    config ? `,${JSON.stringify(config).slice(1, -1)}` : ''
  }}`;
  const errors = `"errorsWhileComputingFlags":${hasFailed}`;
  switch (form) {
    case 'detailed':
      return `{${errors},"flags":{${details.join(',')}}${rest}`;
    case 'values':
      return `{${errors},"featureFlags":{${values.join(',')}},"featureFlagPayloads":{${payloads.join(',')}}${rest}`;
    case 'enabled values':
      return `{"featureFlags":{${enabledValues.join(',')}}${rest}`;
    case 'enabled keys':
      return `{"featureFlags":[${enabledKeys.join(',')}]${rest}`;
  }
}
