import { DecodeError } from './limits.ts';

export interface FormFields {
  data: Buffer | undefined;
  compression: string | undefined;
  token: string | undefined;
}

const FORM_LIKE = /^[\w$.%+-]+(?:\[\])?=/;

export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);
}

/** The fields of a form body that mean something here: `data`, `compression`, and the key. */
export function readForm(bytes: Buffer): FormFields {
  const text = bytes.toString('utf8');
  if (!FORM_LIKE.test(text.slice(0, 256))) {
    throw new DecodeError(
      'failed to decode request: expected form data in POST request payload: the Content-Type says ' +
        'application/x-www-form-urlencoded, the body does not start with a field such as data=',
    );
  }
  const fields = new URLSearchParams(text);
  const data = fields.get('data');
  return {
    data: data === null ? undefined : Buffer.from(data),
    compression: fields.get('compression') ?? undefined,
    token: fields.get('api_key') ?? fields.get('token') ?? undefined,
  };
}
