// What fake-gcs-server lacks, in front of it: credentials of both kinds, the XML API, the state of resumable uploads, and
// the condition of a deletion. Objects, generations and the conditions of uploads are those of the emulator.
import { createHash, createHmac, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const EMAIL = 'lake@sluice-test.iam.gserviceaccount.com';

export const HMAC_KEY = { accessKey: 'GOOG1ETESTACCESSKEY', secret: 'the secret of an HMAC key in tests' };
/** All of a session but its end comes in multiples of this. */
const QUANTUM = 256 * 1024;

interface Session {
  kept: number;
  /** The answer to its end. */
  ended?: Answered;
  isXml: boolean;
}

interface Answered {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

export interface GoogleFront {
  endpoint: string;
  /** The key file of an account that may do everything. */
  keyFile: Record<string, string>;
  stop(): Promise<void>;
}

/** The key file of an account with any key. */
export const keyFileWith = (endpoint: string, key: string): Record<string, string> => ({
  // In the order in which Sluice stores it.
  ...{ type: 'service_account', client_email: EMAIL, private_key: key, project_id: 'sluice-test' },
  token_uri: `${endpoint}/token`,
});

export const pemOf = (key: typeof privateKey): string =>
  key.export({ type: 'pkcs8', format: 'pem' }) as string;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

const json = (status: number, reason: string, message: string): Answered => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(
    JSON.stringify({ error: { code: status, message, errors: [{ domain: 'global', reason, message }] } }),
  ),
});

