// `npm run docs` writes the generated parts of the documentation. A test fails if they are out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeSettings } from '../config.ts';
import { describedDestinations, describeKeys } from '../destinations/registry.ts';
import { TYPE_NAMES } from '../functions/rules/types.ts';
import { TEMPLATES } from '../functions/templates/index.ts';
import { columnsOf, MODELS } from '../models/index.ts';
import { placesTable } from '../test/architecture/rules.ts';
import { boundedList, functionLists, limitsTable } from './hogql-functions.ts';

const root = path.dirname(import.meta.dirname);

/** Returns the table of settings for the README. */
export function settingsTable(): string {
  const rows = describeSettings().map(
    (setting) =>
      `| \`${setting.name}\` | ${setting.default === '' ? '' : `\`${setting.default}\``} | ${setting.description} |`,
  );
  return ['| Variable | Default | Meaning |', '|---|---|---|', ...rows].join('\n');
}

/** Returns the table of the keys of `destination.config`. */
export function destinationKeys(): string {
  const rows = describeKeys().map((one) => {
    const kind = [one.type, ...(one.required ? ['required'] : []), ...(one.secret ? ['secret'] : [])];
    const { types, key, description } = one;
    return `| \`${key}\` | ${types.join(', ')} | ${kind.join(', ')} | ${one.default === '' ? '' : `\`${one.default}\``} | ${description} |`;
  });
  return ['| Key | Of | | Default | Meaning |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** Returns the table of the destinations. Those of which the documentation says the same share a row. */
export function destinationKinds(): string {
  const all = describedDestinations().map(({ types: [first, ...aliases], kind, models, docs }) => {
    const also = aliases.length > 0 ? ` (also ${aliases.map((one) => `\`${one}\``).join(', ')})` : '';
    const receives = models ? `${kind}, ${models.join(' and ')} only` : kind;
    return { name: `\`${first}\`${also}`, says: `${receives} | ${docs.once}` };
  });
  const rows = Map.groupBy(all, ({ says }) => says);
  return [
    ...['| Type | Receives | Why a repeated run leaves one copy |', '|---|---|---|'],
    ...[...rows].map(([says, same]) => `| ${same.map(({ name }) => name).join(', ')} | ${says} |`),
  ].join('\n');
}

/** Returns the table of what belongs to the address of each destination that has secrets. */
export function destinationAddresses(): string {
  const rows = describedDestinations().flatMap(({ types, docs }) =>
    docs.address.map((line, index) => `| ${index === 0 ? types[0] : ''} | ${line} |`),
  );
  return ['| Destination | Address |', '|---|---|', ...rows].join('\n');
}

/** Returns the tables of the columns of each model, by kind of destination. */
export function modelColumns(): string {
  const families = ['files', 'postgres', 'http'] as const;
  return MODELS.map((model) => {
    const sets = families.map((family) => columnsOf(model, family));
    const columns = new Map(sets.flat().map((column) => [column.name, column]));
    const rows = [...columns.values()].map(({ name, type, nullable }) => {
      const where = sets.map((set) => (set.some((column) => column.name === name) ? '×' : ''));
      return `| \`${name}\` | \`${type}\`${nullable ? ' or null' : ''} | ${where.join(' | ')} |`;
    });
    const head = ['| Column | Type | Files | Postgres | HTTP |', '|---|---|---|---|---|'];
    return [`### ${model}`, '', ...head, ...rows].join('\n');
  }).join('\n\n');
}

/** Returns a table of the templates of each type of function. */
export function templateTables(): string {
  const shown = TEMPLATES.filter(({ status }) => status !== 'hidden' && status !== 'deprecated');
  return TYPE_NAMES.flatMap((type) => {
    const own = shown.filter((one) => one.type === type).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    if (own.length === 0) return [];
    const rows = own.map(({ id, name, description, inputs_schema: schemas }) => {
      const inputs = schemas.map(({ key, required }) => (required ? `**\`${key}\`**` : `\`${key}\``));
      return `| ${name} | \`${id}\` | ${description.replaceAll('|', '\\|')} | ${inputs.join(', ')} |`;
    });
    const head = ['| Name | Id | What it does | Inputs, required ones in bold |', '|---|---|---|---|'];
    return [[`## ${type}`, '', ...head, ...rows].join('\n')];
  }).join('\n\n');
}

/** Replaces the text between `<!-- name -->` and `<!-- /name -->`. */
export function fill(document: string, name: string, content: string): string {
  const pattern = new RegExp(`(<!-- ${name} -->)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!pattern.test(document)) throw new Error(`the document has no markers for ${name}`);
  return document.replace(pattern, (_whole, start, end) => `${start}\n${content}\n${end}`);
}

export interface Generated {
  file: string;
  current: string;
  wanted: string;
}

function generated(name: string, parts: Readonly<Record<string, string>>): Generated {
  const file = path.join(root, name);
  const current = readFileSync(file, 'utf8');
  const wanted = Object.entries(parts).reduce(
    (document, [part, content]) => fill(document, part, content),
    current,
  );
  return { file, current, wanted };
}

/** Lists the documents with generated parts. */
export const documents = (): Generated[] => [
  generated('README.md', { settings: settingsTable() }),
  generated('docs/architecture.md', { places: placesTable() }),
  generated('docs/exports-destinations.md', {
    kinds: destinationKinds(),
    keys: destinationKeys(),
    addresses: destinationAddresses(),
  }),
  generated('docs/exports-models.md', { columns: modelColumns() }),
  generated('docs/templates.md', { templates: templateTables() }),
  generated('docs/hogql.md', {
    limits: limitsTable(),
    bounded: boundedList(),
    functions: functionLists(),
  }),
];

if (import.meta.main) for (const { file, wanted } of documents()) writeFileSync(file, wanted);
