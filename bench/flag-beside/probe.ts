// An open loop of requests for flags: each has its time, whatever became of those before it, and its latency counts from that time.
// Prints the latencies in milliseconds, ascending.
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { bodyOf } from '../flags/dataset.ts';

const { PORT, RATE, SECONDS, PERSONS } = process.env;
const agent = new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const latencies: number[] = [];
const failed: (string | undefined)[] = [];
const asked: Promise<void>[] = [];
const begin = performance.now() + 100;

function ask(planned: number): Promise<void> {
  // Every other request needs the person from the database.
  const body = bodyOf(Math.floor(Math.random() * Number(PERSONS)), asked.length % 2 === 0);
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
  return new Promise((resolve) => {
    const done = (failure?: string) => {
      if (failure === undefined) latencies.push(performance.now() - planned);
      else failed.push(failure);
      resolve();
    };
    const request = http.request(
      { host: '127.0.0.1', port: Number(PORT), agent, method: 'POST', path: '/flags?v=2', headers },
      (response) => {
        response.resume();
        response.once('end', () =>
          done(response.statusCode === 200 ? undefined : String(response.statusCode)),
        );
      },
    );
    request.once('error', (error) => done(error.message));
    request.end(body);
  });
}

for (let n = 0; n < Number(RATE) * Number(SECONDS); n += 1) {
  const planned = begin + (n * 1000) / Number(RATE);
  const wait = planned - performance.now();
  if (wait > 1) await pause(wait);
  asked.push(ask(planned));
}
await Promise.all(asked);
agent.destroy();
console.log(JSON.stringify({ latencies: latencies.sort((a, b) => a - b), failed }));
