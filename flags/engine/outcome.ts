import { asciiJson, inOnePiece } from '../../values/ascii-json.ts';
import type { FlagDefinition } from './definition.ts';
import { describe, type FailureCode, type ReasonCode, type SCORES } from './reasons.ts';

/** What a flag is for somebody, and why, with its parts of the answers as texts. The texts have ASCII characters only. */
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
  /** The same after a comma. */
  furtherDetail: string;
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

/** Why no condition of a flag matched. */
export type Unmatched = keyof typeof SCORES;

/** The place in a list for the index of a condition, or for none. */
const placeFor = (conditionIndex: number | null): number =>
  conditionIndex === null ? 0 : conditionIndex + 1;

/** The outcomes that a flag has had. There are few, and each is written down once, as text too. */
export class Outcomes {
  readonly #definition: FlagDefinition;
  readonly #payloads: ReadonlyMap<string, string>;
  readonly #known = new Map<string, Outcome>();
  // The commonest outcomes, found without making a name for them.
  readonly #matched: (Outcome | undefined)[] = [];
  readonly #variants: (Map<string, Outcome> | undefined)[] = [];
  readonly #unmatched: Readonly<Record<Unmatched, (Outcome | undefined)[]>> = {
    ...{ out_of_rollout_bound: [], no_condition_match: [], no_group_type: [] },
  };

  constructor(definition: FlagDefinition, payloads: ReadonlyMap<string, string>) {
    this.#definition = definition;
    this.#payloads = payloads;
  }

  /** A condition matched. */
  matched(conditionIndex: number, variant: string | null): Outcome {
    const parts = { enabled: true, variant, code: 'condition_match', conditionIndex } as const;
    if (variant === null) {
      const known = this.#matched[conditionIndex];
      if (known) return known;
      const outcome = this.of(parts);
      this.#matched[conditionIndex] = outcome;
      return outcome;
    }
    let variants = this.#variants[conditionIndex];
    if (!variants) {
      variants = new Map();
      this.#variants[conditionIndex] = variants;
    }
    const known = variants.get(variant);
    if (known) return known;
    const outcome = this.of(parts);
    variants.set(variant, outcome);
    return outcome;
  }

  /** No condition matched. The index is that of the condition whose reason is told. */
  unmatched(code: Unmatched, conditionIndex: number | null): Outcome {
    const list = this.#unmatched[code];
    const place = placeFor(conditionIndex);
    const known = list[place];
    if (known) return known;
    const outcome = this.of({ enabled: false, code, conditionIndex });
    list[place] = outcome;
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

  #written(told: Omit<Outcome, 'detail' | 'furtherDetail' | 'value' | 'payloadEntry' | 'told'>): Outcome {
    const { key, id, version } = this.#definition;
    const { enabled, variant, code, conditionIndex, description, failed, payload } = told;
    const name = asciiJson(key);
    const detail = asciiJson({
      key,
      enabled,
      variant,
      ...(failed ? { failed } : {}),
      reason: { code, condition_index: conditionIndex, description },
      metadata: { id, version, description: null, payload, has_experiment: false },
    });
    return {
      ...told,
      detail: inOnePiece(`${name}:${detail}`),
      furtherDetail: inOnePiece(`,${name}:${detail}`),
      value: `${name}:${asciiJson(enabled ? (variant ?? true) : false)}`,
      payloadEntry: payload === null ? null : `${name}:${asciiJson(payload)}`,
      told: 0,
    };
  }
}
