// Reads databases in MaxMind's format and finds the location of an address.
import { Reader, type Response } from 'mmdb-lib';

/** The location of an address, as event properties. Unknown properties are absent. */
export type Place = Readonly<Record<string, string | number>>;

type Step = string | number;

/** Each property, and its path in a record of a City, Enterprise or Country database. */
const TEXTS: readonly (readonly [property: string, ...steps: Step[]])[] = [
  ['$geoip_city_name', 'city', 'names', 'en'],
  ['$geoip_country_name', 'country', 'names', 'en'],
  ['$geoip_country_code', 'country', 'iso_code'],
  ['$geoip_continent_name', 'continent', 'names', 'en'],
  ['$geoip_continent_code', 'continent', 'code'],
  ['$geoip_postal_code', 'postal', 'code'],
  ['$geoip_time_zone', 'location', 'time_zone'],
  ['$geoip_subdivision_1_code', 'subdivisions', 0, 'iso_code'],
  ['$geoip_subdivision_1_name', 'subdivisions', 0, 'names', 'en'],
  ['$geoip_subdivision_2_code', 'subdivisions', 1, 'iso_code'],
  ['$geoip_subdivision_2_name', 'subdivisions', 1, 'names', 'en'],
];
const NUMBERS: readonly (readonly [property: string, ...steps: Step[]])[] = [
  ['$geoip_latitude', 'location', 'latitude'],
  ['$geoip_longitude', 'location', 'longitude'],
  ['$geoip_accuracy_radius', 'location', 'accuracy_radius'],
];

/** All properties that a location can have. */
export const PLACE_PROPERTIES: readonly string[] = [...TEXTS, ...NUMBERS].map(([property]) => property);

/** The properties that flags can use. Flags use all values as texts. */
const FLAG_PROPERTIES = [
  '$geoip_city_name',
  '$geoip_country_name',
  '$geoip_country_code',
  '$geoip_continent_name',
  '$geoip_continent_code',
  '$geoip_postal_code',
  '$geoip_time_zone',
];

function follow(record: unknown, steps: readonly Step[]): unknown {
  let value = record;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<Step, unknown>)[step];
  }
  return value;
}

/** Returns the location in a record of the database, or undefined if the record has none. */
export function placeOf(record: unknown): Place | undefined {
  const place: Record<string, string | number> = {};
  for (const [property, ...steps] of TEXTS) {
    const value = follow(record, steps);
    if (typeof value === 'string' && value !== '') place[property] = value;
  }
  for (const [property, ...steps] of NUMBERS) {
    const value = follow(record, steps);
    if (typeof value === 'number' && Number.isFinite(value)) place[property] = value;
  }
  return Object.keys(place).length > 0 ? Object.freeze(place) : undefined;
}

/** Returns the properties of a location that flags can use. */
export function flagPropertiesOf(place: Place | undefined): Record<string, string> {
  const properties: Record<string, string> = {};
  for (const name of FLAG_PROPERTIES) {
    const value = place?.[name];
    if (value !== undefined) properties[name] = String(value);
  }
  return properties;
}

/** The file is not a usable location database. The message says why. */
export class GeoipDatabaseError extends Error {
  override name = 'GeoipDatabaseError';
}

export interface GeoipDatabase {
  /** The type that the database states, such as `GeoLite2-City`. */
  type: string;
  built: Date;
  /** Returns the record of an address, or null if there is none. Throws if the file is damaged. */
  find(address: string): unknown;
}

/** The zeros between the search tree and the records. */
const SEPARATOR_BYTES = 16;
/** How many networks are checked when a database is opened. */
const LOOKED_AT = 1_000;

function addressText(number: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 0xffn).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(112 - index * 16)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join(':');
}

/** Returns whether any of the first networks has a location. Throws if the tree is damaged. */
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
    throw new GeoipDatabaseError('is not a complete MaxMind database (.mmdb)', { cause: error });
  }
}

/** Opens a database and checks that it is complete and contains locations. */
export function readGeoipDatabase(bytes: Buffer): GeoipDatabase {
  const reader = open(bytes);
  const { binaryFormatMajorVersion, ipVersion, nodeCount, searchTreeSize, databaseType, buildEpoch } =
    reader.metadata;
  if (binaryFormatMajorVersion !== 2 || (ipVersion !== 4 && ipVersion !== 6)) {
    throw new GeoipDatabaseError(
      `has an unknown format: version ${binaryFormatMajorVersion} for IPv${ipVersion}`,
    );
  }
  const separator = bytes.subarray(searchTreeSize, searchTreeSize + SEPARATOR_BYTES);
  const isWhole =
    nodeCount > 0 && separator.length === SEPARATOR_BYTES && separator.every((one) => one === 0);
  if (!isWhole) throw new GeoipDatabaseError('is damaged: its search tree does not have the stated length');
  let found: boolean;
  try {
    found = tellsOfPlaces(reader, ipVersion === 6 ? 128 : 32);
  } catch (error) {
    throw new GeoipDatabaseError(`is damaged: ${(error as Error).message}`, { cause: error });
  }
  if (!found) {
    throw new GeoipDatabaseError(
      `is a ${databaseType} database, which has no locations; use a City or Country database`,
    );
  }
  return {
    type: databaseType,
    built: buildEpoch,
    // Otherwise the reader would treat the first bits of an IPv6 address as an IPv4 address.
    find: (address) => (ipVersion === 4 && address.includes(':') ? null : reader.get(address)),
  };
}
