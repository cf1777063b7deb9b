import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Logger } from '../telemetry/logger.ts';
import { isLocal, plainAddress } from '../values/addresses.ts';
import {
  flagPropertiesOf,
  type GeoipDatabase,
  GeoipDatabaseError,
  type Place,
  placeOf,
  readGeoipDatabase,
} from './database.ts';

export interface Geoip {
  /**
   * Returns the location of an address as event properties. Returns undefined if it is unknown, local, or not an
   * address.
   */
  place(address: unknown): Place | undefined;
  /** Returns the properties of the location that flags can use. */
  flagProperties(address: unknown): Record<string, string>;
  /** Reads the file again if it was replaced. This also happens automatically every few seconds. */
  refresh(): Promise<void>;
  close(): void;
}

const LOOK_EVERY = 10_000;
const REMEMBERED = 10_000;
const UNKNOWN = Symbol('unknown');

/** No notation of an address is longer. */
const LONGEST_ADDRESS = 64;

/**
 * Returns the standard form of an address that can have a location. Returns undefined for local addresses and
 * everything else.
 */
export function locatableAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > LONGEST_ADDRESS) return undefined;
  const text = value.trim();
  // An address with a zone is link-local.
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  const address = plainAddress(text);
  return address === undefined || isLocal(address) ? undefined : address;
}

/** Returns a text that changes when the file is replaced, written, or made readable. */
async function versionOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true });
  if (!found.isFile()) throw new GeoipDatabaseError('is not a file');
  return `${found.dev} ${found.ino} ${found.size} ${found.ctimeNs}`;
}

/** Reads the whole file. Refuses a file that changes while it is being read. */
async function readWhole(file: string): Promise<{ bytes: Buffer; version: string }> {
  const before = await versionOf(file);
  const bytes = await readFile(file);
  const version = await versionOf(file);
  if (version !== before) throw new GeoipDatabaseError('changed while it was being read');
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
 * Opens the database and watches its file. A valid new file is used at once. If the file is missing or invalid, the old
 * database stays in use. Rejects if the first file cannot be used.
 */
export async function openGeoip(options: {
  file: string;
  logger?: Pick<Logger, 'info' | 'warn'>;
  lookEvery?: number;
}): Promise<Geoip> {
  const { file, logger } = options;
  const recent = new LRUCache<string, Place | typeof UNKNOWN>({ max: REMEMBERED });
  let database: GeoipDatabase;
  /** The version of the file at the last check, valid or not. Undefined if there was no file. */
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
      // The log already says that the file is missing.
      const isKnown = version === undefined && seen === undefined;
      seen = version;
      if (!isKnown)
        logger?.warn({ err: error }, `${complaint(file, error)} The database read before stays in use.`);
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
      // Opening the database checks only a part of it, so damage can appear later. No event is lost because of it.
      if (!complained) logger?.warn({ err: error }, `SLUICE_GEOIP_DATABASE: ${file} is damaged.`);
      complained = true;
      return undefined;
    }
  }

  function place(address: unknown): Place | undefined {
    if (typeof address !== 'string') return undefined;
    const known = recent.get(address);
    if (known !== undefined) return known === UNKNOWN ? undefined : known;
    const wanted = locatableAddress(address);
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
