// Functions in a folder: a program and a definition each, and a record of what the server had.
import { createHash, randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { type FunctionTypeName, typeOf } from '../../functions/rules/types.ts';
import { CommandError, UsageError } from '../context.ts';
import { type Definition, definition } from './definition.ts';

const PROGRAMS = ['.hog', '.ts'] as const;
const RECORD = '.sluice-functions.json';
/** More than a program and a definition may have. */
const LARGEST = 8 * 1024 * 1024;

/** Files are wrong. The message has a line for each fault. */
export class FilesError extends CommandError {
  override name = 'FilesError';

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
  }
}

/** A function as it lies in a folder. */
export interface LocalFunction {
  /** The path of its files without their endings. */
  stem: string;
  programFile: string;
  definitionFile: string;
  program: string;
  /** The content of the definition as it stands in its file. */
  text: string;
  definition: Definition;
}

export const endingOf = (type: FunctionTypeName): string => `.${typeOf(type).language}`;

/** Reads a file that must be one: no folder, no pipe. */
export function readText(file: string): string {
  try {
    const { size } = lstatSync(file);
    if (size > LARGEST) throw new UsageError(`${file} is larger than ${LARGEST / 1024 / 1024} MB.`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(code === 'ENOENT' ? `There is no file ${file}.` : `${file}: ${message}`);
  }
}

/** Parses JSON. The error says the line and the column. */
export function parseJson(text: string, file: string): unknown {
  const message = jsonFault(text);
  if (message === undefined) return JSON.parse(text);
  const before = text.slice(0, placeOf(text, message)).split('\n');
  const place = `${before.length}:${(before.at(-1) ?? '').length + 1}`;
  const [first] = message.split(/,? (?:in JSON )?(?:at position|"|\.\.\.)/);
  throw new FilesError([`${file}:${place}: This is not JSON. ${first}.`]);
}

function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

const UNEXPECTED = 'Unexpected token';

/** Finds where a text stops being JSON. Some messages say it. Others only name what they did not expect there. */
function placeOf(text: string, message: string): number {
  const [, position] = message.match(/at position (\d+)/) ?? [];
  if (position !== undefined) return Number(position);
  if (!message.startsWith(UNEXPECTED)) return text.length;
  // A beginning of the text has the same fault as soon as it contains the place.
  let [without, has] = [0, text.length];
  while (has - without > 1) {
    const middle = Math.floor((without + has) / 2);
    if (jsonFault(text.slice(0, middle))?.startsWith(UNEXPECTED)) has = middle;
    else without = middle;
  }
  return has - 1;
}

const issueText = ({ path: at, message }: z.core.$ZodIssue): string =>
  at.length > 0 ? `${at.join('.')}: ${message}` : message;

function parseDefinition(text: string, file: string): Definition {
  const parsed = definition.safeParse(parseJson(text, file));
  if (parsed.success) {
    const unknown = unknownInputs(parsed.data);
    if (unknown.length === 0) return parsed.data;
    throw new FilesError(unknown.map((one) => `${file}: ${one}: inputs_schema has no input of this key.`));
  }
  throw new FilesError(parsed.error.issues.map((issue) => `${file}: ${issueText(issue)}`));
}

/** Finds inputs that no schema asks for: the server would leave them out, and a misspelt key would not be noticed. */
function unknownInputs({
  inputs,
  inputs_schema: schemas,
  mappings,
  template_id: template,
}: Definition): string[] {
  const lists = [
    // A template brings a schema with it.
    ...(template !== undefined && schemas.length === 0 ? [] : [{ at: 'inputs', schemas, inputs }]),
    ...(mappings ?? []).map((one, index) => ({
      at: `mappings.${index}.inputs`,
      schemas: one.inputs_schema ?? [],
      inputs: one.inputs ?? {},
    })),
  ];
  return lists.flatMap(({ at, schemas: known, inputs: given }) => {
    const keys = new Set(known.map(({ key }) => key));
    return Object.keys(given).flatMap((key) => (keys.has(key) ? [] : [`${at}.${key}`]));
  });
}

const stemOf = (file: string): string => file.slice(0, -path.extname(file).length);

function isFile(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** Reads the function that one of its two files names. Without a definition, `otherwise` takes its place. */
export function readFunction(file: string, otherwise?: Definition): LocalFunction {
  const ending = path.extname(file);
  if (ending !== '.json' && !(PROGRAMS as readonly string[]).includes(ending)) {
    throw new UsageError(`${file}: a function is a file that ends with .hog, .ts or .json.`);
  }
  if (!isFile(file)) throw new UsageError(`There is no file ${file}.`);
  const stem = stemOf(file);
  const found = PROGRAMS.map((one) => stem + one).filter(isFile);
  const programFile = ending === '.json' ? found[0] : file;
  if (programFile === undefined)
    throw new UsageError(`${file} has no program: there is no file ${stem}.hog.`);
  if (found.length > 1) throw new FilesError([`${stem} has two programs: ${found.join(' and ')}.`]);
  const definitionFile = `${stem}.json`;
  if (!isFile(definitionFile) && !otherwise) {
    throw new FilesError([`${file} has no definition: there is no file ${definitionFile}.`]);
  }
  const text = isFile(definitionFile) ? readText(definitionFile) : '';
  const parsed = text === '' && otherwise ? otherwise : parseDefinition(text, definitionFile);
  const expected = endingOf(parsed.type);
  if (path.extname(programFile) !== expected) {
    throw new FilesError([
      `${programFile}: the program of a function of type ${parsed.type} ends with ${expected}.`,
    ]);
  }
  return { stem, programFile, definitionFile, text, program: readText(programFile), definition: parsed };
}

/** Lists the programs of a folder that have a definition, or all that look like programs. Folders in it are left out. */
export function programsIn(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new UsageError(`${directory}: ${(error as Error).message}`);
  }
  return names
    .filter((name) => {
      const file = path.join(directory, name);
      const ending = path.extname(name);
      // Other TypeScript may lie beside functions.
      return isFile(file) && (ending === '.hog' || (ending === '.ts' && isFile(`${stemOf(file)}.json`)));
    })
    .toSorted()
    .map((name) => path.join(directory, name));
}

/** Reads all functions of a folder. Throws one error that names all faults. */
export function readFunctions(files: readonly string[]): LocalFunction[] {
  const faults: string[] = [];
  const read = files.flatMap((file) => {
    try {
      return [readFunction(file)];
    } catch (error) {
      if (!(error instanceof FilesError)) throw error;
      faults.push(error.message);
      return [];
    }
  });
  if (faults.length > 0) throw new FilesError(faults);
  return [...new Map(read.map((one) => [path.resolve(one.stem), one])).values()];
}

/** Writes a file as a whole or not at all. What is there is replaced, also if it is a link. */
export function writeText(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  const beside = path.join(path.dirname(file), `.${randomUUID()}.part`);
  writeFileSync(beside, text, { flag: 'wx' });
  renameSync(beside, file);
}

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Tells whether files have changed since the server had the same. */
export const fingerprint = (program: string, text: string): string =>
  createHash('sha256')
    .update(`${Buffer.byteLength(program)} ${program}${text}`)
    .digest('hex');

const record = z.record(z.guid(), z.object({ updated_at: z.string(), files: z.string() }));
/** What the server had of each function when it was pulled or pushed. */
export type FolderRecord = z.output<typeof record>;

export function readRecord(directory: string): FolderRecord {
  const file = path.join(directory, RECORD);
  if (!isFile(file)) return {};
  const parsed = record.safeParse(parseJson(readText(file), file));
  if (!parsed.success) throw new FilesError([`${file}: ${issueText(parsed.error.issues[0] as never)}`]);
  return parsed.data;
}

export function writeRecord(directory: string, all: FolderRecord): void {
  const sorted = Object.fromEntries(Object.entries(all).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeText(path.join(directory, RECORD), jsonText(sorted));
}
