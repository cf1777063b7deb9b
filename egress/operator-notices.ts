import type { Egress } from './egress.ts';
import { egressRefusal } from './egress-refused.ts';

/** A notice could not be sent. */
export class NoticeError extends Error {
  override readonly name = 'NoticeError';
  /** Whether the webhook may take the notice later. */
  readonly again: boolean;

  constructor(message: string, again: boolean) {
    super(message);
    this.again = again;
  }
}

export interface OperatorWebhook {
  egress: Pick<Egress, 'fetch'>;
  /** SLUICE_NOTICE_WEBHOOK */
  url: string;
}

const TIMEOUT = 15_000;

/**
 * Posts a notice to the webhook of the operators. The receiver recognizes a repeated notice by its idempotency key. Throws a
 * NoticeError if it did not arrive.
 */
export async function postNotice(
  { egress, url }: OperatorWebhook,
  body: object,
  idempotencyKey: string,
): Promise<void> {
  const { status } = await egress
    .fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Sluice',
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify(body),
      timeoutMilliseconds: TIMEOUT,
      maxAnswerBytes: 1024,
    })
    .catch((error) => {
      const refused = egressRefusal(error);
      if (refused) {
        throw new NoticeError(`SLUICE_NOTICE_WEBHOOK must not be reached: ${refused.message}`, false);
      }
      const { code } = error as { code?: string };
      throw new NoticeError(`SLUICE_NOTICE_WEBHOOK cannot be reached${code ? ` (${code})` : ''}`, true);
    });
  if (status >= 200 && status < 300) return;
  const later = status >= 500 || status === 429 || status === 408;
  throw new NoticeError(`SLUICE_NOTICE_WEBHOOK answered ${status}`, later);
}
