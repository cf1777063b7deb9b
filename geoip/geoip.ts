import { readFile, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
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
  /** Where an address is, as properties of events; undefined when it is unknown, local, or no address at all. */
  place(address: unknown): Place | undefined;
  /** The known properties of the place that flags are evaluated with. */
  flagProperties(address: unknown): Record<string, string>;
  /** Reads the file again if it was replaced. This also happens by itself every few seconds. */
  refresh(): Promise<void>;
  close(): void;
}

const LOOK_EVERY = 10_000;
const REMEMBERED = 10_000;
const UNKNOWN = Symbol('unknown');

/** No spelling of an address is longer. */
const LONGEST_ADDRESS = 64;

/** The one spelling of an address that can be in some place; undefined for local addresses and for anything else. */
export function locatableAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > LONGEST_ADDRESS) return undefined;
  const text = value.trim();
  // An address with a zone is one of a link.
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  const address = plainAddress(text);
  return address === undefined || isLocal(address) ? undefined : address;
}

/** The latest answers, at most `size` of them. The one that was asked for longest ago goes first. */
export class Recent<Value> {
  readonly #size: number;
  /** A map keeps the order in which its entries came. */
  readonly #entries = new Map<string, Value>();

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    if (this.#entries.size >= this.#size) this.#entries.delete(this.#entries.keys().next().value as string);
    this.#entries.set(key, value);
  }

  clear(): void {
    this.#entries.clear();
  }
}

/** A text that changes when the file is replaced, written to, or made readable. */
async function versionOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true });
  if (!found.isFile()) throw new GeoipDatabaseError('is not a file');
  return `${found.dev} ${found.ino} ${found.size} ${found.ctimeNs}`;
}

/** Reads the whole file as it is at one moment. A file that changes meanwhile counts as broken. */
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
 * Opens the database and follows its file. A whole replacement is taken at once; while there is none, or when it is
 * broken, the database that was read before goes on answering. Rejects when the first file cannot be used.
 */
export async function openGeoip(options: {
  file: string;
  logger?: Pick<Logger, 'info' | 'warn'>;
  lookEvery?: number;
}): Promise<Geoip> {
  const { file, logger } = options;
  const recent = new Recent<Place | typeof UNKNOWN>(REMEMBERED);
  let database: GeoipDatabase;
  /** The version of the file at the last look, usable or not; undefined when there was no file. */
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
      // Opening the database reads only a part of it, so damage can show up here. No event is lost over it.
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
