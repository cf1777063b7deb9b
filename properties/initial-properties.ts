const OF_APPS = [
  ...['$app_build', '$app_name', '$app_namespace', '$app_version', '$browser', '$browser_version'],
  ...['$device_type', '$current_url', '$pathname', '$os', '$os_version', '$referring_domain', '$referrer'],
  ...['$screen_height', '$screen_width', '$viewport_height', '$viewport_width', '$raw_user_agent'],
];
/** What tells where somebody came from. SDKs find it in the address of a page. */
export const CAMPAIGN_PROPERTIES: readonly string[] = [
  ...['utm_source', 'utm_medium', 'utm_campaign', 'utm_content', 'utm_term', 'gclid', 'gad_source', 'gclsrc'],
  ...['dclid', 'gbraid', 'wbraid', 'fbclid', 'msclkid', 'twclid', 'li_fat_id', 'mc_cid', 'igshid', 'ttclid'],
  ...['rdt_cid', 'epik', 'qclid', 'sccid', 'irclid', '_kx'],
];

/** The property whose value an `$initial_…` property has as long as the person has none of its own. */
const INITIAL: ReadonlyMap<string, string> = new Map([
  ...OF_APPS.map((name): [string, string] => [`$initial_${name.slice(1)}`, name]),
  ...CAMPAIGN_PROPERTIES.map((name): [string, string] => [`$initial_${name}`, name]),
]);

/** The property that stands for an `$initial_…` one, if there is one. */
export const initialOf = (key: string): string[] => {
  const base = INITIAL.get(key);
  return base === undefined ? [] : [base];
};

/**
 * A property of a person, by what looks up those that they have. An `$initial_…` property that they do not have is that of
 * today. Undefined: there is none.
 */
export function personProperty(lookUp: (key: string) => unknown, key: string): unknown {
  const found = lookUp(key);
  if (found !== undefined) return found;
  const base = INITIAL.get(key);
  return base === undefined ? undefined : lookUp(base);
}

/** The names of the properties that have to be known to find these. */
export const withInitial = (names: readonly string[]): string[] => [
  ...names,
  ...names.flatMap((name) => INITIAL.get(name) ?? []),
];
