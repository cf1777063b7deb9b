// Schedules whose clocks are a part of them. Temporal's API has a field for zone data; its client has none.
import { createHash } from 'node:crypto';
import { type Client, type Connection, ScheduleClient } from '@temporalio/client';

/** Which zone data the clocks of a schedule come from. Its calendar tells it in its comment, because lists show that too. */
export interface ZoneDataMark {
  /** The version of the time zone database, such as `2026c`. */
  version: string;
  /** The beginning of the checksum of the clocks. */
  sum: string;
}

const MARK = /by the time zone data (\S+), clocks ([0-9a-f]{8})$/;

export const markOf = (data: Uint8Array, version: string): ZoneDataMark => ({
  version,
  sum: createHash('sha256').update(data).digest('hex').slice(0, 8),
});

/** Writes the comment of a calendar. */
export const markedComment = (comment: string, { version, sum }: ZoneDataMark): string =>
  `${comment} by the time zone data ${version}, clocks ${sum}`;

/** Reads what a calendar says of its clocks. */
export function readMark(spec: { calendars?: { comment?: string }[] } | undefined): ZoneDataMark | undefined {
  const [, version, sum] = MARK.exec(spec?.calendars?.[0]?.comment ?? '') ?? [];
  return version === undefined || sum === undefined ? undefined : { version, sum };
}

/**
 * Answers whether clocks that are marked so may stay: they are the wanted ones, or those of newer zone data. Whoever has older
 * data leaves them alone. Otherwise two workers would correct each other for ever.
 */
export const mayStay = (found: ZoneDataMark | undefined, wanted: ZoneDataMark): boolean =>
  found !== undefined && (found.sum === wanted.sum || found.version > wanted.version);

/** Makes a client whose schedules get these clocks when they are created or updated. */
export function schedulesWithClocks(client: Client, data: Uint8Array | undefined): ScheduleClient {
  if (data === undefined) return client.schedule;
  const connection = client.connection as Connection;
  const { workflowService } = connection;
  type Request = { schedule?: { spec?: object | null } | null };
  const withData = <R extends Request>(request: R): R => ({
    ...request,
    schedule: { ...request.schedule, spec: { ...request.schedule?.spec, timezoneData: data } },
  });
  const service = {
    ...workflowService,
    createSchedule: (request: Request) => workflowService.createSchedule(withData(request)),
    updateSchedule: (request: Request) => workflowService.updateSchedule(withData(request)),
  };
  return new ScheduleClient({
    connection: Object.create(connection, { workflowService: { value: service } }) as Connection,
    namespace: client.options.namespace,
  });
}
