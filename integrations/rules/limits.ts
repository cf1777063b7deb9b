/** What a project and its integrations may have at most. */
export const INTEGRATION_LIMITS = {
  /** Integrations of a project. */
  integrations: 1_000,
  /** Hosts of an integration that names its hosts itself. */
  hosts: 20,
} as const;
