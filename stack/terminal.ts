import { type Credentials, credentialsFile, missingCredentialsHint } from './prepare-database.ts';
import type { Stack } from './stack.ts';

/** The text that `npm start` prints when everything runs. */
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
      `The worker is not ready yet. It waits for Temporal at ${plan.temporalAddress} and starts as soon as Temporal answers.`,
      '',
    );
  }
  if (credentials && firstStart) {
    lines.push(
      'The keys of this installation (Sluice prints them only once):',
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
  const key = firstStart && credentials ? credentials.personal_api_key : '$KEY';
  lines.push(
    'Try it:',
    // On later starts the shell reads the key from the file, so that the terminal does not show it again.
    ...(key === '$KEY' ? [`  KEY=${readKey(plan.dataDir, credentials !== undefined)}`] : []),
    `  curl -H "Authorization: Bearer ${key}" ${plan.baseUrl}/api/users/@me/`,
    `  curl -H "Content-Type: application/json" -d '${sampleEvent(credentials)}' ${plan.baseUrl}/i/v0/e/`,
    `  curl -H "Authorization: Bearer ${key}" ${plan.baseUrl}/api/projects/@current/events/`,
    '',
    'Ctrl-C stops everything; the data stays.',
  );
  return lines.join('\n');
}

/** An example event with the project key. That key is public: everybody who sends events has it. */
function sampleEvent(credentials: Credentials | undefined): string {
  const api_key = credentials?.project_api_key ?? 'your project API key';
  return JSON.stringify({ api_key, event: 'hello', distinct_id: 'me' });
}

function readKey(dataDir: string, known: boolean): string {
  if (!known) return '"your personal API key"';
  const file = credentialsFile(dataDir).replaceAll("'", `'\\''`);
  const program = 'console.log(JSON.parse(fs.readFileSync(process.argv[1])).personal_api_key)';
  return `$(node -e '${program}' '${file}')`;
}
