import { PlainError } from './values/plain-error.ts';

/**
 * Why a command refuses what it is asked to do. The set is closed; each edge translates it once: the API into an answer,
 * the command line into a sentence.
 */
export type RefusalKind =
  /** The request is wrong: `field` names where. Repeating it does not help. */
  | 'invalid'
  /** The thing does not exist, or the actor may not know that it does. */
  | 'absent'
  /** The actor may not do this. */
  | 'forbidden'
  /** Others change the same thing at the same time. Repeating it helps. */
  | 'contested'
  /** Too much of this is under way. Repeating it later helps. */
  | 'crowded'
  /** Something that the command needs is away. Repeating it later helps. */
  | 'unavailable';

export interface RefusalDetails {
  /** A word for programs, such as `invalid_choice`. */
  code?: string;
  /** Names the wrong field of the request; levels are joined by `__`. */
  field?: string | null;
  /** Says more, where `message` is a sentence that clients know. */
  reason?: string | null;
  /** How long to wait before asking again. */
  retrySeconds?: number;
}

/** Says no, with a sentence for whoever asked. The message never contains a secret. */
export class Refusal extends PlainError {
  override readonly name = 'Refusal';
  readonly kind: RefusalKind;
  readonly code: string;
  readonly field: string | null;
  readonly reason: string | null;
  readonly retrySeconds: number;

  constructor(kind: RefusalKind, message: string, details: RefusalDetails = {}) {
    super(message);
    this.kind = kind;
    this.code = details.code ?? 'invalid_input';
    this.field = details.field ?? null;
    this.reason = details.reason ?? null;
    this.retrySeconds = details.retrySeconds ?? 0;
  }
}

export const refuse = {
  invalid: (field: string | null, message: string, details: Omit<RefusalDetails, 'field'> = {}) =>
    new Refusal('invalid', message, { ...details, field }),
  absent: (message = 'Not found.') => new Refusal('absent', message),
  forbidden: (message: string) => new Refusal('forbidden', message),
  contested: (message: string, retrySeconds: number, code = 'conflict') =>
    new Refusal('contested', message, { retrySeconds, code }),
  crowded: (message: string, retrySeconds: number) => new Refusal('crowded', message, { retrySeconds }),
  unavailable: (message: string, retrySeconds: number) =>
    new Refusal('unavailable', message, { retrySeconds }),
} as const;
