import { type Bytecode, Op } from '../bytecode/index.ts';
import { asFailure, HogFailure, runtimeFailure } from '../runtime/errors.ts';
import { isOwned, lend } from '../runtime/lists.ts';
import type { Meter } from '../runtime/meter.ts';
import { getProperty, setProperty } from '../runtime/operators.ts';
import {
  errorValue,
  type HogError,
  type HogValue,
  isHogError,
  markTuple,
  newHogCallable,
  uncaught,
} from '../runtime/values.ts';
import { binaryOperations } from './binary.ts';
import { Use, type Uses, usesOf } from './borrow.ts';
import { callClosure, callGlobal, makeClosure, readGlobal } from './calls.ts';
import type { Environment, Frame, Handler, MachineState, Stop } from './frames.ts';
import { hogLibrary } from './hog-library.ts';
import { Stack } from './stack.ts';

/** The stack machine of one run. It runs until the program ends, fails, or calls an async function. */
export class Machine {
  readonly env: Environment;
  readonly meter: Meter;
  readonly stack: Stack;
  readonly frames: Frame[];
  readonly handlers: Handler[];
  readonly declared: Map<string, [ip: number, args: number]>;
  /** True for the older bytecode version, which takes arguments in reverse. */
  readonly reversed: boolean;
  asyncSteps: number;
  frame: Frame;
  code: Bytecode;
  /** How the current code uses the lists of its variables. */
  uses: Uses | null = null;
  readonly #root: Bytecode;

  constructor(root: Bytecode, state: MachineState, env: Environment) {
    this.#root = root;
    this.env = env;
    this.meter = env.around.meter;
    this.reversed = root[0] === '_h';
    this.stack = new Stack(this.meter, state.values, state.captured, state.maxMemory);
    this.frames = state.frames;
    this.handlers = state.handlers;
    this.declared = new Map(state.declared.map(([name, ip, args]) => [name, [ip, args]]));
    this.asyncSteps = state.asyncSteps;
    this.frame = this.frames.at(-1) as Frame;
    this.code = [];
    this.#select();
  }

  get state(): MachineState {
    return {
      frames: this.frames,
      values: this.stack.values,
      captured: [...this.stack.captured.values()],
      handlers: this.handlers,
      declared: [...this.declared].map(([name, [ip, args]]) => [name, ip, args]),
      asyncSteps: this.asyncSteps,
      maxMemory: this.stack.maxMemory,
    };
  }

  run(): Stop {
    for (;;) {
      try {
        return this.#loop();
      } catch (error) {
        // A program can catch runtime errors if the option is set. Exceeded limits and invalid code always end the run.
        const failure = asFailure(error);
        const catchable = this.env.catchRuntimeErrors && failure.code === 'runtime';
        if (!catchable || this.handlers.length === 0) throw failure;
        this.#catch(errorValue('RuntimeError', failure.message));
      }
    }
  }

  /**
   * Where the program is: the element of its code that was read last. In a library function that is written in Hog, that is
   * the call of it.
   */
  get at(): number | null {
    const frame = this.frames.findLast(({ chunk }) => chunk === 'root');
    return frame ? frame.ip - 1 : null;
  }

  enter(frame: Frame): void {
    const { maxCallDepth } = this.meter.limits;
    if (this.frames.length >= maxCallDepth) {
      throw new HogFailure('depth', `Call stack exceeded maximum length of ${maxCallDepth}`);
    }
    this.frames.push(frame);
    this.#select();
  }

