import type { CapturedEvent } from './captured-event.ts';

/** What SDKs say whenever somebody checks a flag, whether they computed it themselves or asked for it. */
const CALLED = '$feature_flag_called';
/** The property of such an event that names the flag. */
export const CALLED_FLAG = '$feature_flag';

/** The flag that was checked, if the event says so. */
export function calledFlagOf({
  event,
  properties,
}: Pick<CapturedEvent, 'event' | 'properties'>): string | undefined {
  if (event !== CALLED) return undefined;
  const { [CALLED_FLAG]: key } = properties;
  return typeof key === 'string' ? key : undefined;
}
