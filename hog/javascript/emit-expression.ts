import type { Call, Compare, CompareOperator, Constant, Expr, Field, Tag } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { LITERALS } from '../runtime/sizes.ts';
import { emitLambda } from './emit-statement.ts';
import type { Emitter } from './emitter.ts';
import { onlyLooks, runs, variableOf } from './owners.ts';

const COMPARISONS: Record<CompareOperator, string> = {
  '==': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  like: 'like',
  ilike: 'ilike',
  'not like': 'nlike',
  'not ilike': 'nilike',
  in: 'in',
  'not in': 'nin',
  '=~': 're',
  '!~': 'nre',
  '=~*': 'ire',
  '!~*': 'nire',
  'in cohort': '',
  'not in cohort': '',
};

const ARITHMETIC = { '+': 'add', '-': 'sub', '*': 'mul', '/': 'div', '%': 'mod' } as const;

const unsupported = (reason: string, node: Expr): SourceError =>
  new SourceError('unsupported', reason, undefined, node.span);

/**
 * Emits JavaScript for an expression. The code contains only generated names and escaped literals, never text of the
 * source.
 */
export function emitExpr(emitter: Emitter, node: Expr): string {
  const one = (expr: Expr) => emitExpr(emitter, expr);
  const list = (exprs: Expr[]) => exprs.map(one).join(', ');
  switch (node.kind) {
    case 'constant':
      return literal(node.value);
    case 'field':
      return emitField(emitter, node);
    case 'and':
      return emitLogic(emitter, node.exprs, '&&');
    case 'or':
      return emitLogic(emitter, node.exprs, '||');
    case 'not':
      return `R.not(${one(node.expr)})`;
    case 'arithmetic':
      return `R.${ARITHMETIC[node.op]}(${one(node.right)}, ${one(node.left)})`;
    case 'compare':
      return emitCompare(emitter, node);
    case 'between':
      return `R.between(${list([node.expr, node.low, node.high])}, ${node.negated})`;
    case 'call':
      return emitCall(emitter, node);
    case 'exprCall':
      return `R.call(E, [${list(node.args)}], ${one(node.callee)}${emitter.last(node.span)})`;
    case 'lambda':
      return emitLambda(emitter, node);
    case 'array':
      return node.exprs.every(isFlat) ? `[${list(node.exprs)}]` : emitNew(emitter, 'list', node, node.exprs);
    case 'tuple':
      return emitNew(emitter, 'tuple', node, node.exprs);
    case 'dict':
      return emitNew(emitter, 'dict', node, node.items.flat());
    case 'arrayAccess':
      return `R.get(${emitLookedAt(emitter, node.object, [node.property])}, ${one(node.property)}${emitter.last(node.span)})`;
    case 'tupleAccess':
      return `R.get(${emitLookedAt(emitter, node.tuple, [])}, ${literal(node.index)})`;
    case 'tag':
      return emitTag(emitter, node);
    default:
      throw unsupported(`Not supported in JavaScript: ${node.kind}`, node);
  }
}

const NEW = new Set<Expr['kind']>(['array', 'tuple', 'dict']);
const SCALAR = new Set<Expr['kind']>(['constant', 'arithmetic', 'compare', 'between', 'and', 'or', 'not']);

/** Returns whether a value is nested only as deep as its brackets in the source, which the parser limits. */
function isFlat(node: Expr): boolean {
  if (node.kind === 'dict') return node.items.every((item) => item.every(isFlat));
  return node.kind === 'array' || node.kind === 'tuple' ? node.exprs.every(isFlat) : SCALAR.has(node.kind);
}

/** Emits a list, a tuple or a dictionary. What it is made of can be nested deep if it is not written here. */
function emitNew(emitter: Emitter, kind: 'list' | 'tuple' | 'dict', { span }: Expr, nodes: Expr[]): string {
  const items = nodes.map((one) => emitExpr(emitter, one)).join(', ');
  if (nodes.every(isFlat)) return `R.${kind}([${items}])`;
  const literals = nodes
    .slice(0, LITERALS)
    .reduce((bits, { kind: one }, i) => bits | (Number(NEW.has(one)) << i), 0);
  return `R.${kind}([${items}], ${literals}, E${emitter.last(span)})`;
}

