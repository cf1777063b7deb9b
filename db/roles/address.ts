/** The addresses of a database that the operator gave. */
export interface GivenAddresses {
  url: string;
  /** With a user that applies migrations and makes roles. By default `url`. */
  ownerUrl?: string | undefined;
  /** With a user for what is compiled from texts of users. By default Sluice makes one. */
  readerUrl?: string | undefined;
}

interface Settings {
  SLUICE_OWNER_DATABASE_URL?: string | undefined;
  SLUICE_READER_DATABASE_URL?: string | undefined;
}

export const givenAddresses = (url: string, settings: Settings): GivenAddresses => ({
  url,
  ownerUrl: settings.SLUICE_OWNER_DATABASE_URL,
  readerUrl: settings.SLUICE_READER_DATABASE_URL,
});

/** Returns the URL of the same database for another user. */
export function withLogin(url: string, user: string, password: string): string {
  const changed = new URL(url);
  // Both can be parameters too, which would win.
  changed.searchParams.delete('user');
  changed.searchParams.delete('password');
  changed.username = encodeURIComponent(user);
  changed.password = encodeURIComponent(password);
  return changed.href;
}
