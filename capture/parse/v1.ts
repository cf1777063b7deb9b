type Fields = Record<string, unknown>;

const OPTIONS: Record<string, string> = {
  cookieless_mode: '$cookieless_mode',
  disable_skew_correction: '$ignore_sent_at',
  process_person_profile: '$process_person_profile',
  product_tour_id: '$product_tour_id',
};
const FIELDS: Record<string, string> = { session_id: '$session_id', window_id: '$window_id' };

function fill(properties: Fields, names: Record<string, string>, source: Fields): void {
  for (const [field, property] of Object.entries(names)) {
    const value = source[field];
    if (value !== undefined && value !== null && properties[property] === undefined)
      properties[property] = value;
  }
}

/**
 * The newer form of an event has outside of its properties what the other forms have inside: puts it back, so that
 * what is stored does not depend on the form. `sdk` is the header `PostHog-Sdk-Info`, `name/version`.
 */
export function fromV1(event: Fields, sdk: string | undefined): void {
  if (event.properties === undefined || event.properties === null) event.properties = {};
  const properties = event.properties as Fields;
  if (typeof properties !== 'object' || Array.isArray(properties)) return;
  fill(properties, FIELDS, event);
  const { options } = event;
  if (typeof options === 'object' && options !== null) fill(properties, OPTIONS, options as Fields);
  const [name, version] = sdk?.split('/', 2) ?? [];
  if (name) properties.$lib ??= name;
  if (version) properties.$lib_version ??= version;
}