/** Escapes a character that could end the script element around the code. */
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

export function literal(value: Constant['value']): string {
  if (typeof value === 'string') return JSON.stringify(value).replace(/[<\u2028\u2029]/g, escaped);
  if (typeof value !== 'number') return JSON.stringify(value);
  if (Number.isNaN(value)) return '(0 / 0)';
  if (!Number.isFinite(value)) return value > 0 ? '(1 / 0)' : '(-1 / 0)';
  return value < 0 || Object.is(value, -0) ? `(-${Math.abs(value)})` : `${value}`;
}

function emitField(emitter: Emitter, { chain, span }: Field): string {
  const [name, ...path] = chain as [string, ...string[]];
  const variable = emitter.lookup(name);
  if (variable && path.length === 0 && emitter.owners.names.has(name)) return `R.lend(${variable})`;
  if (variable) return path.reduce((object, key) => `R.get(${object}, ${literal(key)})`, variable);
  return `${emitter.globalReader(chain)}(G${emitter.last(span)})`;
}

/**
 * Emits an expression whose value is only looked at, after the `others` were evaluated. A list that a variable owns is
 * not lent if they cannot change the variable.
 */
export function emitLookedAt(emitter: Emitter, node: Expr, others: Expr[]): string {
  const name = variableOf(node);
  const variable = name === null ? null : emitter.lookup(name);
  if (name === null || variable === null || !emitter.owners.names.has(name)) return emitExpr(emitter, node);
  const run = runs(others, (one) => emitter.lookup(one) !== null);
  const safe = run === 'none' || (run === 'others' && !emitter.owners.shared.has(name));
  return safe ? variable : emitExpr(emitter, node);
}

/**
 * Emits a function that reads a path of the globals. The keys are literals in the code, so that JavaScript engines can
 * cache the lookups.
 */
export function globalReader(chain: string[]): string {
  const keys = chain.map((key) => literal(key));
  const [first, ...rest] = keys as [string, ...string[]];
  const steps = rest.map(
    (key) =>
      `if (v === null || v === undefined) return null; v = R.own(v, ${key}) ? v[${key}] : R.step(v, ${key});`,
  );
  return `(g) => {
  if (!R.own(g, ${first})) return R.missing([${keys.join(', ')}]);
  let v = g[${first}]; ${steps.join(' ')}
  const t = typeof v;
  return t === "string" || t === "number" || t === "boolean" ? v : R.host(v);
}`;
}

/** Emits `and` or `or`. Like the VM, it evaluates all operands before it tests the first. */
function emitLogic(emitter: Emitter, exprs: Expr[], operator: '&&' | '||'): string {
  const names: string[] = [];
  const parts = exprs.map((one) => {
    const code = emitExpr(emitter, one);
    const name = emitter.temporary();
    names.push(name);
    return `${name} = ${code}`;
  });
  return `(${parts.join(', ')}, ${names.join(` ${operator} `)} ? true : false)`;
}

const SIGNS: Partial<Record<CompareOperator, string>> = {
  '==': '===',
  '!=': '!==',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
};

/** Emits a comparison. For a literal operand, it emits a direct comparison for values of the same type. */
function emitCompare(emitter: Emitter, node: Compare): string {
  const { op, left, right } = node;
  const helper = COMPARISONS[op];
  const value = right.kind === 'constant' ? right.value : undefined;
  if (
    (op === 'like' || op === 'ilike' || op === 'not like' || op === 'not ilike') &&
    typeof value === 'string'
  ) {
    const matcher = emitter.constant(`R.matcher(${literal(value)}, ${op.endsWith('ilike')})`);
    return `${op.startsWith('not') ? '!' : ''}${matcher}(R.string(${emitExpr(emitter, left)}))`;
  }
  if ((op === 'in' || op === 'not in') && isLiteralList(right)) {
    const list = emitter.constant(`[${right.exprs.map((one) => literal(one.value)).join(', ')}]`);
    return `R.${helper}(${list}, ${emitExpr(emitter, left)}${emitter.last(node.span)})`;
  }
  const sign = SIGNS[op];
  if (sign === undefined || value === undefined || (typeof value === 'number' && !Number.isFinite(value))) {
    const first = emitExpr(emitter, right);
    return `R.${helper}(${first}, ${emitExpr(emitter, left)}${emitter.last(node.span)})`;
  }
  const name = emitter.temporary();
  const given = `${name} = ${emitExpr(emitter, left)}`;
  const constant = literal(value);
  if (value !== null) {
    return `(${given}, typeof ${name} === "${typeof value}" ? ${name} ${sign} ${constant} : R.${helper}(${constant}, ${name}))`;
  }
  if (op === '==')
    return `(${given}, ${name} === null || (typeof ${name} === "object" && R.eq(null, ${name})))`;
  if (op === '!=')
    return `(${given}, ${name} !== null && (typeof ${name} !== "object" || R.ne(null, ${name})))`;
  return `(${given}, R.${helper}(null, ${name}))`;
}

