import createHogQLParser, { type HogQLParser } from '@posthog/hogql-parser';
import type { Budget } from '../threads/pool.ts';
import type { SourceKind } from './scan.ts';

/** Turns texts into the parser's JSON. */
export interface Engine {
  /** How many requests may run at once. */
  lanes: number;
  parse(kind: SourceKind, sources: string[], budget: Budget): Promise<string[]>;
  close(): Promise<void>;
}

/** One text, or the pieces of one program. */
export interface ParseJob {
  kind: SourceKind;
  sources: string[];
}

/** The parser reads a template as a string literal that begins with this prefix and ends with the text. */
export const TEMPLATE_PREFIX = "F'";

/** WebAssembly failed, so its memory can no longer be trusted. */
export class ParserTrap extends Error {
  override readonly name = 'ParserTrap';
}

/** After this many texts, an engine is replaced, because the parser's caches never shrink. */
const TEXTS = 5_000;

/** The parser itself. It works in the thread of its caller. */
export class WasmEngine {
  readonly #parser: HogQLParser;
  #texts = 0;
  #trapped = false;

  private constructor(parser: HogQLParser) {
    this.#parser = parser;
  }

  static async load(): Promise<WasmEngine> {
    return new WasmEngine(await createHogQLParser());
  }

  get isWorn(): boolean {
    return this.#trapped || this.#texts >= TEXTS;
  }

  parse({ kind, sources }: ParseJob): string[] {
    this.#texts += sources.length;
    try {
      return sources.map((source) => this.#read(kind, source));
    } catch (error) {
      this.#trapped = true;
      throw new ParserTrap(String(error));
    }
  }

  #read(kind: SourceKind, source: string): string {
    switch (kind) {
      case 'program':
        return this.#parser.parseProgram(source);
      case 'expression':
        return this.#parser.parseExpr(source);
      case 'select':
        return this.#parser.parseSelect(source);
      case 'template':
        return this.#parser.parseFullTemplateString(TEMPLATE_PREFIX + source);
    }
  }
}
