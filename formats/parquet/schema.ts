import type { Column, ColumnType } from '../columns.ts';
import type { ThriftWriter } from './thrift.ts';

// Numbers of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift

const PHYSICAL = { boolean: 0, int32: 1, int64: 2, double: 5, byteArray: 6 } as const;
const REPETITION = { required: 0, optional: 1, repeated: 2 } as const;
const CONVERTED = { utf8: 0, list: 3, timestampMicros: 10 } as const;

/** The types whose values are texts. A uuid is one, since readers of exports expect that. */
const TEXTS: ReadonlySet<ColumnType> = new Set(['string', 'json', 'uuid', 'strings']);

export function physicalType(type: ColumnType): number {
  if (TEXTS.has(type)) return PHYSICAL.byteArray;
  if (type === 'int32') return PHYSICAL.int32;
  if (type === 'float64') return PHYSICAL.double;
  return type === 'bool' ? PHYSICAL.boolean : PHYSICAL.int64;
}

/** The path of a column's values in the schema. */
export const pathOf = ({ name, type }: Column): string[] =>
  type === 'strings' ? [name, 'list', 'element'] : [name];

/** The highest definition level. A nullable column adds one level, a list adds two. */
export const definitionDepth = ({ type, nullable }: Column): number =>
  (nullable ? 1 : 0) + (type === 'strings' ? 2 : 0);

interface Element {
  name: string;
  type?: number;
  repetition?: number;
  children?: number;
  converted?: number;
  logical?: (thrift: ThriftWriter) => void;
}

const STRING_LOGICAL = (thrift: ThriftWriter) => thrift.struct(1, () => undefined);
const LIST_LOGICAL = (thrift: ThriftWriter) => thrift.struct(3, () => undefined);
/** A timestamp in UTC, in microseconds. */
const TIMESTAMP_LOGICAL = (thrift: ThriftWriter) =>
  thrift.struct(8, () => {
    thrift.bool(1, true);
    thrift.struct(2, () => thrift.struct(2, () => undefined));
  });

function elementsOf(column: Column): Element[] {
  const { name, type, nullable } = column;
  const repetition = nullable ? REPETITION.optional : REPETITION.required;
  if (type === 'strings') {
    return [
      { name, repetition, children: 1, converted: CONVERTED.list, logical: LIST_LOGICAL },
      { name: 'list', repetition: REPETITION.repeated, children: 1 },
      {
        name: 'element',
        type: PHYSICAL.byteArray,
        repetition: REPETITION.optional,
        converted: CONVERTED.utf8,
        logical: STRING_LOGICAL,
      },
    ];
  }
  const element: Element = { name, repetition, type: physicalType(type) };
  if (TEXTS.has(type)) Object.assign(element, { converted: CONVERTED.utf8, logical: STRING_LOGICAL });
  if (type === 'timestamp')
    Object.assign(element, { converted: CONVERTED.timestampMicros, logical: TIMESTAMP_LOGICAL });
  return [element];
}

/** Writes the list of schema elements as a field. */
export function writeSchema(thrift: ThriftWriter, id: number, columns: readonly Column[]): void {
  const elements = [{ name: 'schema', children: columns.length }, ...columns.flatMap(elementsOf)];
  thrift.structs<Element>(id, elements, (element) => {
    if (element.type !== undefined) thrift.i32(1, element.type);
    if (element.repetition !== undefined) thrift.i32(3, element.repetition);
    thrift.binary(4, element.name);
    if (element.children !== undefined) thrift.i32(5, element.children);
    if (element.converted !== undefined) thrift.i32(6, element.converted);
    const { logical } = element;
    if (logical) thrift.struct(10, () => logical(thrift));
  });
}