function isLiteralList(node: Expr): node is Expr & { exprs: Constant[] } {
  return (
    (node.kind === 'tuple' || node.kind === 'array') && node.exprs.every((one) => one.kind === 'constant')
  );
}

function emitCall(emitter: Emitter, node: Call): string {
  const special = emitSpecial(emitter, node);
  if (special) return special;
  const list = (exprs: Expr[]) => `[${exprs.map((one) => emitExpr(emitter, one)).join(', ')}]`;
  // In `f(a)(b)`, the VM evaluates b first.
  const outer = node.params ? list(node.args) : null;
  const variable = emitter.lookup(node.name);
  const call = variable
    ? `R.call(E, ${list(node.params ?? node.args)}, ${variable}${emitter.last(node.span)})`
    : emitNamed(emitter, node, onlyLooks(node));
  return outer === null ? call : `R.call(E, ${outer}, ${call}${emitter.last(node.span)})`;
}

function emitNamed(emitter: Emitter, node: Call, looks: boolean): string {
  const name = emitter.called(node.name);
  const args = node.params ?? node.args;
  const last = emitter.last(node.span);
  const codes = args.map((one) => (looks ? emitLookedAt(emitter, one, args) : emitExpr(emitter, one)));
  if (name === 'toString' && codes.length === 1) return `R.text(E, ${codes[0]}${last})`;
  return `${emitter.constant(`R.named(${literal(name)})`)}(E, [${codes.join(', ')}]${last})`;
}

function emitSpecial(emitter: Emitter, node: Call): string | null {
  const { name, args } = node;
  const one = (index: number) => emitExpr(emitter, args[index] as Expr);
  if (name === 'not' && args.length === 1) return `R.not(${one(0)})`;
  if (name === 'and' && args.length > 1) return emitLogic(emitter, args, '&&');
  if (name === 'or' && args.length > 1) return emitLogic(emitter, args, '||');
  if (name === 'if' && args.length >= 2) {
    if (args.length === 3) return `(${one(0)} ? ${one(1)} : ${one(2)})`;
    throw unsupported('`if` needs an else value to compile to JavaScript', node);
  }
  if (name === 'multiIf' && args.length >= 2) {
    if (args.length % 2 === 0) {
      throw unsupported('`multiIf` needs an else value to compile to JavaScript', node);
    }
    let code = one(args.length - 1);
    for (let i = args.length - 3; i >= 0; i -= 2) code = `(${one(i)} ? ${one(i + 1)} : ${code})`;
    return code;
  }
  if (name === 'ifNull' && args.length === 2) {
    const value = emitter.temporary();
    return `((${value} = ${one(0)}) === null ? ${one(1)} : ${value})`;
  }
  return null;
}

function emitTag(emitter: Emitter, node: Tag): string {
  const items = node.attributes.map(({ name, value }) => {
    const code = Array.isArray(value)
      ? `[${value.map((one) => emitExpr(emitter, one)).join(', ')}]`
      : emitExpr(emitter, value);
    return `${literal(name)}, ${code}`;
  });
  const variable = emitter.lookup(node.name);
  if (variable)
    return `R.call(E, [R.dict([${items.join(', ')}], 0, E)], ${variable}${emitter.last(node.span)})`;
  return `R.dict([${['"__hx_tag"', literal(node.name), ...items].join(', ')}], 0, E)`;
}
