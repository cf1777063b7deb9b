// The bytes of a database in MaxMind's form → the place of an address.
import { Reader, type Response } from 'mmdb-lib';

/** Where an address is, as properties of events. What is unknown is absent. */
export type Place = Readonly<Record<string, string | number>>;

type Step = string | number;

/** Each property and where it stands in a record of a City, Enterprise or Country database. */
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

/** Every property that a place may have. */
export const PLACE_PROPERTIES: readonly string[] = [...TEXTS, ...NUMBERS].map(([property]) => property);

/** The properties that flags may ask for. To flags, all values are texts. */
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

/** The place in a record of the database; undefined when the record names none. */
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

/** The part of a place that flags are evaluated with. */
export function flagPropertiesOf(place: Place | undefined): Record<string, string> {
  const properties: Record<string, string> = {};
  for (const name of FLAG_PROPERTIES) {
    const value = place?.[name];
    if (value !== undefined) properties[name] = String(value);
  }
  return properties;
}

/** The bytes are no database of places; the message says why. */
export class GeoipDatabaseError extends Error {
  override name = 'GeoipDatabaseError';
}

export interface GeoipDatabase {
  /** The name that the database gives itself, such as `GeoLite2-City`. */
  type: string;
  built: Date;
  /** The record of an address, null when there is none. Throws where the file is damaged. */
  find(address: string): unknown;
}

/** The zeros between the search tree and the records. */
const SEPARATOR_BYTES = 16;
/** Opening a database tries so many of its networks. */
const LOOKED_AT = 1_000;

function addressText(number: bigint, bits: 32 | 128): string {
  if (bits === 32) return [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 0xffn).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => (number >> BigInt(112 - index * 16)) & 0xffffn);
  return groups.map((group) => group.toString(16)).join(':');
}

/** Whether any of the first networks has a place. Throws where the tree is damaged. */
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

/** Opens a database and makes sure that it is whole and holds places. */
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
