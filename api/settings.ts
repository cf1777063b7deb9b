/** What a browser asks for before it sends: how to send events, and which features are on. */
export function settingsOf(token: string, hasFlags: boolean, hasSurveys: boolean) {
  return {
    token,
    supportedCompression: ['gzip', 'gzip-js'],
    hasFeatureFlags: hasFlags,
    captureDeadClicks: false,
    capturePerformance: false,
    autocapture_opt_out: false,
    autocaptureExceptions: false,
    analytics: { endpoint: '/i/v0/e/' },
    elementsChainAsString: true,
    errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
    sessionRecording: false,
    heatmaps: false,
    surveys: hasSurveys,
    productTours: false,
    conversations: false,
    logs: { captureConsoleLogs: false },
    defaultIdentifiedOnly: true,
    isAuthenticated: false,
    siteApps: [] as { id: number | string; url: string }[],
    toolbarParams: {},
    config: { enable_collect_everything: true },
  };
}
