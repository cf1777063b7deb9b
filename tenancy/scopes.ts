import type { Product } from './product.ts';

/** What scopes name beside the scopes of products. Some of it has no routes yet, but keys for it can be made. */
const VOCABULARY = [
  'activity_log',
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
];

/** A scope is `object:read` or `object:write`. Write includes read. */
export type Scope = `${string}:${'read' | 'write'}`;

/** Lists everything that a scope can name, by name. */
export function scopeObjects(products: readonly Pick<Product, 'scopes'>[]): string[] {
  return [...new Set([...VOCABULARY, ...products.flatMap((one) => one.scopes)])].sort();
}

/** Lists everything that a key can be given. `*` stands for all scopes. */
export function allScopes(products: readonly Pick<Product, 'scopes'>[]): string[] {
  return ['*', ...scopeObjects(products).flatMap((object) => [`${object}:read`, `${object}:write`])];
}

/** `team` is the older name of `project`. */
const canonical = (scope: string) => scope.replace(/^team:/, 'project:');

/** Answers whether a key with `granted` scopes may do what needs `required`. */
export function scopeAllows(granted: readonly string[], required: Scope): boolean {
  const wanted = canonical(required);
  const asWrite = wanted.replace(/:read$/, ':write');
  return granted.some(
    (scope) => scope === '*' || canonical(scope) === wanted || canonical(scope) === asWrite,
  );
}
