import { BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { afterAll, beforeAll } from '@jest/globals';
import { ACCOUNT, type RunningAzurite, startAzurite } from './azurite-server.ts';
import { PATIENCE } from './eventually.ts';
import { reservePort } from './ports.ts';

export interface AzureServer {
  account: string;
  key: string;
  /** The URL of the blob service. */
  endpoint: string;
  /** A client of the test's own, to see what is there. */
  client: BlobServiceClient;
  createContainer(): Promise<string>;
  container(name: unknown): ContainerClient;
}

let containers = 0;

/** A real server for the tests of one file. It is gone afterwards. */
export function azuriteForFile(): AzureServer {
  const server = {
    account: ACCOUNT.name,
    key: ACCOUNT.key,
    async createContainer() {
      containers += 1;
      const name = `container-${process.pid}-${containers}`;
      await server.client.createContainer(name);
      return name;
    },
    container: (name) => server.client.getContainerClient(name as string),
  } as AzureServer;
  let running: RunningAzurite | undefined;
  beforeAll(async () => {
    running = await startAzurite(await reservePort());
    server.endpoint = running.endpoint;
    const credential = new StorageSharedKeyCredential(ACCOUNT.name, ACCOUNT.key);
    server.client = new BlobServiceClient(server.endpoint, credential);
  }, PATIENCE);
  afterAll(async () => {
    await running?.stop();
  });
  return server;
}

/** The names of the blobs that a reader sees. */
export async function blobsIn(container: ContainerClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of container.listBlobsFlat()) names.push(name);
  return names;
}
