import { readFile, stat } from 'node:fs/promises';
import type { Logger } from '../telemetry/logger.ts';
import { publicAddress } from './address.ts';
import { type GeoipDatabase, GeoipDatabaseError, readGeoipDatabase } from './database.ts';
import { flagPropertiesOf, type Place, placeOf } from './place.ts';
import { Recent } from './recent.ts';

export interface Geoip {
  /** Where an address is, as properties of events; undefined for private addresses, unknown ones and nonsense. */
  place(address: unknown): Place | undefined;
  /** The properties that flags are evaluated with, as far as they are known. */
  flagProperties(address: unknown): Record<string, string>;
  /** Looks whether the file was replaced. It does so by itself, too. */
  refresh(): Promise<void>;
  close(): void;
}

const LOOK_EVERY = 10_000;
const REMEMBERED = 10_000;
const UNKNOWN = Symbol('unknown');

/** Differs when the file is replaced, written to, or made readable. */
async function versionOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true });
  if (!found.isFile()) throw new GeoipDatabaseError('is not a file');
  return `${found.dev} ${found.ino} ${found.size} ${found.ctimeNs}`;
}

/** The whole file as it was at one moment; a file that changes meanwhile is a broken one. */
async function readWhole(file: string): Promise<{ bytes: Buffer; version: string }> {
  const before = await versionOf(file);
  const bytes = await readFile(file);
  const version = await versionOf(file);
  if (version !== before) throw new GeoipDatabaseError('was changed while it was read');
  return { bytes, version };
}

function complaint(file: string, error: unknown): string {
  const reason =
    error instanceof GeoipDatabaseError
      ? `${file} ${error.message}`
      : `the file ${file} cannot be read (${(error as Error).message})`;
  return `SLUICE_GEOIP_DATABASE: ${reason}.`;
}

/**
 * Opens the database and follows its file: a replacement is taken when it is whole, and as a whole; until then, and
 * when it is broken, the one that was read before goes on answering. Rejects when the first one cannot be used.
 */
export async function openGeoip(options: {
  file: string;
  logger?: Pick<Logger, 'info' | 'warn'>;
  lookEvery?: number;
}): Promise<Geoip> {
  const { file, logger } = options;
  const recent = new Recent<Place | typeof UNKNOWN>(REMEMBERED);
  let database: GeoipDatabase;
  /** Of the file that was looked at last, whether it could be used or not; undefined when there was none. */
  let seen: string | undefined;
  let complained = false;
  let looking: Promise<void> | undefined;

  async function load(): Promise<void> {
    const { bytes, version } = await readWhole(file);
    seen = version;
    database = readGeoipDatabase(bytes);
    recent.clear();
    complained = false;
    logger?.info({ file, type: database.type, built: database.built }, 'the GeoIP database was read');
  }

  async function look(): Promise<void> {
    let version: string | undefined;
    try {
      version = await versionOf(file);
      if (version === seen) return;
      await load();
    } catch (error) {
      // A file that is still missing was complained about before.
      const isKnown = version === undefined && seen === undefined;
      seen = version;
      if (!isKnown)
        logger?.warn({ err: error }, `${complaint(file, error)} The one read before stays in use.`);
    }
  }

  try {
    await load();
  } catch (error) {
    throw new Error(complaint(file, error), { cause: error });
  }
  const refresh = () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = setInterval(() => void refresh(), options.lookEvery ?? LOOK_EVERY);
  timer.unref();

  function find(address: string): Place | undefined {
    try {
      return placeOf(database.find(address));
    } catch (error) {
      // A part of the file is damaged that was not looked at when it was read. No event is lost over that.
      if (!complained) logger?.warn({ err: error }, `SLUICE_GEOIP_DATABASE: ${file} is damaged.`);
      complained = true;
      return undefined;
    }
  }

  function place(address: unknown): Place | undefined {
    if (typeof address !== 'string') return undefined;
    const known = recent.get(address);
    if (known !== undefined) return known === UNKNOWN ? undefined : known;
    const wanted = publicAddress(address);
    if (wanted === undefined) return undefined;
    const found = find(wanted);
    recent.set(address, found ?? UNKNOWN);
    return found;
  }

  return {
    place,
    flagProperties: (address) => flagPropertiesOf(place(address)),
    refresh,
    close: () => clearInterval(timer),
  };
}
