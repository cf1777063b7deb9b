import type {
  Block,
  CatchClause,
  Expr,
  Program,
  Statement,
  VariableAssignment,
  VariableDeclaration,
} from '../ast/index.ts';
import { finish, maybeExpr, toExpr } from './convert-expression.ts';
import {
  deeper,
  isRaw,
  listAt,
  nodeAt,
  optionalNode,
  optionalString,
  type RawNode,
  type Reader,
  stringAt,
  stringsAt,
  unexpected,
} from './reader.ts';

export function toProgram(reader: Reader, raw: RawNode): Program {
  if (raw.node !== 'Program') throw unexpected('program', raw.node);
  return finish(reader, raw, {
    kind: 'program',
    declarations: listAt(raw, 'declarations').map((one) => toStatement(reader, one)),
  });
}

export function toBlock(reader: Reader, raw: RawNode): Block {
  return deeper(reader, raw, () =>
    finish(reader, raw, {
      kind: 'block',
      declarations: listAt(raw, 'declarations').map((one) => toStatement(reader, one)),
    }),
  );
}

export function toStatement(reader: Reader, raw: RawNode): Statement {
  const filled = reader.filled?.(raw);
  if (filled) return filled;
  if (raw.node === 'Block') return toBlock(reader, raw);
  // A lone `;` as a body is an empty statement. It becomes a block without statements.
  if (raw.node === 'ExprStatement' && (raw.expr === null || raw.expr === undefined)) {
    return finish<Block>(reader, raw, { kind: 'block', declarations: [] });
  }
  return deeper(reader, raw, () => finish(reader, raw, convert(reader, raw)));
}

function convert(reader: Reader, raw: RawNode): Exclude<Statement, Block> {
  switch (raw.node) {
    case 'VariableDeclaration':
    case 'VariableAssignment':
      return toVariable(reader, raw);
    case 'ExprStatement':
      return { kind: 'exprStatement', expr: toExpr(reader, nodeAt(raw, 'expr')) };
    case 'ReturnStatement':
      return { kind: 'returnStatement', expr: maybeExpr(reader, optionalNode(raw, 'expr')) };
    case 'ThrowStatement':
      return { kind: 'throwStatement', expr: toExpr(reader, nodeAt(raw, 'expr')) };
    case 'IfStatement': {
      const alternative = optionalNode(raw, 'else_');
      return {
        kind: 'ifStatement',
        condition: toExpr(reader, nodeAt(raw, 'expr')),
        consequent: toStatement(reader, nodeAt(raw, 'then')),
        alternative: alternative && toStatement(reader, alternative),
      };
    }
    case 'WhileStatement':
      return {
        kind: 'whileStatement',
        condition: toExpr(reader, nodeAt(raw, 'expr')),
        body: toStatement(reader, nodeAt(raw, 'body')),
      };
    case 'ForStatement':
      return {
        kind: 'forStatement',
        initializer: toForPart(reader, optionalNode(raw, 'initializer')),
        condition: maybeExpr(reader, optionalNode(raw, 'condition')),
        increment: toForPart(reader, optionalNode(raw, 'increment')),
        body: toStatement(reader, nodeAt(raw, 'body')),
      };
    case 'ForInStatement':
      return {
        kind: 'forInStatement',
        keyVar: optionalString(raw, 'keyVar'),
        valueVar: stringAt(raw, 'valueVar'),
        collection: toExpr(reader, nodeAt(raw, 'expr')),
        body: toStatement(reader, nodeAt(raw, 'body')),
      };
    case 'Function':
      return {
        kind: 'function',
        name: stringAt(raw, 'name'),
        params: stringsAt(raw, 'params'),
        body: toStatement(reader, nodeAt(raw, 'body')),
      };
    case 'TryCatchStatement': {
      const finallyBody = optionalNode(raw, 'finally_stmt');
      return {
        kind: 'tryStatement',
        body: toStatement(reader, nodeAt(raw, 'try_stmt')),
        catches: toCatches(reader, raw.catches),
        finallyBody: finallyBody && toStatement(reader, finallyBody),
      };
    }
    default:
      throw unexpected('statement', raw.node);
  }
}

function toVariable(reader: Reader, raw: RawNode): VariableDeclaration | VariableAssignment {
  if (raw.node === 'VariableDeclaration') {
    return {
      kind: 'variableDeclaration',
      name: stringAt(raw, 'name'),
      expr: maybeExpr(reader, optionalNode(raw, 'expr')),
    };
  }
  return {
    kind: 'variableAssignment',
    target: toExpr(reader, nodeAt(raw, 'left')),
    value: toExpr(reader, nodeAt(raw, 'right')),
  };
}

function toForPart(
  reader: Reader,
  raw: RawNode | null,
): VariableDeclaration | VariableAssignment | Expr | null {
  if (raw?.node === 'VariableDeclaration' || raw?.node === 'VariableAssignment') {
    return finish(reader, raw, toVariable(reader, raw));
  }
  return maybeExpr(reader, raw);
}

/** Converts the `catch` clauses. The parser returns each as a triple of variable, type and body. */
function toCatches(reader: Reader, value: unknown): CatchClause[] {
  if (!Array.isArray(value)) throw unexpected('catches', value);
  return value.map((clause: unknown) => {
    if (!Array.isArray(clause) || !isRaw(clause[2])) throw unexpected('catch', clause);
    const [variable, type] = clause as unknown[];
    return Object.freeze({
      variable: typeof variable === 'string' ? variable : null,
      type: typeof type === 'string' ? type : null,
      body: toStatement(reader, clause[2]),
    });
  });
}
