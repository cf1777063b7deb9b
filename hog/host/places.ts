/** The location of an address as event properties, such as `$geoip_city_name`. */
export type FlatPlace = Readonly<Record<string, string | number>>;

/** Puts the properties of a location into the form of a record of a City database. Unknown parts are absent. */
export function cityRecord(place: FlatPlace): Record<string, unknown> {
  const value = (name: string) => place[`$geoip_${name}`];
  const named = (name: string, code?: string, codeName = 'iso_code') => ({
    ...(code !== undefined && value(code) !== undefined ? { [codeName]: value(code) } : {}),
    ...(value(name) === undefined ? {} : { names: { en: value(name) } }),
  });
  const record: Record<string, Record<string, unknown> | Record<string, unknown>[]> = {
    city: named('city_name'),
    continent: named('continent_name', 'continent_code', 'code'),
    country: named('country_name', 'country_code'),
    location: Object.fromEntries(
      ['latitude', 'longitude', 'time_zone', 'accuracy_radius']
        .map((name) => [name, value(name)] as const)
        .filter(([, one]) => one !== undefined),
    ),
    postal: value('postal_code') === undefined ? {} : { code: value('postal_code') },
    subdivisions: [1, 2]
      .map((level) => named(`subdivision_${level}_name`, `subdivision_${level}_code`))
      .filter((one) => Object.keys(one).length > 0),
  };
  return Object.fromEntries(Object.entries(record).filter(([, one]) => Object.keys(one).length > 0));
}
