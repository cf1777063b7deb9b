import { describe, expect, test } from '@jest/globals';
import { apiForFile } from '../support/api.ts';

const api = apiForFile();

describe('organizations', () => {
  test('are created with a default project and owned by the caller', async () => {
    const anna = await api.createTenant('Anna');
    const created = await api.request(anna, 'POST', '/api/organizations/', { name: 'Café Größe & Co' });
    expect(created.statusCode).toBe(201);
    const body = created.json();
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      name: 'Café Größe & Co',
      slug: 'cafe-groe-co',
      logo_media_id: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/),
      updated_at: expect.any(String),
      membership_level: 15,
      plugins_access_level: 9,
      teams: [expect.objectContaining({ name: 'Default project', organization: body.id })],
      projects: [{ id: expect.any(Number), organization_id: body.id, name: 'Default project' }],
      available_product_features: [],
      is_member_join_email_enabled: true,
      metadata: { instance_tag: 'none' },
      customer_id: null,
      enforce_2fa: null,
      members_can_invite: true,
      members_can_use_personal_api_keys: true,
      member_count: 1,
      is_ai_data_processing_approved: null,
      default_experiment_stats_method: 'bayesian',
    });
    const current = await api.request(anna, 'GET', '/api/organizations/@current');
    expect(current.json()).toEqual(body);
  });
});
