/** The setting of a transaction that names the one project whose rows the reader sees. */
export const PROJECT_SETTING = 'sluice.project';

/**
 * Settings for a transaction that reads one project. They are set by `set local`, because the reader may not call
 * `set_config`.
 */
export const ofProject = (projectId: number): Readonly<Record<string, string>> => ({
  [PROJECT_SETTING]: String(projectId),
});
