import { EventsRefusedError, IngestUnavailableError } from '../../capture/ingest.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { type ApiError, errors } from '../errors.ts';

/** An event by which the API changes a person or a group. */
interface OwnEvent {
  projectId: number;
  event: string;
  distinctId: string;
  properties: Record<string, unknown>;
}

/**
 * Stores an event of the API's own. Persons and groups change by events alone, so exports, functions and whoever looks at the
 * events learn of it. Refuses what the event asks for and does not get.
 */
export async function storeOwnEvent(
  { ingest }: Pick<ApiDependencies, 'ingest'>,
  { projectId, event, distinctId, properties }: OwnEvent,
): Promise<void> {
  const now = Date.now();
  const stored = {
    ...{ index: 0, uuid: uuidv7(now), event, distinct_id: distinctId, properties },
    ...{ timestamp: now, received_at: now, ip: undefined, historical: false },
  };
  const { notices = [] } = await ingest.submit({ projectId, events: [stored] }).catch((error: unknown) => {
    throw refusalOf(error);
  });
  const [notice] = notices;
  if (notice) {
    const reason = notice.reason.replaceAll('_', ' ');
    throw errors.validation('invalid_input', `The change was not made: ${reason}.`, null);
  }
}

function refusalOf(error: unknown): ApiError | unknown {
  if (error instanceof IngestUnavailableError)
    return errors.unavailable(error.message, error.retryAfterSeconds);
  return error instanceof EventsRefusedError
    ? errors.validation('invalid_input', error.message, null)
    : error;
}
