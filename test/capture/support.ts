import type { CapturedEvent } from '../../capture/captured-event.ts';
import { uuidv7 } from '../../db/uuid.ts';

export function capturedEvent(fields: Partial<CapturedEvent> = {}): CapturedEvent {
  return {
    uuid: uuidv7(),
    event: 'page viewed',
    distinct_id: 'user-1',
    properties: { $current_url: 'https://example.com/' },
    timestamp: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    received_at: Date.UTC(2026, 0, 2, 3, 4, 6, 789),
    ip: undefined,
    historical: false,
    ...fields,
  };
}
