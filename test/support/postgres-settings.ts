/** Configuration of a destination that writes into this database. */
export function postgresSettings(address: string, table: string) {
  const url = new URL(address);
  return {
    host: url.hostname,
    port: Number(url.port),
    database: url.pathname.slice(1),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    table_name: table,
  };
}
