// Listens to live events until it is told to stop. Then prints how many came to each stream, how many were left out, and how long
// after their timestamp they came: in milliseconds, ascending. The load generator writes the time of sending into the timestamp.
import http from 'node:http';

const { PORT, KEY, PROJECT, STREAMS } = process.env;
/** The query of each stream. */
const queries = JSON.parse(STREAMS ?? '[]') as string[];
const latencies: number[] = [];
let [events, skipped, ended] = [0, 0, 0];

for (const query of queries) {
  const path = `/api/projects/${PROJECT}/events/live/?${query}`;
  const headers = { authorization: `Bearer ${KEY}` };
  http.get({ host: '127.0.0.1', port: Number(PORT), path, headers, agent: false }, (answer) => {
    if (answer.statusCode !== 200) throw new Error(`A stream was refused with ${answer.statusCode}.`);
    let rest = '';
    answer.setEncoding('utf8').on('data', (text: string) => {
      const now = Date.now();
      const messages = (rest + text).split('\n\n');
      rest = messages.pop() as string;
      for (const message of messages) {
        if (message.includes('\nevent: skipped\n')) {
          skipped += Number(/"events":(\d+)/.exec(message)?.[1] ?? Number.NaN);
        } else if (message.includes('\ndata: ')) {
          events += 1;
          const time = /"timestamp":"([^"]+)"/.exec(message)?.[1];
          if (events % 10 === 0) latencies.push(now - Date.parse(time as string));
        }
      }
    });
    answer.once('close', () => {
      ended += 1;
    });
  });
}

process.once('SIGTERM', () => {
  process.stdout.write(
    JSON.stringify({ events, skipped, ended, latencies: latencies.sort((a, b) => a - b) }),
    () => process.exit(),
  );
});
