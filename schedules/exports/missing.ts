import { status } from '@grpc/grpc-js';
import type { Client, Connection } from '@temporalio/client';
import { refuse } from '../../refusals.ts';
import { codeOf } from '../answers.ts';
import { missingSearchAttributes, whatIsMissing } from '../search-attributes.ts';

/** A worker looks every minute whether they are registered. */
const RETRY_SECONDS = 60;

/**
 * Starts something. If Temporal refuses it because the namespace lacks search attributes, throws a Refusal that names them: it
 * looks like a Temporal that is away, but waiting does not help.
 */
export async function namingMissing<T>(
  client: Client,
  namespace: string,
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (error) {
    if (codeOf(error) !== status.INVALID_ARGUMENT) throw error;
    const missing = await missingSearchAttributes(client.connection as Connection, namespace);
    if (missing.length === 0) throw error;
    throw refuse.unavailable(
      `${whatIsMissing(missing, { TEMPORAL_NAMESPACE: namespace })} Whoever runs Sluice sees with \`npx sluice doctor\` how to register them.`,
      RETRY_SECONDS,
    );
  }
}
