import type { PendingRequest } from './pending.ts';

/** Requests in the order they came. */
export class RequestQueue {
  #requests: PendingRequest[] = [];
  bytes = 0;
  events = 0;

  push(request: PendingRequest): void {
    this.#requests.push(request);
    this.bytes += request.bytes;
    this.events += request.events.length;
  }

  /** Milliseconds that the first has waited. */
  age(): number {
    const first = this.#requests[0];
    return first ? performance.now() - first.submittedAt : 0;
  }

  /** The first request, and those after it while they fit. */
  take(bytes: number, events: number): PendingRequest[] {
    let [takenBytes, takenEvents, count] = [0, 0, 0];
    for (const request of this.#requests) {
      const tooMuch = takenBytes + request.bytes > bytes || takenEvents + request.events.length > events;
      if (count > 0 && tooMuch) break;
      takenBytes += request.bytes;
      takenEvents += request.events.length;
      count += 1;
    }
    this.bytes -= takenBytes;
    this.events -= takenEvents;
    if (count === this.#requests.length) {
      const all = this.#requests;
      this.#requests = [];
      return all;
    }
    return this.#requests.splice(0, count);
  }
}
