import { describe, expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const said = (tried: { errors: string[] }) => tried.errors.join('\n');

describe('twilio', () => {
  const config = { hosts: ['api.twilio.com'], username: 'AC1', password: 'twilio-secret' };
  const integration = { kind: 'basic', config };
  const inputs = { twilio_account: 1, account_sid: 'AC1', from_number: '+1555', message: 'a & b = 100% +é' };

  test('sends an SMS as a form', async () => {
    const tried = await trials.run('template-twilio', { inputs, integration, answers: [{ status: 201 }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    const basic = Buffer.from('AC1:twilio-secret').toString('base64');
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json' },
        headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      },
    ]);
    expect(Object.fromEntries(new URLSearchParams(trials.heard[0]?.body as string))).toEqual({
      ...{ To: '+4912345', From: '+1555', Body: 'a & b = 100% +é' },
    });
    expect(JSON.stringify(tried)).not.toContain('twilio-secret');
    expect(JSON.stringify(tried)).not.toContain(basic);
  });

  test('fails when it is refused', async () => {
    const body = { code: 21211, message: "The 'To' number is not a valid phone number.", status: 400 };
    const tried = await trials.run('template-twilio', {
      inputs,
      integration,
      answers: [{ status: 400, body }],
    });
    expect(said(tried)).toContain("Failed to send SMS via Twilio: 400 {'code': 21211, 'message':");
  });

  test.each([null, { id: 'p', properties: {} }])('skips events without a number: %j', async (person) => {
    const tried = await trials.run('template-twilio', { inputs, integration, person });
    expect([tried.status, trials.heard]).toEqual(['success', []]);
    expect(tried.logs[0]?.message).toBe('There is no phone number. Skipped.');
  });

  test('says that the account is not connected', async () => {
    expect(said(await trials.run('template-twilio', { inputs }))).toContain('account is not connected');
  });
});

describe('whatsapp', () => {
  const inputs = { access_token: 'wa-secret', phone_number_id: '106', message: 'a "b"' };

  test('sends a text', async () => {
    const tried = await trials.run('template-whatsapp', { inputs });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      {
        ...{ method: 'POST', url: 'https://graph.facebook.com/v23.0/106/messages' },
        headers: { authorization: 'Bearer wa-secret', 'content-type': 'application/json' },
      },
    ]);
    expect(trials.heard[0]?.body).toEqual({
      ...{ messaging_product: 'whatsapp', recipient_type: 'individual', to: '+4912345', type: 'text' },
      text: { preview_url: false, body: 'a "b"' },
    });
    expect(JSON.stringify(tried)).not.toContain('wa-secret');
  });

  test('sends a template', async () => {
    const parameters = [{ type: 'text', text: '{event.event}' }];
    const more = {
      message_type: 'template',
      template_name: 'paid',
      template_components: [{ type: 'body', parameters }],
    };
    await trials.run('template-whatsapp', { inputs: { ...inputs, ...more } });
    expect(trials.heard[0]?.body).toEqual({
      ...{ messaging_product: 'whatsapp', recipient_type: 'individual', to: '+4912345', type: 'template' },
      template: {
        ...{ name: 'paid', language: { code: 'en_US' } },
        components: [{ type: 'body', parameters: [{ type: 'text', text: 'order paid' }] }],
      },
    });
  });

  test('needs a name for a template', async () => {
    const tried = await trials.run('template-whatsapp', { inputs: { ...inputs, message_type: 'template' } });
    expect(said(tried)).toContain('Template name is required for template messages');
    expect(trials.heard).toEqual([]);
  });

  test('fails when it is refused, and skips events without a number', async () => {
    const error = { message: '(#131030) Recipient phone number not in allowed list', code: 131030 };
    const answers = [{ status: 400, body: { error } }];
    const refused = await trials.run('template-whatsapp', { inputs, answers });
    expect(said(refused)).toContain(
      `Failed to send WhatsApp message: 400 {'error': {'message': '${error.message}'`,
    );
    const skipped = await trials.run('template-whatsapp', { inputs, person: null });
    expect([skipped.status, trials.heard]).toEqual(['success', []]);
  });
});