  #select(): void {
    this.frame = this.frames.at(-1) as Frame;
    this.stack.base = this.frame.base;
    const { chunk } = this.frame;
    const code = chunk === 'root' ? this.#root : hogLibrary.get(chunk)?.code;
    if (!code) throw new HogFailure('bytecode', `Invalid bytecode: unknown chunk ${chunk}`);
    this.code = code;
    this.uses = usesOf(code);
  }

  /** Lends a list that the instruction before `at` has read from a variable, unless it is only looked at. */
  #loaded(value: HogValue, at: number): void {
    if (this.uses === null || !isOwned(value)) return;
    const use = this.uses[at - 1];
    if (use === Use.BORROWED) return;
    if (use === Use.BORROWED_ALONE && this.code[at - 1] === Op.GET_LOCAL) {
      if (!this.stack.isCaptured(this.code[at] as number)) return;
    }
    lend(value);
  }

  /** Leaves the current function. Returns true if it is the program itself. */
  #leave(result: HogValue): boolean {
    const left = this.frames.pop() as Frame;
    // A `return` inside `try` skips the end of the `try`, so its handler is removed here.
    while ((this.handlers.at(-1)?.frames ?? 0) > this.frames.length) this.handlers.pop();
    if (this.frames.length === 0) return true;
    this.stack.drop(left.base);
    this.#select();
    this.stack.push(result);
    return false;
  }

  #throw(error: HogValue): void {
    if (!isHogError(error)) throw runtimeFailure('Can not throw: value is not of type Error');
    if (this.handlers.length === 0) throw uncaught(error);
    this.#catch(error);
  }

  #catch(error: HogError): void {
    const handler = this.handlers.pop() as Handler;
    this.stack.drop(handler.height);
    this.frames.length = handler.frames;
    this.#select();
    this.frame.ip = handler.catchIp;
    this.stack.push(error);
  }

  #loop(): Stop {
    const { stack, meter } = this;
    for (;;) {
      const { frame, code } = this;
      if (frame.ip >= code.length) {
        const result = this.frames.length === 1 ? (stack.height > frame.base ? stack.pop() : null) : null;
        if (this.#leave(result)) return { result };
        continue;
      }
      meter.step();
      const op = code[frame.ip++] as number;
      const binary = binaryOperations[op];
      if (binary) {
        stack.push(binary(stack.pop(), stack.pop()));
        continue;
      }
      switch (op) {
        case Op.STRING:
        case Op.INTEGER:
        case Op.FLOAT:
          stack.push(code[frame.ip++]);
          break;
        case Op.TRUE:
          stack.push(true);
          break;
        case Op.FALSE:
          stack.push(false);
          break;
        case Op.NULL:
          stack.push(null);
          break;
        case Op.NOT:
          stack.push(!stack.pop());
          break;
        case Op.AND:
          stack.push(stack.take(code[frame.ip++] as number).every(Boolean));
          break;
        case Op.OR:
          stack.push(stack.take(code[frame.ip++] as number).some(Boolean));
          break;
        case Op.GET_GLOBAL:
          readGlobal(this, code[frame.ip++] as number);
          break;
        case Op.POP:
          stack.pop();
          break;
        case Op.CLOSE_UPVALUE:
          if (stack.height <= frame.base)
            throw new HogFailure('bytecode', 'Invalid bytecode: stack underflow');
          stack.drop(stack.height - 1);
          break;
        case Op.RETURN: {
          const result = stack.pop();
          if (this.#leave(result)) return { result };
          break;
        }
        case Op.GET_LOCAL:
          this.#loaded(stack.load(code[frame.ip] as number), frame.ip++);
          break;
        case Op.SET_LOCAL:
          stack.store(code[frame.ip++] as number);
          break;
        case Op.GET_UPVALUE:
          {
            const value = stack.readCaptured(frame.closure.upvalues[code[frame.ip] as number]);
            stack.push(value);
            this.#loaded(value, frame.ip++);
          }
          break;
        case Op.SET_UPVALUE:
          stack.writeCaptured(frame.closure.upvalues[code[frame.ip++] as number], stack.pop());
          break;
        case Op.GET_PROPERTY:
        case Op.GET_PROPERTY_NULLISH: {
          const key = stack.pop();
          stack.push(getProperty(stack.pop(), key));
          break;
        }
        case Op.SET_PROPERTY: {
          const [object, key, value] = stack.take(3);
          stack.changed(setProperty(object, key, value, meter));
          break;
        }
        case Op.DICT: {
          const items = stack.take((code[frame.ip++] as number) * 2);
          const map = new Map<HogValue, HogValue>();
          for (let i = 0; i < items.length; i += 2) map.set(items[i], items[i + 1]);
          stack.push(map);
          break;
        }
        case Op.ARRAY:
          stack.push(stack.take(code[frame.ip++] as number));
          break;
        case Op.TUPLE:
          stack.push(markTuple(stack.take(code[frame.ip++] as number)));
          break;
        case Op.JUMP:
          frame.ip += (code[frame.ip] as number) + 1;
          break;
        case Op.JUMP_IF_FALSE:
          frame.ip += stack.pop() ? 1 : (code[frame.ip] as number) + 1;
          break;
        case Op.JUMP_IF_STACK_NOT_NULL: {
          const top = stack.height > frame.base ? stack.values[stack.height - 1] : null;
          frame.ip += top === null ? 1 : (code[frame.ip] as number) + 1;
          break;
        }
        case Op.DECLARE_FN:
          this.declared.set(code[frame.ip] as string, [frame.ip + 3, code[frame.ip + 1] as number]);
          frame.ip += 3 + (code[frame.ip + 2] as number);
          break;
        case Op.CALLABLE: {
          const [name, argCount, upvalueCount, length] = code.slice(frame.ip, frame.ip + 4);
          frame.ip += 4;
          stack.push(
            newHogCallable('local', {
              name: name as string,
              argCount: argCount as number,
              upvalueCount: upvalueCount as number,
              ip: frame.ip,
              chunk: frame.chunk,
            }),
          );
          frame.ip += length as number;
          break;
        }
        case Op.CLOSURE:
          makeClosure(this);
          break;
        case Op.CALL_GLOBAL: {
          const call = callGlobal(this, code[frame.ip++] as string, code[frame.ip++] as number);
          if (call) return { call };
          break;
        }
        case Op.CALL_LOCAL: {
          const call = callClosure(this, stack.pop(), code[frame.ip++] as number);
          if (call) return { call };
          break;
        }
        case Op.TRY: {
          const catchIp = frame.ip + (code[frame.ip] as number);
          this.handlers.push({ frames: this.frames.length, height: stack.height, catchIp });
          frame.ip++;
          break;
        }
        case Op.POP_TRY:
          if (this.handlers.at(-1)?.frames !== this.frames.length) {
            throw new HogFailure('bytecode', 'Invalid operation POP_TRY: no try block to pop');
          }
          this.handlers.pop();
          break;
        case Op.THROW:
          this.#throw(stack.pop());
          break;
        default:
          throw new HogFailure(
            'bytecode',
            `Unexpected node while running bytecode in chunk "${frame.chunk}": ${op}`,
          );
      }
    }
  }
}
