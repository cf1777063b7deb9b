import { goInstall } from '../go-install.ts';
import type { Report } from '../problem.ts';

/** The newest version that `go install` accepts; later ones have replace directives in their go.mod. */
export const TEMPORAL_MODULE = 'github.com/temporalio/cli/cmd/temporal@v1.5.1';

/** Builds the Temporal CLI with the machine's Go into `folder`; about four minutes on two cores. */
export function buildTemporal(
  folder: string,
  report: Report,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<string> {
  return goInstall({ module: TEMPORAL_MODULE, program: 'temporal', folder, report, env, signal });
}
