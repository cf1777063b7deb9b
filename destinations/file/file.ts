import { z } from 'zod';
import type { RawConfig } from '../config.ts';
import type { FilesDestination, Surroundings } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import { checkFileFields, fileFields, fileOptions, ONCE_BY_MANIFEST } from '../file-options.ts';
import { directoryProblem, Folder } from './folder.ts';
import { localStore, tryWriting } from './store.ts';

const fileConfigFields = z
  .object({
    directory: z.string().describe('Directory of the files, relative to the folder of the project.'),
    prefix: z
      .string()
      .default('')
      .describe('Prefix of all file names. A template, in which `/` creates folders.'),
    ...fileFields,
  })
  .superRefine((config, context) => {
    const problem = directoryProblem(config.directory);
    if (problem) context.addIssue({ code: 'custom', path: ['directory'], message: problem });
    else checkFileFields(config, context);
  });

type FileConfig = z.output<typeof fileConfigFields>;

const folderOf = ({ directory }: FileConfig, { exportRoot, folder = null }: Surroundings) =>
  new Folder(exportRoot, folder, directory);

/** In the directory, unlike in the prefix, braces have no meaning. A segment `.` changes nothing. */
function placeOf({ directory, prefix }: RawConfig, folder: string | null) {
  const segments = String(directory).split('/');
  const plain = segments.filter((one) => one !== '.').join('/');
  return {
    store: folder === null ? 'file' : `file ${folder}`,
    prefix: `${plain.replaceAll(/[{}]/g, '$&$&')}/${prefix ?? ''}`,
  };
}

/** Writes files into a directory of the machine that the worker runs on. */
export const file: FilesDestination<FileConfig> = {
  kind: 'files',
  types: ['File'],
  fields: fileConfigFields,
  address: ({ directory }) => ({ directory }),
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: false,
  writesTo: placeOf,
  docs: { once: ONCE_BY_MANIFEST, address: [] },
  options: fileOptions,
  store: (config, surroundings) => localStore(folderOf(config, surroundings)),
  steps: [
    {
      name: 'Write to the directory',
      description: 'Writes a file to the directory and deletes it again.',
      async run(config, surroundings, signal) {
        const disk = `on the disk of ${surroundings.diskOf ?? 'this process'}. Runs write on the disk of their worker`;
        try {
          await tryWriting(folderOf(config, surroundings), signal);
          return {
            passed: `Wrote and deleted a file ${disk}: SLUICE_EXPORT_ROOT must be the same directory for both.`,
          };
        } catch (error) {
          if (error instanceof DestinationError) return `${error.message} (${disk})`;
          throw error;
        }
      },
    },
  ],
};
