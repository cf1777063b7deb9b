import { z } from 'zod';
import { findIcon, findServiceIcon, type Icon, searchIcons } from '../../functions/icons.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import type { Lane, LaneMember } from '../public/lane.ts';
import { PREFIX, READ } from './resource.ts';

const TAGS = ['function templates'];
const SVG = 'image/svg+xml';
const FILE_PATH = '/static/services/:file';
/** How people of a project see a picture that they have found. */
const ICON_URL = '/api/projects/@current/hog_functions/icon/?id=';
const LONGEST_QUERY = 200;

/** The files are small and the same for everybody. They have no scripts, and a browser would not run any. */
const HEADERS = {
  'cache-control': 'public, max-age=86400',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
} as const;

const params = z.object({ project_id: z.string() });
const found = z.array(z.object({ id: z.string(), name: z.string(), url: z.string() }));

/** Adds the routes that find pictures of services, and show one. */
export function iconRoutes(app: App): void {
  app.get(
    `${PREFIX}icons/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Find pictures of services',
        params,
        querystring: z.object({
          query: z
            .string()
            .max(LONGEST_QUERY)
            .optional()
            .meta({ description: 'A part of the name or of the host. Without it, nothing is found.' }),
        }),
        response: { 200: found },
      },
    },
    async ({ query: { query = '' } }) =>
      searchIcons(query).map(({ id, title }) => ({
        id,
        name: title,
        url: ICON_URL + encodeURIComponent(id),
      })),
  );

  app.get(
    `${PREFIX}icon/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Show the picture of a service',
        params,
        querystring: z.object({
          id: z.string().optional().meta({ description: 'The id of the picture, such as `slack.com`.' }),
        }),
        response: { 200: z.string() },
        produces: [SVG],
      },
    },
    async ({ query: { id } }, reply) => {
      if (!id) throw errors.validation('required', 'id is required', 'id');
      const icon = findServiceIcon(id);
      if (!icon) throw errors.notFound();
      reply.headers(HEADERS).type(SVG);
      return icon.svg;
    },
  );
}

/** A request has no body. One that has is refused as soon as it is larger than this. */
const BODY_BYTES = 1024;
const MEMBER: LaneMember = {
  name: 'pictures',
  tag: 'function templates',
  share: { held: 64 * BODY_BYTES, atWork: 64 * BODY_BYTES, unpacking: 1 },
  largestBody: { bytes: BODY_BYTES, refusal: 'A request for a picture has no body.' },
};

/** Adds the public files that templates name as their pictures. */
export function iconFiles(lane: Lane): void {
  const { add } = lane.join(MEMBER);
  const headers = Object.entries({ 'content-type': SVG, ...HEADERS }).flat();
  add(
    'GET',
    FILE_PATH,
    async ({ request }) => {
      const { file } = request.params as { file: string };
      const icon: Icon | undefined = file.endsWith('.svg') ? findIcon(file.slice(0, -4)) : undefined;
      if (!icon) throw errors.notFound();
      return { status: 200, body: icon.svg, headers };
    },
    {
      summary: 'Show a picture that templates name',
      params: z.object({ file: z.string() }),
      answer: z.string(),
    },
  );
}
