import { ThriftWriter } from './thrift.ts';

export const ENCODING = { plain: 0, rle: 3, dictionary: 8 } as const;
const PAGE_TYPE = { data: 0, dictionary: 2 } as const;

/** A page as it stands in the file, its header first. */
export interface Page {
  header: Buffer;
  /** In the memory of its row group. */
  body: Buffer;
  /** Of header and body before compression. */
  uncompressedBytes: number;
}

interface PageOptions {
  /** Levels or, in a dictionary, entries. */
  values: number;
  encoding: number;
  kind: keyof typeof PAGE_TYPE;
}

export function makePage(raw: number, body: Buffer, { values, encoding, kind }: PageOptions): Page {
  const thrift = new ThriftWriter();
  thrift.i32(1, PAGE_TYPE[kind]);
  thrift.i32(2, raw);
  thrift.i32(3, body.length);
  if (kind === 'data') {
    thrift.struct(5, () => {
      thrift.i32(1, values);
      thrift.i32(2, encoding);
      thrift.i32(3, ENCODING.rle);
      thrift.i32(4, ENCODING.rle);
    });
  } else {
    thrift.struct(7, () => {
      thrift.i32(1, values);
      thrift.i32(2, encoding);
    });
  }
  const header = thrift.finish();
  return { header, body, uncompressedBytes: header.length + raw };
}
