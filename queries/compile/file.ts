import { inlineValues } from '../../db/inline-values.ts';
import type { Column } from '../../formats/columns.ts';
import { exported, type Statement } from '../../hog/sql/index.ts';
import { withoutFormula } from '../../values/csv.ts';
import { type CompiledFile, type FileForm, type OutputColumn, QueryError } from '../rules/request.ts';
import type { Selected } from './columns.ts';

/** The same as `withoutFormula` says of texts. The first letter decides for most, so that no pattern reads a long text. */
const guarded = (text: string) =>
  `case when left(${text}, 1) = any(array['=', '+', '-', '@', E'\\t', E'\\r']) and (octet_length(${text}) > 1000 ` +
  `or ${text} !~* '^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$') then '''' || ${text} else ${text} end`;

/** Makes a COPY of a query, for encoders of files. */
export function asFile({ statement, columns: outputs, hogql }: Selected, form: FileForm): CompiledFile {
  const isSheet = form === 'sheet';
  const parts = outputs.flatMap(partsOf);
  const names = parts.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new QueryError(
      'query',
      `Two columns of the file are called '${twice}'. Give one another name with AS.`,
    );
  }
  const columns: Column[] = [];
  const selected = parts.map(({ name, from }) => {
    const column = statement.columns[from] as Statement['columns'][number];
    const [type, printed] = exported(column.type);
    columns.push({ name: isSheet ? withoutFormula(name) : name, type, nullable: true });
    const value = printed(`f${from + 1}`);
    return isSheet && type === 'string' ? guarded(value) : value;
  });
  const fields = statement.columns.map((_, index) => `f${index + 1}`).join(', ');
  const select = `select ${selected.join(', ')} from (${inlineValues(statement)}) as x (${fields})`;
  return { text: `copy (${select}) to stdout (format binary)`, select, columns, hogql };
}

/** What a column of the answer is in a file: itself, or what a column like `*` or `person` is put together of. */
function partsOf({ name, from }: OutputColumn): { name: string; from: number }[] {
  if (typeof from === 'number') return [{ name, from }];
  return Object.entries(from.keys).map(([key, at]) => ({
    name: from.of === 'event' ? key : `${name}.${key}`,
    from: at,
  }));
}
