import { Reader, type Response } from 'mmdb-lib';
import { placeOf } from './place.ts';

/** The bytes are no database that tells where an address is; the message says why. */
export class GeoipDatabaseError extends Error {
  override name = 'GeoipDatabaseError';
}

export interface GeoipDatabase {
  /** As the database calls itself, `GeoLite2-City`. */
  type: string;
  built: Date;
  /** The record of an address, null when there is none. Throws where the file is damaged. */
  find(address: string): unknown;
}

/** Between the tree and the records. */
const SEPARATOR_BYTES = 16;
/** As many networks are looked at before a database is believed. */
const LOOKED_AT = 1_000;

function addressText(number: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 0xffn).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(112 - index * 16)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join(':');
}

/** Whether the first networks of the tree can be read and any of them tells of a place. */
function tellsOfPlaces(reader: Reader<Response>, bits: 32 | 128): boolean {
  let found = false;
  let next = 0n;
  for (let looked = 0; looked < LOOKED_AT && next < 1n << BigInt(bits); looked += 1) {
    const [record, prefix] = reader.getWithPrefixLength(addressText(next, bits));
    found ||= record !== null && placeOf(record) !== undefined;
    next += 1n << BigInt(bits - prefix);
  }
  return found;
}

function open(bytes: Buffer): Reader<Response> {
  try {
    return new Reader(bytes);
  } catch (error) {
    throw new GeoipDatabaseError('is not a MaxMind database (.mmdb), or not a whole one', { cause: error });
  }
}

/** Reads a database of MaxMind's form and makes sure that it is one which tells of places. */
export function readGeoipDatabase(bytes: Buffer): GeoipDatabase {
  const reader = open(bytes);
  const { binaryFormatMajorVersion, ipVersion, nodeCount, searchTreeSize, databaseType, buildEpoch } =
    reader.metadata;
  if (binaryFormatMajorVersion !== 2 || (ipVersion !== 4 && ipVersion !== 6)) {
    throw new GeoipDatabaseError(
      `has a form that is not known: version ${binaryFormatMajorVersion} for IPv${ipVersion}`,
    );
  }
  const separator = bytes.subarray(searchTreeSize, searchTreeSize + SEPARATOR_BYTES);
  const isWhole =
    nodeCount > 0 && separator.length === SEPARATOR_BYTES && separator.every((one) => one === 0);
  if (!isWhole) throw new GeoipDatabaseError('is damaged: its search tree is not as long as it says');
  let found: boolean;
  try {
    found = tellsOfPlaces(reader, ipVersion === 6 ? 128 : 32);
  } catch (error) {
    throw new GeoipDatabaseError(`is damaged: ${(error as Error).message}`, { cause: error });
  }
  if (!found) {
    throw new GeoipDatabaseError(
      `is a ${databaseType} database, which does not tell where addresses are; a City or Country database does`,
    );
  }
  return {
    type: databaseType,
    built: buildEpoch,
    // The reader would take the first bits of an IPv6 address for an IPv4 address.
    find: (address) => (ipVersion === 4 && address.includes(':') ? null : reader.get(address)),
  };
}
