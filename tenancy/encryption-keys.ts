// The keys that seal stored secrets: who holds which, what needs which, and how one takes the place of another while
// processes run. Each step can be repeated, so an interrupted rotation goes on where it stopped.
import { setTimeout as pause } from 'node:timers/promises';
import {
  beginRotation,
  findLatestRotation,
  finishRotation,
  type KeyHolder,
  type KeyMark,
  type KeyRotation,
  listKeyHolders,
} from '../db/encryption-keys.ts';
import type { Queryable } from '../db/pool.ts';
import {
  countSealed,
  listOtherSecrets,
  replaceSecrets,
  type SealedColumn,
  type SealedCount,
} from '../db/sealed-columns.ts';
import {
  generateKey,
  isSealed,
  type Keyring,
  marksOf,
  newKeyId,
  parseKeyring,
  rewrap,
  SecretError,
  seal,
  sealedBy,
} from '../secrets/envelope.ts';
import { PlainError } from '../values/plain-error.ts';

/** The keys cannot be changed now. The message says what is in the way and what to do. */
export class KeyError extends PlainError {
  override readonly name = 'KeyError';
}

/** Where the installation has its keys. */
export interface KeyPlace {
  /** How users call the place: a path, or the name of a setting. */
  name: string;
  read(): Keyring;
  /** Undefined: only the operator can change the keys, in the settings of each process. */
  write?: ((keyring: Keyring) => void) | undefined;
}

const isSame = (one: KeyMark, other: KeyMark) => one.id === other.id && one.fingerprint === other.fingerprint;
const holds = ({ keys }: Pick<KeyHolder, 'keys'>, key: KeyMark) => keys.some((one) => isSame(one, key));
const nameOf = ({ process, pid, host }: KeyHolder) => `the ${process} (process ${pid} on ${host})`;
const idsOf = ({ keys }: Pick<KeyHolder, 'keys'>) => keys.map((one) => one.id).join(', ') || 'none';
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** What is known of the keys of an installation. It has no key material. */
export interface KeyState {
  /** The first one seals new secrets. */
  keys: KeyMark[];
  secrets: SealedCount[];
  holders: KeyHolder[];
  rotation: KeyRotation | undefined;
}

export async function findKeyState(
  queryable: Queryable,
  columns: readonly SealedColumn[],
  keyring: Keyring | undefined,
): Promise<KeyState> {
  return {
    keys: keyring ? marksOf(keyring) : [],
    secrets: await countSealed(queryable, columns),
    holders: await listKeyHolders(queryable),
    rotation: await findLatestRotation(queryable),
  };
}

/** Says what is wrong with the keys, one sentence for each. */
export function keyProblems({ keys, secrets, holders, rotation }: KeyState): string[] {
  const problems: string[] = [];
  const known = new Set(keys.map((one) => one.id));
  for (const { table, column, keyId, values } of secrets) {
    if (keyId === null) problems.push(`${values} secrets in ${table}.${column} are not sealed yet.`);
    else if (!known.has(keyId)) {
      problems.push(`${values} secrets in ${table}.${column} need the key ${keyId}, which is missing.`);
    }
  }
  for (const holder of holders) {
    for (const key of holder.keys) {
      const other = keys.find((one) => one.id === key.id);
      if (other && !isSame(other, key)) {
        problems.push(`${capital(nameOf(holder))} has another key with the id ${key.id}.`);
      }
    }
    const [first] = keys;
    if (first && !holds(holder, first)) {
      problems.push(
        `${capital(nameOf(holder))} does not hold the key ${first.id}. It holds: ${idsOf(holder)}.`,
      );
    }
  }
  if (rotation && rotation.finished_at === null) {
    problems.push(
      `The rotation to the key ${rotation.id} is not finished. Run \`npx sluice keys rotate\` again.`,
    );
  } else if (rotation && keys.length > 0 && !keys.some((one) => isSame(one, rotation))) {
    problems.push(`The key ${rotation.id} of the latest rotation is missing here.`);
  }
  return problems;
}

const BATCH = 200;
/** Before the first row of a table. */
const START = '(0,0)';

/**
 * Seals with the first key what another key seals, and what is not sealed yet. A secret that is changed meanwhile stays as
 * it is changed. Returns how many were sealed, and how many cannot be opened with these keys.
 */
