import { credentialsFile } from './credentials.ts';
import { missingCredentialsHint } from './prepare-database.ts';
import type { Stack } from './stack.ts';

/** What the person at the terminal reads when everything runs. */
export function readyText(stack: Stack, seconds: string): string {
  const { plan, database } = stack;
  const { credentials, firstStart } = database;
  const lines = [
    '',
    `Sluice is running (started in ${seconds} s).`,
    '',
    `  API          ${plan.baseUrl}`,
    `  API docs     ${plan.baseUrl}/api/schema/swagger-ui/`,
    `  Temporal UI  ${plan.temporalUiUrl ?? `not known (Temporal is at ${plan.temporalAddress}; set TEMPORAL_UI_URL)`}`,
    ...(plan.ports.apiMetrics > 0
      ? [
          `  Metrics      http://localhost:${plan.ports.apiMetrics}/metrics (API), http://localhost:${plan.ports.workerMetrics}/metrics (worker)`,
        ]
      : []),
    `  Data, logs   ${plan.dataDir}`,
    '',
  ];
  if (!stack.workerIsReady) {
    lines.push(
      `The worker is not ready yet: it waits for Temporal at ${plan.temporalAddress} and goes on by itself.`,
      '',
    );
  }
  if (credentials && firstStart) {
    lines.push(
      'The keys of this installation, shown only this once:',
      `  personal API key  ${credentials.personal_api_key}`,
      `  project API key   ${credentials.project_api_key}`,
      `They are also in ${credentialsFile(plan.dataDir)}, which only you can read.`,
      '',
    );
  } else if (credentials) {
    lines.push(`The keys are in ${credentialsFile(plan.dataDir)}.`, '');
  } else {
    lines.push(missingCredentialsHint(plan.dataDir), '');
  }
  const key = bearer(plan.dataDir, credentials?.personal_api_key, firstStart);
  lines.push(
    'Try it:',
    `  curl ${plan.baseUrl}/_readyz`,
    `  curl -H "Authorization: Bearer ${key}" ${plan.baseUrl}/api/users/@me/`,
    `  curl -H "Authorization: Bearer ${key}" ${plan.baseUrl}/api/organizations/`,
    '',
    'Ctrl-C stops everything; the data stays.',
  );
  return lines.join('\n');
}

/** The key itself on the first start; later a shell expression that reads it, so that it is not shown again. */
function bearer(dataDir: string, key: string | undefined, show: boolean): string {
  if (key === undefined) return '<personal API key>';
  if (show) return key;
  const program = `console.log(JSON.parse(fs.readFileSync(process.argv[1])).personal_api_key)`;
  return `$(node -e '${program}' '${credentialsFile(dataDir).replaceAll("'", `'\\''`)}')`;
}
