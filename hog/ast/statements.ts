import type { Expr, Spanned } from './expressions.ts';

export interface Program extends Spanned {
  kind: 'program';
  declarations: Statement[];
}

export interface Block extends Spanned {
  kind: 'block';
  declarations: Statement[];
}

export interface VariableDeclaration extends Spanned {
  kind: 'variableDeclaration';
  name: string;
  expr: Expr | null;
}

export interface VariableAssignment extends Spanned {
  kind: 'variableAssignment';
  target: Expr;
  value: Expr;
}

export interface ExprStatement extends Spanned {
  kind: 'exprStatement';
  expr: Expr;
}

export interface ReturnStatement extends Spanned {
  kind: 'returnStatement';
  expr: Expr | null;
}

export interface ThrowStatement extends Spanned {
  kind: 'throwStatement';
  expr: Expr;
}

export interface IfStatement extends Spanned {
  kind: 'ifStatement';
  condition: Expr;
  consequent: Statement;
  alternative: Statement | null;
}

export interface WhileStatement extends Spanned {
  kind: 'whileStatement';
  condition: Expr;
  body: Statement;
}

export interface ForStatement extends Spanned {
  kind: 'forStatement';
  initializer: VariableDeclaration | VariableAssignment | Expr | null;
  condition: Expr | null;
  increment: VariableDeclaration | VariableAssignment | Expr | null;
  body: Statement;
}

export interface ForInStatement extends Spanned {
  kind: 'forInStatement';
  keyVar: string | null;
  valueVar: string;
  collection: Expr;
  body: Statement;
}

export interface FunctionDeclaration extends Spanned {
  kind: 'function';
  name: string;
  params: string[];
  body: Statement;
}

export interface CatchClause {
  /** Null if the clause does not name the error. */
  variable: string | null;
  /** Null if the clause catches errors of every type. */
  type: string | null;
  body: Statement;
}

export interface TryStatement extends Spanned {
  kind: 'tryStatement';
  body: Statement;
  catches: CatchClause[];
  finallyBody: Statement | null;
}

export type Statement =
  | Block
  | VariableDeclaration
  | VariableAssignment
  | ExprStatement
  | ReturnStatement
  | ThrowStatement
  | IfStatement
  | WhileStatement
  | ForStatement
  | ForInStatement
  | FunctionDeclaration
  | TryStatement;
