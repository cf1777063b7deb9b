import type { Pool } from '../../db/pool.ts';
import type { Asker } from '../../db/turns.ts';
import { readEventProperties } from '../reads/event-properties.ts';
import { refusing } from './refusing.ts';

/** Returns the names of the properties that the newest events of some names have. */
export const propertiesOfEvents = (
  { reader }: { reader: Pool },
  asker: Asker,
  events: readonly string[],
): Promise<string[]> => refusing(() => readEventProperties(reader, asker, events), null);
