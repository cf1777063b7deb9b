/** What a browser asks for before it sends: how to send, and which features to leave alone. */
export function remoteConfig(token: string) {
  return {
    token,
    supportedCompression: ['gzip', 'gzip-js'],
    hasFeatureFlags: false,
    captureDeadClicks: false,
    capturePerformance: false,
    autocapture_opt_out: false,
    autocaptureExceptions: false,
    analytics: { endpoint: '/i/v0/e/' },
    elementsChainAsString: true,
    errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
    sessionRecording: false,
    heatmaps: false,
    surveys: false,
    productTours: false,
    conversations: false,
    logs: { captureConsoleLogs: false },
    defaultIdentifiedOnly: true,
    isAuthenticated: false,
    siteApps: [],
    toolbarParams: {},
  };
}

/** The same as a script, for snippets that load it before the library. */
export function remoteConfigScript(token: string): string {
  // In a script element, `</script>` inside a text would end it.
  const name = JSON.stringify(token).replaceAll('<', '\\u003c');
  const config = JSON.stringify(remoteConfig(token)).replaceAll('<', '\\u003c');
  return (
    '(function(){window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};' +
    `window._POSTHOG_REMOTE_CONFIG[${name}]={config:${config},siteApps:[]};})();`
  );
}

/** What clients before the remote config asked `/decide` for: the same, under its older names. */
export function decideAnswer(token: string) {
  return {
    ...remoteConfig(token),
    config: { enable_collect_everything: true },
    editorParams: {},
    featureFlags: {},
    featureFlagPayloads: {},
    errorsWhileComputingFlags: false,
  };
}
