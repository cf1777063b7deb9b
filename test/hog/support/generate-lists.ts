import { build, type Expr, type Program, type Statement } from '../../../hog/ast/index.ts';
import type { Random } from './random.ts';

const { access, array, arithmetic, call, compare, dict, field, integer, constant } = build;

// Programs that build lists in every way, and hold them in several places while they do.

const VARIABLES = ['a', 'b', 'c'];
const PUSHES = ['arrayPushBack', 'arrayPushFront'];
const POPS = ['arrayPopBack', 'arrayPopFront'];

const assign = (target: Expr, value: Expr): Statement => ({ kind: 'variableAssignment', target, value });
const expression = (expr: Expr): Statement => ({ kind: 'exprStatement', expr });
const declare = (name: string, expr: Expr): Statement => ({ kind: 'variableDeclaration', name, expr });
const block = (...declarations: Statement[]) => ({ kind: 'block', declarations }) as const;

export class ListPrograms {
  readonly #random: Random;
  /** How a list function is called: by its name, or as a value, which the machine never runs in place. */
  readonly #change: (name: string, args: Expr[]) => Expr;

  constructor(random: Random, naive: boolean) {
    this.#random = random;
    this.#change = (name, args) => call(naive ? `naive_${name}` : name, ...args);
  }

  program(): Program {
    const declarations: Statement[] = [...PUSHES, ...POPS].map((name) =>
      declare(`naive_${name}`, field(name)),
    );
    for (const name of VARIABLES) declarations.push(declare(name, this.#list()));
    declarations.push(declare('d', dict([[constant('k'), field('a')]])));
    for (const name of ['f', 'g', 'h']) {
      const result = this.#random.chance(0.5) ? this.#variable() : integer(this.#random.below(9));
      const body = block(...this.#statements(3, 0), { kind: 'returnStatement', expr: result });
      const params = name === 'h' ? [this.#random.pick(['p', 'a'])] : [];
      declarations.push({ kind: 'function', name, params, body });
    }
    declarations.push(...this.#statements(14, 2));
    return { kind: 'program', declarations: [...declarations, expression(this.#everything())] };
  }

  #everything(): Expr {
    return call('print', ...VARIABLES.map((name) => field(name)), field('d'));
  }

  #variable(): Expr {
    return field(this.#random.pick(VARIABLES));
  }

  #list(): Expr {
    const random = this.#random;
    if (random.chance(0.3)) return call('range', integer(random.below(5)));
    if (random.chance(0.1)) return build.tuple([integer(1), integer(2)]);
    return array(random.list(3, () => (random.chance(0.3) ? array([integer(7)]) : integer(random.below(9)))));
  }

  #item(depth = 1): Expr {
    const random = this.#random;
    switch (random.below(depth > 0 ? 9 : 3)) {
      case 0:
      case 1:
        return integer(1 + random.below(9));
      case 2:
        return random.chance(0.3) ? this.#variable() : constant('text');
      case 3:
        return call('length', this.#variable());
      case 4:
        return call(random.pick(['f', 'g']));
      case 5:
        return call('h', this.#variable());
      case 6:
        return access(
          this.#variable(),
          arithmetic('+', call('length', this.#variable()), this.#item(depth - 1)),
        );
      case 7:
        return call('indexOf', this.#variable(), this.#item(depth - 1));
      default:
        return arithmetic('+', call('length', this.#variable()), this.#item(depth - 1));
    }
  }

  #statements(most: number, depth: number): Statement[] {
    return Array.from({ length: 1 + this.#random.below(most) }, () => this.#statement(depth));
  }

  #changed(list: Expr): Expr {
    const random = this.#random;
    if (random.chance(0.3)) return this.#change(random.pick(POPS), [list]);
    return this.#change(random.pick(PUSHES), [list, this.#item()]);
  }

  #statement(depth: number): Statement {
    const random = this.#random;
    const variable = this.#variable();
    switch (random.below(depth > 0 ? 18 : 10)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return assign(variable, this.#changed(variable));
      case 5:
        return assign(variable, this.#changed(this.#variable()));
      case 6:
        return assign(variable, random.chance(0.5) ? this.#variable() : access(field('d'), constant('k')));
      case 7:
        return assign(field('d', 'k'), this.#variable());
      case 8:
        return assign(access(variable, integer(1 + random.below(3))), this.#item());
      case 9:
        return {
          kind: 'ifStatement',
          condition: compare('>', call('length', variable), integer(8)),
          consequent: block(assign(variable, array([]))),
          alternative: null,
        };
      case 10:
        return expression(call('pause'));
      case 11:
        return expression(this.#everything());
      case 12:
        return expression(call(random.pick(['f', 'g'])));
      case 13:
        return assign(field('d', 'k'), this.#changed(field('d', 'k')));
      case 14:
        return {
          kind: 'forInStatement',
          keyVar: null,
          valueVar: 'x',
          collection: variable,
          body: block(
            assign(variable, this.#change('arrayPushBack', [variable, field('x')])),
            ...this.#statements(2, 0),
          ),
        };
      case 15:
        return {
          kind: 'tryStatement',
          body: block(...this.#statements(2, 0), {
            kind: 'throwStatement',
            expr: call('Error', constant('x')),
          }),
          catches: [{ variable: null, type: null, body: block(...this.#statements(2, 0)) }],
          finallyBody: null,
        };
      case 16:
        return assign(
          variable,
          call(
            'arrayMap',
            {
              kind: 'lambda',
              params: ['x'],
              body: block(...this.#statements(2, 0), { kind: 'returnStatement', expr: field('x') }),
            },
            variable,
          ),
        );
      default:
        return assign(variable, call('coalesce', field('d', 'k'), variable));
    }
  }
}
