/** Everything a scope can name. A scope is `object:read` or `object:write`; write includes read; `*` is all. */
export const SCOPE_OBJECTS = [
  'action',
  'activity_log',
  'batch_export',
  'cohort',
  'early_access_feature',
  'event_definition',
  'experiment',
  'feature_flag',
  'group',
  'hog_function',
  'organization',
  'organization_member',
  'person',
  'plugin',
  'project',
  'property_definition',
  'query',
  'survey',
  'team',
  'user',
  'webhook',
] as const;

export type ScopeObject = (typeof SCOPE_OBJECTS)[number];
export type Scope = `${ScopeObject}:${'read' | 'write'}`;

/** Everything a key can be given. */
export const ALL_SCOPES = ['*', ...SCOPE_OBJECTS.flatMap((object) => [`${object}:read`, `${object}:write`])];
const KNOWN = new Set(ALL_SCOPES);

export function isScope(text: string): boolean {
  return KNOWN.has(text);
}

/** `team` is the older name of `project`. */
const canonical = (scope: string) => scope.replace(/^team:/, 'project:');

/** Whether a key with `granted` scopes may do what needs `required`. */
export function scopeAllows(granted: readonly string[], required: Scope): boolean {
  const wanted = canonical(required);
  const asWrite = wanted.replace(/:read$/, ':write');
  return granted.some(
    (scope) => scope === '*' || canonical(scope) === wanted || canonical(scope) === asWrite,
  );
}
