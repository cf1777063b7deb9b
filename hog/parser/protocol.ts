import type { SourceKind } from './scan.ts';

export interface ParseRequest {
  id: number;
  kind: SourceKind;
  /** One text, or the pieces of one program. */
  sources: string[];
}

/** The answers of the parser. `trap` is set if WebAssembly trapped; its memory can then no longer be trusted. */
export interface ParseResponse {
  id: number;
  jsons?: string[];
  trap?: string;
}

/** The parser reads a template as a string literal that begins with this prefix and ends with the text. */
export const TEMPLATE_PREFIX = "F'";
