import { DROP_EVENTS } from './drop-events.ts';
import type { Template } from './template.ts';
import { WEBHOOK } from './webhook.ts';

/** All templates. A further one is a file and a line here. */
export const TEMPLATES: readonly Template[] = [WEBHOOK, DROP_EVENTS];

const byId = new Map(TEMPLATES.map((one) => [one.id, one]));

export const findTemplate = (id: string): Template | undefined => byId.get(id);
