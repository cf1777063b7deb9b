import { readConfig, secretValues } from './config.ts';
import type {
  Delivered,
  Delivery,
  FilesDestination,
  RowsDestination,
  RowsFound,
  Run,
  RunControl,
  Surroundings,
} from './destination.ts';
import { DestinationConfigError, DestinationError, withoutSecrets } from './errors.ts';
import type { FileOptions } from './file-options.ts';
import {
  type Cleared,
  clearFiles,
  type FileRun,
  keysOf,
  type Leavings,
  openFileRun,
  type TakeBack,
  takeBackFiles,
  type Verification,
  verifyFiles,
} from './file-run.ts';
import type { ObjectKeys } from './object-keys.ts';
import { requireDestination } from './registry.ts';
import type { DestinationSettings } from './settings.ts';

interface Bound {
  type: string;
}

/** A configured destination that takes files. */
export interface BoundFiles extends Bound {
  kind: 'files';
  options: FileOptions;
  keys(run: Pick<Run, 'model' | 'interval'>): ObjectKeys;
  open(run: Run, work?: RunControl): Promise<FileRun>;
  verify(run: Run, work?: Pick<RunControl, 'signal' | 'mayName'>): Promise<Verification>;
  /** Removes the files and the manifest of an interval. Resolves with false if there were none. */
  takeBack(run: Run, work?: TakeBack): Promise<boolean>;
  /** Removes what an attempt has left that is over. */
  clear(left: Leavings, work?: Pick<RunControl, 'signal' | 'fence'>): Promise<Cleared>;
}

/** A configured destination that takes rows. */
export interface BoundRows extends Bound {
  kind: 'rows';
  deliver(delivery: Delivery): Promise<Delivered>;
  /** Absent if the destination cannot be asked which rows it has. */
  find?(delivery: Delivery): Promise<RowsFound>;
}

/**
 * Joins a destination with its configuration. It throws DestinationErrors without secrets and causes, so that they can
 * be stored and shown. A cancellation, and errors of the source, the fence or the encoder, are rethrown as they are.
 */
export function bindDestination(
  settings: DestinationSettings,
  surroundings: Surroundings,
): BoundFiles | BoundRows {
  const destination = requireDestination(settings.type);
  const secrets = secretValues(destination.fields, settings.config);
  const config = parsed(settings, destination);
  const clean: Clean = (error) => {
    if (!(error instanceof DestinationError)) throw error;
    const { code, message, retryAfterMilliseconds } = error;
    throw new DestinationError(code, withoutSecrets(message, secrets), { retryAfterMilliseconds });
  };
  const bound: Bound = { type: settings.type };
  return destination.kind === 'files'
    ? { ...bound, ...boundFiles(destination, config, surroundings, clean) }
    : { ...bound, ...boundRows(destination, config, surroundings, clean) };
}

function parsed(
  settings: DestinationSettings,
  destination: Pick<FilesDestination<unknown>, 'fields' | 'expand'>,
): unknown {
  try {
    return destination.fields.parse(readConfig(destination, settings.config));
  } catch (error) {
    // Another version stored it, or somebody changed it by hand. Only the operator can mend it.
    if (error instanceof DestinationConfigError)
      throw new DestinationError('not-configured', `${settings.type}: ${error.message}`);
    throw error;
  }
}

type Clean = (error: unknown) => never;

function boundFiles(
  destination: FilesDestination<unknown>,
  config: unknown,
  surroundings: Surroundings,
  clean: Clean,
): Omit<BoundFiles, keyof Bound> {
  const options = destination.options(config);
  return {
    kind: 'files',
    options,
    keys: (run) => keysOf(options, run),
    async open(run, work) {
      const opened = await openFileRun(destination, config, surroundings, run, work).catch(clean);
      return {
        ...opened,
        async openFile(index) {
          const sink = await opened.openFile(index).catch(clean);
          return {
            write(chunk) {
              try {
                return sink.write(chunk)?.catch(clean);
              } catch (error) {
                return clean(error);
              }
            },
            close: () => sink.close().catch(clean),
            abort: () => sink.abort().catch(clean),
          };
        },
        finish: (encoded) => opened.finish(encoded).catch(clean),
      };
    },
    verify: (run, work) => verifyFiles(destination, config, surroundings, run, work).catch(clean),
    takeBack: (run, work) => takeBackFiles(destination, config, surroundings, run, work).catch(clean),
    clear: (left, work) => clearFiles(destination, config, surroundings, left, work).catch(clean),
  };
}

function boundRows(
  destination: RowsDestination<unknown>,
  config: unknown,
  surroundings: Surroundings,
  clean: Clean,
): Omit<BoundRows, keyof Bound> {
  const { find } = destination;
  return {
    kind: 'rows',
    deliver: (delivery) => destination.deliver(config, surroundings, delivery).catch(clean),
    ...(find ? { find: (delivery: Delivery) => find(config, surroundings, delivery).catch(clean) } : {}),
  };
}
