// What a page does with posthog-js from the HTML snippet and nothing else: useSnippet(host, project key, done). The stub does
// what the published snippet does: it loads the library from the address of the API and keeps the calls for it until then.
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function useSnippet(host, key, done) {
  const seen = { version: null, flag: null, question: null, written: [], loaded: [], unloaded: [] };
  for (const level of ['warn', 'error']) {
    window.console[level] = (...words) => seen.written.push(words.join(' '));
  }
  window.addEventListener('error', ({ message, target }) => seen.unloaded.push(target?.src ?? message), true);

  const stub = [];
  window.posthog = stub;
  stub._i = [];
  stub.people = [];
  stub.__SV = 1;
  stub.init = (token, config, name = 'posthog') => {
    const script = document.createElement('script');
    script.type = 'text/javascript';
    script.crossOrigin = 'anonymous';
    script.async = true;
    script.src = `${config.api_host.replace('.i.posthog.com', '-assets.i.posthog.com')}/static/array.js`;
    const [first] = document.getElementsByTagName('script');
    first.parentNode.insertBefore(script, first);
    for (const method of ['capture', 'identify', 'onFeatureFlags', 'isFeatureEnabled', 'getFeatureFlag']) {
      stub[method] = (...given) => stub.push([method, ...given]);
    }
    stub._i.push([token, config, name]);
  };

  window.posthog.init(key, {
    api_host: host,
    defaults: '2025-05-24',
    opt_out_useragent_filter: true,
    request_batching: false,
  });
  window.posthog.capture('before the library');
  const flags = new Promise((resolve) => window.posthog.onFeatureFlags(() => resolve()));
  const survey = () =>
    [...document.querySelectorAll('[class^="PostHogSurvey"]')]
      .map((one) => one.shadowRoot?.querySelector('.survey-question'))
      .find((one) => one);
  const shown = new Promise((resolve) => {
    const timer = setInterval(() => {
      const found = survey();
      if (!found) return;
      clearInterval(timer);
      resolve(found.textContent);
    }, 50);
  });
  flags
    .then(async () => {
      seen.flag = window.posthog.getFeatureFlag('new-search');
      seen.version = window.posthog.version;
      seen.question = await shown;
      seen.loaded = [...document.scripts].map(({ src }) => src).filter((src) => src.startsWith(host));
    })
    .catch((error) => {
      seen.error = String(error?.stack ?? error);
    })
    .finally(() => done(JSON.stringify(seen)));
}