export async function resealSecrets(
  queryable: Queryable,
  columns: readonly SealedColumn[],
  keyring: Keyring,
  { signal, beat }: { signal?: AbortSignal; beat?: () => void } = {},
): Promise<{ sealed: number; closed: number }> {
  let [sealed, closed] = [0, 0];
  for (const column of columns) {
    for (let after = START; ; ) {
      signal?.throwIfAborted();
      beat?.();
      const found = await listOtherSecrets(queryable, column, keyring.primary, after, BATCH);
      const changes = [];
      for (const { place, id, value } of found) {
        const by = sealAnew(keyring, column, id, value);
        if (by === undefined) closed += 1;
        else changes.push({ place, value, by });
      }
      sealed += await replaceSecrets(queryable, column, changes);
      if (found.length < BATCH) break;
      after = found.at(-1)?.place as string;
    }
  }
  return { sealed, closed };
}

/** Returns the secret, sealed with the first key. Undefined: it cannot be opened. */
function sealAnew(
  keyring: Keyring,
  { contextOf }: SealedColumn,
  id: string | null,
  value: string,
): string | undefined {
  if (!isSealed(value)) return contextOf && id !== null ? seal(keyring, value, contextOf(id)) : undefined;
  if (!keyring.keys.has(sealedBy(value))) return undefined;
  try {
    return rewrap(keyring, value);
  } catch (error) {
    if (error instanceof SecretError) return undefined;
    throw error;
  }
}

export interface Rotation {
  queryable: Queryable;
  columns: readonly SealedColumn[];
  place: KeyPlace;
  /** Hears of the progress. */
  report: (line: string) => void;
  /** How long processes are waited for that read a file again, in milliseconds. */
  patience: number;
  /** Is called after each step. Tests stop there. */
  onStep?: (step: string) => void;
}

const POLL = 250;
const PASSES = 5;

/**
 * Puts a new key in the place of the one that seals: adds it everywhere, has it seal, and seals anew what is stored. Where
 * the operator has to do a step, this says which, and is called again. Returns whether the rotation is finished. Callers
 * hold the lock on rotations.
 */
export async function rotateKeys(rotation: Rotation): Promise<boolean> {
  const { queryable, place, report, onStep = () => undefined } = rotation;
  const key = await beginOrContinue(rotation, onStep);
  if (!key) return false;
  await requireHolders(
    rotation,
    (holder) => holds(holder, key),
    (holder) =>
      `${capital(nameOf(holder))} does not hold the new key ${key.id}, so it could not read what is sealed with it. ` +
      `It holds: ${idsOf(holder)}. ${remedy(place, `Add the new key to ${place.name} there and restart it`)}`,
  );
  if (place.read().primary !== key.id) {
    if (!place.write) {
      report(
        `Every process holds the new key ${key.id}. Now make it the first one in ${place.name}, for every process and for ` +
          'this command, restart the processes one after the other, and run `npx sluice keys rotate` again.',
      );
      return false;
    }
    place.write({ primary: key.id, keys: place.read().keys });
    onStep('promoted');
    report(`The key ${key.id} is the first one in ${place.name}.`);
  }
  await requireHolders(
    rotation,
    ({ keys }) => keys[0] !== undefined && isSame(keys[0], key),
    (holder) =>
      `${capital(nameOf(holder))} still seals new secrets with the key ${holder.keys[0]?.id}, not with ${key.id}. ` +
      remedy(place, `Make ${key.id} the first key in ${place.name} there and restart it`),
  );
  const { sealed, closed } = await resealAll(rotation);
  onStep('sealed');
  if (closed > 0) {
    throw new KeyError(
      `${closed} secrets cannot be opened with the keys in ${place.name}. \`npx sluice keys\` shows which keys they need. ` +
        'Add these keys back, or set the secrets again, and run `npx sluice keys rotate` again.',
    );
  }
  await finishRotation(queryable, key.id);
  onStep('finished');
  report(`The key ${key.id} seals all secrets: ${sealed} were sealed anew.`);
  for (const id of place.read().keys.keys()) {
    if (id === key.id) continue;
    report(
      `Nothing stored needs the key ${id} any more. Backups from before need it: keep a copy as long as you keep them. ` +
        `\`npx sluice keys forget ${id}\` removes it.`,
    );
  }
  return true;
}

const remedy = (place: KeyPlace, sentence: string) =>
  place.write ? 'Restart it, and run the command again.' : `${sentence}, and run the command again.`;

