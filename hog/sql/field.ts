import type { Field } from '../ast/index.ts';
import { tupleElement } from './compound.ts';
import { printExpr } from './dispatch.ts';
import { fault, quote, suggestion } from './errors.ts';
import { jsonField } from './json-path.ts';
import type { Place } from './printer.ts';
import { type Found, follow, hasField, type Source } from './scope.ts';
import { isTuple, typeName, type Value } from './types.ts';

/** Prints a name: a parameter of a lambda, an alias, a table with a path, or a column. */
export function printField(place: Place, node: Field): Value {
  const { printer, scope } = place;
  const { chain, span } = node;
  const [name, ...rest] = chain as [string, ...string[]];
  const parameter = scope.lambda(name);
  if (parameter) return into(place, { value: parameter, rest }, node);
  const source = scope.source(name);
  if (source && rest.length > 0) return column(place, follow(printer, source, rest, span), node);
  const alias = scope.expanding.has(name) ? undefined : scope.aliases.get(name);
  if (alias) {
    scope.expanding.add(name);
    try {
      return into(place, { value: printExpr(place, alias), rest }, node);
    } finally {
      scope.expanding.delete(name);
    }
  }
  const owners = scope.sources.filter((one) => hasField(one, name));
  if (owners.length > 1) {
    throw fault(
      `${quote(name)} is in more than one table: name the table, as in t.${name.slice(0, 40)}`,
      span,
    );
  }
  if (owners.length === 1) return column(place, follow(printer, owners[0] as Source, chain, span), node);
  const definition = scope.cte(name);
  if (definition?.definition.kind === 'column') {
    const value = printExpr({ printer, scope: definition.scope }, definition.definition.expr);
    if (rest.length > 0 && !isTuple(value.type)) {
      throw fault(`${quote(name)} is a value of WITH: it has no fields`, span);
    }
    return into(place, { value, rest }, node);
  }
  if (source) throw fault(`${quote(name)} is a table: name one of its fields`, span);
  throw fault(`Unable to resolve field: ${quote(name)}${suggestion(name, scope.names())}`, span);
}

function column(place: Place, found: Found, node: Field): Value {
  place.printer.ungrouped?.push({ name: node.chain.join('.'), span: node.span });
  return into(place, found, node);
}

/** Follows the rest of a path inside a value: keys of a JSON document or the index of a tuple element. */
function into(place: Place, found: Found, node: Field): Value {
  const { value, rest } = found;
  if (rest.length === 0) return value;
  if (value.json || value.type === 'json') return jsonField(place.printer, value, rest, node.span);
  if (isTuple(value.type) && rest.length === 1 && /^\d{1,4}$/.test(rest[0] as string)) {
    return tupleElement(value, Number(rest[0]), node.span);
  }
  throw fault(
    `Unable to resolve field: ${quote(node.chain.join('.'))}: a ${typeName(value.type)} has no fields`,
    node.span,
  );
}
