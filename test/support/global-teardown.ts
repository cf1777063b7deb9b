import type { TestRun } from './global-setup.ts';

/** Ends the servers of the run and waits until they are gone. */
export default async function globalTeardown(): Promise<void> {
  const services = (globalThis as { testRun?: TestRun }).testRun?.services;
  if (!services || services.exitCode !== null || services.signalCode !== null) return;
  const gone = new Promise((resolve) => services.once('exit', resolve));
  services.disconnect();
  await gone;
}