/** Returns the new key, if this command has it. Otherwise makes one, and where only the operator can add it, says so. */
async function beginOrContinue(
  { queryable, columns, place, report }: Rotation,
  onStep: (step: string) => void,
): Promise<KeyMark | undefined> {
  const latest = await findLatestRotation(queryable);
  const keyring = place.read();
  if (latest && latest.finished_at === null) {
    if (holds({ keys: marksOf(keyring) }, latest)) return latest;
    const needed = (await countSealed(queryable, columns)).some(({ keyId }) => keyId === latest.id);
    const holder = (await listKeyHolders(queryable)).find((one) => holds(one, latest));
    if (needed || holder) {
      throw new KeyError(
        `A rotation to the key ${latest.id} has begun, and ${holder ? `${nameOf(holder)} holds it` : 'secrets need it'}, ` +
          `but it is not in ${place.name} of this command. Add it, and run the command again.`,
      );
    }
    // Nobody has this key: whoever began stopped before it was added.
  }
  const id = newKeyId();
  const entry = generateKey(id);
  const made = parseKeyring(entry);
  const [mark] = marksOf(made) as [KeyMark];
  if (place.write) {
    place.write({ primary: keyring.primary, keys: new Map([...keyring.keys, ...made.keys]) });
    onStep('added');
    await beginRotation(queryable, mark);
    onStep('begun');
    report(`The key ${id} is in ${place.name}.`);
    return mark;
  }
  await beginRotation(queryable, mark);
  onStep('begun');
  report(
    `Add this key at the end of ${place.name}, after a comma, for every process and for this command. Restart the processes ` +
      `one after the other, and run \`npx sluice keys rotate\` again. The key is shown once:\n${entry}`,
  );
  return undefined;
}

/** Waits until all processes that live are as they must be. Throws if one does not become so. */
async function requireHolders(
  { queryable, place, patience }: Rotation,
  isReady: (holder: KeyHolder) => boolean,
  sentence: (holder: KeyHolder) => string,
): Promise<void> {
  const end = Date.now() + (place.write ? patience : 0);
  for (;;) {
    const late = (await listKeyHolders(queryable)).find((one) => !isReady(one));
    if (!late) return;
    if (Date.now() >= end) throw new KeyError(sentence(late));
    await pause(POLL);
  }
}

/** Seals anew until nothing is left that a request in flight had sealed with the old key. */
async function resealAll({
  queryable,
  columns,
  place,
}: Rotation): Promise<{ sealed: number; closed: number }> {
  let sealed = 0;
  for (let pass = 1; ; pass++) {
    const done = await resealSecrets(queryable, columns, place.read());
    sealed += done.sealed;
    if (done.sealed === 0 || pass === PASSES) return { sealed, closed: done.closed };
  }
}

/** Removes a key that nothing needs. Where the operator has to do it, says so. */
export async function forgetKey(
  { queryable, columns, place, report }: Omit<Rotation, 'patience' | 'onStep'>,
  id: string,
): Promise<void> {
  const keyring = place.read();
  if (!keyring.keys.has(id)) throw new KeyError(`There is no key ${id} in ${place.name}.`);
  if (keyring.primary === id) {
    throw new KeyError(`The key ${id} seals new secrets. Run \`npx sluice keys rotate\` first.`);
  }
  const rotation = await findLatestRotation(queryable);
  if (rotation && rotation.finished_at === null) {
    throw new KeyError(
      `The rotation to the key ${rotation.id} is not finished. Run \`npx sluice keys rotate\` first.`,
    );
  }
  const holder = (await listKeyHolders(queryable)).find(({ keys }) => keys[0]?.id === id);
  if (holder) {
    throw new KeyError(
      `${capital(nameOf(holder))} seals new secrets with the key ${id}. Restart it with the new keys.`,
    );
  }
  const counts = (await countSealed(queryable, columns)).filter(({ keyId }) => keyId === id);
  if (counts.length > 0) {
    const places = counts.map(({ table, column, values }) => `${values} in ${table}.${column}`).join(', ');
    throw new KeyError(
      `Stored secrets need the key ${id}: ${places}. \`npx sluice keys seal\` seals them with the key ${keyring.primary}.`,
    );
  }
  if (!place.write) {
    report(`Nothing needs the key ${id}. Remove it from ${place.name} of every process.`);
    return;
  }
  place.write({ primary: keyring.primary, keys: new Map([...keyring.keys].filter(([one]) => one !== id)) });
  report(`The key ${id} is removed from ${place.name}. Backups that were sealed with it need a copy of it.`);
}
