/** A request as it leaves, or as it would. */
export interface OutgoingRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string | null;
}
