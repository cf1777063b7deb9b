import type { Handled } from './capture.ts';

/** The newer form's answer: what became of each event, by the uuid that the client gave it. */
export function v1Answer({ uuids, notices }: Handled): string {
  const results: Record<string, { result: 'ok' | 'drop'; details?: string }> = Object.create(null);
  for (const uuid of uuids) results[uuid] = { result: 'ok' };
  for (const { reason, detail } of notices.skipped) {
    if (typeof detail.uuid === 'string') results[detail.uuid] = { result: 'drop', details: reason };
  }
  return JSON.stringify({ results });
}
