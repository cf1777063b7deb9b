import type { FlagDefinition } from './definition.ts';
import { describe, type FailureCode, type ReasonCode } from './reasons.ts';

/** What a flag is for somebody, and why, with its parts of the answers as texts. */
export interface Outcome {
  enabled: boolean;
  variant: string | null;
  code: ReasonCode;
  conditionIndex: number | null;
  description: string;
  failed: boolean;
  payload: string | null;
  /** `"key":{…}` of the answer of today. */
  detail: string;
  /** `"key":value` of older answers. */
  value: string;
  /** `"key":"payload"` of older answers. Null: it has none. */
  payloadEntry: string | null;
  /** How often it was told since that was counted last. */
  told: number;
}

export interface OutcomeParts {
  enabled: boolean;
  variant?: string | null;
  code: ReasonCode;
  conditionIndex?: number | null;
  skippedGroups?: boolean;
  failed?: boolean;
  /** The payload is told although the flag is off. */
  withPayload?: boolean;
}

/** The outcomes that a flag has had. There are few, and each is written down once, as text too. */
export class Outcomes {
  readonly #definition: FlagDefinition;
  readonly #payloads: ReadonlyMap<string, string>;
  readonly #known = new Map<string, Outcome>();
  readonly #matches: (Outcome | undefined)[] = [];

  constructor(definition: FlagDefinition, payloads: ReadonlyMap<string, string>) {
    this.#definition = definition;
    this.#payloads = payloads;
  }

  /** A condition matched, and there is no variant. The commonest outcome, found without making a name for it. */
  matched(conditionIndex: number): Outcome {
    let outcome = this.#matches[conditionIndex];
    if (!outcome) {
      outcome = this.of({ enabled: true, code: 'condition_match', conditionIndex });
      this.#matches[conditionIndex] = outcome;
    }
    return outcome;
  }

  failed(code: FailureCode): Outcome {
    return this.of({ enabled: false, code, failed: true });
  }

  of(parts: OutcomeParts): Outcome {
    const { enabled, variant = null, code, conditionIndex = null } = parts;
    const { skippedGroups = false, failed = false, withPayload = enabled } = parts;
    const name = `${code} ${conditionIndex} ${enabled} ${skippedGroups} ${variant}`;
    let outcome = this.#known.get(name);
    if (!outcome) {
      const payload = withPayload ? (this.#payloads.get(variant ?? 'true') ?? null) : null;
      const description = describe(code, conditionIndex, skippedGroups);
      outcome = this.#written({ enabled, variant, code, conditionIndex, description, failed, payload });
      this.#known.set(name, outcome);
    }
    return outcome;
  }

  /** All that the flag has had. */
  all(): Iterable<Outcome> {
    return this.#known.values();
  }

  #written(told: Omit<Outcome, 'detail' | 'value' | 'payloadEntry' | 'told'>): Outcome {
    const { key, id, version } = this.#definition;
    const { enabled, variant, code, conditionIndex, description, failed, payload } = told;
    const name = JSON.stringify(key);
    const detail = JSON.stringify({
      key,
      enabled,
      variant,
      ...(failed ? { failed } : {}),
      reason: { code, condition_index: conditionIndex, description },
      metadata: { id, version, description: null, payload, has_experiment: false },
    });
    return {
      ...told,
      detail: `${name}:${detail}`,
      value: `${name}:${JSON.stringify(enabled ? (variant ?? true) : false)}`,
      payloadEntry: payload === null ? null : `${name}:${JSON.stringify(payload)}`,
      told: 0,
    };
  }
}
