import type { SourceKind } from './scan.ts';

export interface ParseRequest {
  id: number;
  kind: SourceKind;
  /** One text, or parts of one program. */
  sources: string[];
}

/** The parser's answers; `trap`: WebAssembly gave up and its memory can no longer be trusted. */
export interface ParseResponse {
  id: number;
  jsons?: string[];
  trap?: string;
}

/** The parser reads a full template as a string literal that only the end of the text closes. */
export const TEMPLATE_PREFIX = "F'";