const xml = (status: number, code: string): Answered => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body: Buffer.from(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`),
});

/** Starts it in this process. `behind` is the URL of the emulator. */
export async function startGoogleFront(behind: string): Promise<GoogleFront> {
  const tokens = new Set<string>();
  const sessions = new Map<string, Session>();

  async function pass(
    path: string,
    method: string,
    headers: Record<string, string> = {},
    body?: Buffer,
  ): Promise<Answered> {
    const call = http.request(behind + path, {
      method,
      headers: { ...headers, ...(body ? { 'content-length': body.length } : {}) },
    });
    call.end(body);
    const [answer] = (await once(call, 'response')) as [IncomingMessage];
    return {
      status: answer.statusCode ?? 500,
      headers: Object.fromEntries(
        Object.entries(answer.headers)
          .filter(([name]) => name !== 'transfer-encoding')
          .map(([name, value]) => [name, String(value)]),
      ),
      body: await bodyOf(answer),
    };
  }

  const objects = (bucket: string) => `/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  const objectAt = (bucket: string, key: string) => `${objects(bucket)}/${encodeURIComponent(key)}`;

  async function generationOf(path: string): Promise<string> {
    const { status, body } = await pass(path, 'GET');
    return status === 200 ? JSON.parse(body.toString()).generation : '0';
  }

  function giveToken(body: Buffer, endpoint: string): Answered {
    const [head = '', claims = '', signature = ''] = (
      new URLSearchParams(body.toString()).get('assertion') ?? ''
    ).split('.');
    const { iss, aud } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const isSigned = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      publicKey,
      Buffer.from(signature, 'base64url'),
    );
    const headers = { 'content-type': 'application/json' };
    const answer = (status: number, said: object) => ({
      ...{ status, headers, body: Buffer.from(JSON.stringify(said)) },
    });
    if (!isSigned || iss !== EMAIL || aud !== `${endpoint}/token`)
      return answer(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' });
    const token = `ya29.${randomBytes(24).toString('base64url')}`;
    tokens.add(token);
    return answer(200, { access_token: token, expires_in: 3599, token_type: 'Bearer' });
  }

  /** Keeps what is new of a request to a session, as Google does: whole quanta, unless it is the end. */
  async function goOn(id: string, request: IncomingMessage, body: Buffer): Promise<Answered> {
    const session = sessions.get(id);
    if (!session) return json(404, 'notFound', 'no such upload');
    if (request.method === 'DELETE') {
      sessions.delete(id);
      return json(499, 'cancelled', 'the upload was given up');
    }
    if (session.ended) return session.ended;
    const more = (): Answered => ({
      status: 308,
      headers: session.kept > 0 ? { range: `bytes=0-${session.kept - 1}` } : {},
      body: Buffer.alloc(0),
    });
    const [, from, to, total] =
      /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(String(request.headers['content-range'])) ?? [];
    const isEnd = total !== '*' && Number(total) === (to === undefined ? session.kept : Number(to) + 1);
    if ((from === undefined && !isEnd) || Number(from ?? 0) > session.kept) return more();
    let fresh = from === undefined ? body : body.subarray(session.kept - Number(from));
    if (!isEnd) fresh = fresh.subarray(0, fresh.length - (fresh.length % QUANTUM));
    if (fresh.length === 0 && !isEnd) return more();
    const range = fresh.length === 0 ? '*' : `${session.kept}-${session.kept + fresh.length - 1}`;
    const headers = { 'content-range': `bytes ${range}/${isEnd ? total : '*'}` };
    const answer = await pass(`/upload/resumable/${id}?upload_id=${id}`, 'PUT', headers, fresh);
    if (answer.status === 308) {
      session.kept += fresh.length;
      return more();
    }
    if (answer.status >= 300) return session.isXml ? xml(answer.status, 'PreconditionFailed') : answer;
    session.ended = session.isXml ? inXml(answer) : answer;
    return session.ended;
  }

  const inXml = ({ status, body }: Answered): Answered => ({
    status,
    headers: { 'x-goog-hash': `crc32c=AAAAAA==,md5=${JSON.parse(body.toString()).md5Hash}` },
    body: Buffer.alloc(0),
  });

  function remember(answer: Answered, isXml: boolean): Answered {
    const id = URL.parse(answer.headers.location ?? '')?.searchParams.get('upload_id');
    if (id) sessions.set(id, { kept: 0, isXml });
    return answer;
  }

  async function jsonApi(request: IncomingMessage, url: URL, body: Buffer): Promise<Answered> {
    const condition = url.searchParams.get('ifGenerationMatch');
    if (request.method === 'DELETE' && condition !== null) {
      const now = await generationOf(url.pathname);
      if (now !== condition) return json(412, 'conditionNotMet', 'the object has changed');
    }
    const type = request.headers['content-type'];
    const path = url.pathname + url.search;
    return remember(
      await pass(path, request.method ?? 'GET', type === undefined ? {} : { 'content-type': type }, body),
      false,
    );
  }

  async function xmlApi(request: IncomingMessage, url: URL, body: Buffer): Promise<Answered> {
    const [bucket = '', ...rest] = decodeURIComponent(url.pathname.slice(1)).split('/');
    const key = rest.join('/');
    const hasBucket = (await pass(`/storage/v1/b/${bucket}`, 'GET')).status === 200;
    if (!hasBucket) return xml(404, 'NoSuchBucket');
    const at = objectAt(bucket, key);
    const condition = request.headers['x-goog-if-generation-match'];
    const match = condition === undefined ? '' : `&ifGenerationMatch=${condition}`;
    const named = `name=${encodeURIComponent(key)}${match}`;
    const metadata = Object.entries(request.headers)
      .filter(([name]) => name.startsWith('x-goog-meta-'))
      .map(([name, value]) => [name, String(value)] as const);
    if (key === '') return pass(`${objects(bucket)}?maxResults=1`, 'GET');
    if (request.method === 'GET' || request.method === 'HEAD') {
      const answer = await pass(`${at}?alt=media`, request.method);
      return answer.status === 404 ? xml(404, 'NoSuchKey') : answer;
    }
    if (request.method === 'PUT') {
      if (request.headers['content-md5'] !== createHash('md5').update(body).digest('base64'))
        return xml(400, 'BadDigest');
      const type = { 'content-type': String(request.headers['content-type']) };
      const headers = { ...Object.fromEntries(metadata), ...type };
      const path = `/upload${objects(bucket)}?uploadType=media&${named}`;
      const answer = await pass(path, 'POST', headers, body);
      return answer.status < 300 ? inXml(answer) : xml(answer.status, 'PreconditionFailed');
    }
    if (request.method === 'POST' && request.headers['x-goog-resumable'] === 'start') {
      const described = {
        contentType: request.headers['content-type'],
        metadata: Object.fromEntries(
          metadata.map(([name, value]) => [name.slice('x-goog-meta-'.length), value]),
        ),
      };
      const headers = { 'content-type': 'application/json' };
      const path = `/upload${objects(bucket)}?uploadType=resumable&${named}`;
      const begun = await pass(path, 'POST', headers, Buffer.from(JSON.stringify(described)));
      return { ...remember(begun, true), status: 201, body: Buffer.alloc(0) };
    }
    if (request.method !== 'DELETE') return xml(405, 'MethodNotAllowed');
    if (condition !== undefined && (await generationOf(at)) !== condition)
      return xml(412, 'PreconditionFailed');
    const answer = await pass(at, 'DELETE');
    return answer.status === 404 ? xml(404, 'NoSuchKey') : { ...answer, status: 204, body: Buffer.alloc(0) };
  }

  const server = http.createServer(async (request: IncomingMessage, response: ServerResponse) => {
    try {
      const body = await bodyOf(request);
      const answer = await answerTo(request, body);
      response.writeHead(answer.status, { ...answer.headers, 'content-length': lengthOf(request, answer) });
      response.end(answer.body);
    } catch {
      response.destroy();
    }
  });
  const lengthOf = ({ method }: IncomingMessage, { headers, body }: Answered) =>
    method === 'HEAD' ? (headers['content-length'] ?? 0) : body.length;

  async function answerTo(request: IncomingMessage, body: Buffer): Promise<Answered> {
    const url = new URL(request.url ?? '', endpoint);
    if (url.pathname === '/token') return giveToken(body, endpoint);
    const id = url.searchParams.get('upload_id');
    if (id) return goOn(id, request, body);
    const { authorization = '' } = request.headers;
    if (authorization.startsWith('GOOG4-')) {
      const fault = signatureFault(request, url);
      return fault ? xml(403, fault) : xmlApi(request, url, body);
    }
    if (!tokens.has(authorization.slice('Bearer '.length)))
      return json(401, 'authError', 'Invalid Credentials');
    return jsonApi(request, url, body);
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    endpoint,
    keyFile: keyFileWith(endpoint, pemOf(privateKey)),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What Google says of a signature, worked out from the request as it arrived. Undefined if it is right. */
function signatureFault({ method, headers, url: asked = '' }: IncomingMessage, url: URL): string | undefined {
  const found =
    /^GOOG4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/auto\/storage\/goog4_request, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    );
  const [, accessKey, day = '', names = '', signature] = found ?? [];
  if (accessKey !== HMAC_KEY.accessKey) return 'InvalidSecurity';
  const unsigned = Object.keys(headers).filter(
    (name) => name.startsWith('x-goog-') && !names.split(';').includes(name),
  );
  if (unsigned.length > 0 || !names.split(';').includes('host')) return 'InvalidArgument';
  const canonical = [
    ...[method, asked.split('?')[0], url.search.slice(1)],
    ...names.split(';').map((name) => `${name}:${headers[name]}`),
    ...['', names, headers['x-goog-content-sha256']],
  ].join('\n');
  const hash = createHash('sha256').update(canonical).digest('hex');
  const scope = `${day}/auto/storage/goog4_request`;
  const text = `GOOG4-HMAC-SHA256\n${headers['x-goog-date']}\n${scope}\n${hash}`;
  let key = Buffer.from(`GOOG4${HMAC_KEY.secret}`);
  for (const part of [day, 'auto', 'storage', 'goog4_request', text])
    key = createHmac('sha256', key).update(part).digest();
  return key.toString('hex') === signature ? undefined : 'SignatureDoesNotMatch';
}
