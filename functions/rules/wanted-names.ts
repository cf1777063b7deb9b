/** Returns the names of the events that any of several filters choose. Null: they may choose any. */
export function wantedNames(filters: readonly Record<string, unknown>[]): string[] | null {
  const names: string[] = [];
  for (const { events, actions } of filters) {
    if (!Array.isArray(events) || events.length === 0) return null;
    if (Array.isArray(actions) && actions.length > 0) return null;
    for (const one of events as { id?: unknown }[]) {
      if (typeof one.id !== 'string') return null;
      names.push(one.id);
    }
  }
  return names;
}
