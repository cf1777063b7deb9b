// The locations of addresses, for threads that run programs.
import { type Geoip, openGeoip } from '../geoip/geoip.ts';
import type { HostOptions } from '../hog/host/index.ts';

let geoip: Promise<Geoip | undefined> | undefined;

/** Opens the file when a program of this thread first needs it, since the locations take much memory. */
export async function placesIn(file: string): Promise<HostOptions['place']> {
  // The server has checked the file when it started. If it is gone since, no location is known.
  geoip ??= openGeoip({ file }).catch(() => undefined);
  const opened = await geoip;
  if (!opened) geoip = undefined;
  return opened?.place;
}
