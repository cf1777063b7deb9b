// `npm run docs` writes the generated parts of the documentation. A test fails if they are out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeSettings } from '../config.ts';
import { describedDestinations, describeKeys } from '../destinations/registry.ts';
import { TYPE_NAMES } from '../functions/rules/types.ts';
import { TEMPLATES } from '../functions/templates/index.ts';
import { COLUMN_SETS, listed, MODELS, type Model, modelsFor } from '../models/index.ts';
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
  const all = describedDestinations().map(({ types: [first, ...aliases], kind, columns, docs }) => {
    const also = aliases.length > 0 ? ` (also ${aliases.map((one) => `\`${one}\``).join(', ')})` : '';
    const models = modelsFor(columns);
    const receives = models.length < MODELS.length ? `${kind}, ${listed(models, 'and')} only` : kind;
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

const ALL: readonly Model[] = MODELS;

/** Returns a table with a row for each model. */
const modelTable = (heads: readonly string[], cells: (model: Model) => readonly string[]): string =>
  [
    `| Model | ${heads.join(' | ')} |`,
    `|---${'|---'.repeat(heads.length)}|`,
    ...ALL.map((model) => `| \`${model.name}\` | ${cells(model).join(' | ')} |`),
  ].join('\n');

const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

/** Returns the tables of what is said of each model, by the names of their places in the document. */
export const modelTables = (): Record<string, string> => ({
  rows: modelTable(['Rows of an interval', 'Order'], ({ docs }) => [docs.rows, docs.order]),
  'inserted-at': modelTable(['`_inserted_at`'], ({ docs }) => [docs.insertedAt]),
  fields: modelTable(['Fields'], ({ docs }) => [docs.fields]),
  merging: modelTable(['Key', 'Which of two rows is newer'], ({ table: { keys, newer } }) => [
    keys.map(code).join(', or '),
    newer === null
      ? 'rows never change'
      : [code(newer.order), ...newer.finer.map((name) => `and \`${name}\` if it is there`)].join(', '),
  ]),
  columns: modelColumns(),
});

/** Returns the tables of the columns of each model, by kind of destination. */
function modelColumns(): string {
  return ALL.map((model) => {
    const sets = COLUMN_SETS.map((set) => model.columns[set] ?? []);
    const columns = new Map(sets.flat().map((column) => [column.name, column]));
    const rows = [...columns.values()].map(({ name, type, nullable }) => {
      const where = sets.map((set) => (set.some((column) => column.name === name) ? '×' : ''));
      return `| \`${name}\` | \`${type}\`${nullable ? ' or null' : ''} | ${where.join(' | ')} |`;
    });
    const head = [`| Column | Type | ${COLUMN_SETS.join(' | ')} |`, `|---|---${'|---'.repeat(sets.length)}|`];
    return [`### ${model.name}`, '', ...head, ...rows].join('\n');
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
  generated('docs/exports-models.md', modelTables()),
  generated('docs/templates.md', { templates: templateTables() }),
  generated('docs/hogql.md', {
    limits: limitsTable(),
    bounded: boundedList(),
    functions: functionLists(),
  }),
];

if (import.meta.main) for (const { file, wanted } of documents()) writeFileSync(file, wanted);
