/** What is known of an address's place, as properties of events. Only what is known is there. */
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

/** The properties that flags may ask for; to them, all values are texts. */
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

/** A record of the database → its place; undefined when it tells of none. */
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
