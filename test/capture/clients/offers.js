// What a page does with posthog-js, a survey and a feature that its visitor may choose: useOffers(host, project key, done).
// It answers the survey as a visitor would, by what is in the document, and tells what it saw.
// biome-ignore lint/correctness/noUnusedVariables: called by the page that includes this file
function useOffers(host, key, done) {
  const { posthog } = window;
  const seen = { before: null, features: [], question: null, thanks: null, after: null, warnings: [] };
  for (const level of ['warn', 'error']) {
    window.console[level] = (...words) => seen.warnings.push(words.join(' '));
  }
  const until = (look) =>
    new Promise((resolve) => {
      const timer = setInterval(() => {
        const found = look();
        if (!found) return;
        clearInterval(timer);
        resolve(found);
      }, 50);
    });
  const inSurvey = (selector) =>
    [...document.querySelectorAll('[class^="PostHogSurvey"]')]
      .map((one) => one.shadowRoot?.querySelector(selector))
      .find((one) => one);
  const flags = () => new Promise((resolve) => posthog.onFeatureFlags(() => resolve()));
  posthog.init(key, {
    api_host: host,
    autocapture: false,
    capture_pageview: false,
    capture_pageleave: false,
    disable_session_recording: true,
    opt_out_useragent_filter: true,
    request_batching: false,
    loaded: () => posthog.identify('visitor'),
  });

  async function choose() {
    await flags();
    const features = await new Promise((resolve) => posthog.getEarlyAccessFeatures(resolve, true));
    seen.features = features;
    const [feature] = features;
    const label = document.createElement('label');
    label.innerHTML = `<input type="checkbox" id="early"> ${feature.name}`;
    document.body.append(label);
    const box = document.getElementById('early');
    box.addEventListener('change', () =>
      posthog.updateEarlyAccessFeatureEnrollment(feature.flagKey, box.checked),
    );
    seen.before = posthog.isFeatureEnabled(feature.flagKey) ?? null;
    box.click();
    posthog.reloadFeatureFlags();
    await flags();
    seen.after = posthog.isFeatureEnabled(feature.flagKey);
  }

  async function answer() {
    // The survey waits for an action, which this event is.
    const paying = setInterval(() => posthog.capture('order paid', { plan: 'pro' }), 200);
    const question = await until(() => inSurvey('.survey-question'));
    clearInterval(paying);
    seen.question = question.textContent;
    const field = inSurvey('textarea');
    // As if somebody typed it: the survey is a Preact component that listens to the event.
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(field, 'Very much');
    field.dispatchEvent(new Event('input', { bubbles: true }));
    const button = await until(() => {
      const found = inSurvey('.form-submit');
      return found && !found.disabled ? found : undefined;
    });
    button.click();
    seen.thanks = (await until(() => inSurvey('.thank-you-message-header'))).textContent;
  }

  choose()
    .then(answer)
    .catch((error) => {
      seen.error = String(error?.stack ?? error);
    })
    .finally(() => done(JSON.stringify(seen)));
}
