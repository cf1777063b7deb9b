// The parts of the WebAssembly API that the kernel's host uses. TypeScript only declares them in its library for
// browsers.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, (...values: number[]) => number>>);
    readonly exports: unknown;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  interface Global<T = number> {
    readonly value: T;
  }
}
