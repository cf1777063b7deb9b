import { once } from 'node:events';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Surroundings } from '../../destinations/destination.ts';
import { runTestStep } from '../../destinations/settings.ts';
import { createEgress } from '../../egress/egress.ts';
import { deliver, failureOf, HASTE } from './harness.ts';
import { sampleEvents } from './sample.ts';

// Receivers that answer with what they were sent, in whatever form. The beginning of the secret has the same form in
// almost all of them.

const BEGINNING = 'phc_secret';
const TOKEN = `${BEGINNING}"quoted"  'and' \\<more> & end`;

interface Asked {
  body: string;
  headers: IncomingHttpHeaders;
}
let answer: (asked: Asked) => { status?: number; headers?: Record<string, string>; body: string };
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => {
    body += piece;
  });
  request.on('end', () => {
    const { status = 400, headers = {}, body: said } = answer({ body, headers: request.headers });
    response.writeHead(status, headers).end(said);
  });
});
let surroundings: Surroundings;
beforeAll(async () => {
  surroundings = { egress: createEgress({ allow: '127.0.0.1' }), exportRoot: '/nowhere', patience: HASTE };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  await surroundings.egress.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const html = (text: string, quote: string, apostrophe: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', quote)
    .replaceAll("'", apostrophe);
const base64 = Buffer.from(TOKEN).toString('base64');

test.each<[string, typeof answer]>([
  ['as it is', () => ({ body: TOKEN })],
  ['in JSON', ({ body }) => ({ body })],
  ['in JSON inside of JSON', ({ body }) => ({ body: JSON.stringify({ body }) })],
  ['in a URL', () => ({ body: `?token=${encodeURIComponent(TOKEN)}` })],
  ['in HTML', () => ({ body: html(TOKEN, '&quot;', '&#39;') })],
  ['in XML', () => ({ body: html(TOKEN, '&quot;', '&apos;') })],
  ['in base64', () => ({ body: base64 })],
  ['in a redirect', () => ({ status: 302, headers: { location: `http://${BEGINNING}/` }, body: '' })],
])('a secret that is sent back %s is not shown', async (what, given) => {
  answer = given;
  const token = what === 'in a redirect' ? BEGINNING : TOKEN;
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/batch/`;
  const settings = { type: 'HTTP', config: { url, token } };
  const step = await runTestStep(settings, 0, surroundings);
  const failed = await failureOf(deliver({ ...settings, surroundings, events: sampleEvents(1) }));
  for (const text of [step?.result?.message, failed.message]) {
    expect(text).toContain('***');
    expect(text).not.toContain(BEGINNING);
    expect(text).not.toContain(base64.slice(0, 12));
  }
});
