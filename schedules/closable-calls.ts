import { InterceptingCall, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';

/** A call that is over before it began. */
function closedCall(): InterceptingCall {
  const ignore = () => undefined;
  return new InterceptingCall({
    start(_metadata, listener) {
      listener?.onReceiveMessage?.(null);
      listener?.onReceiveStatus?.({
        code: status.CANCELLED,
        details: 'The connection to Temporal was closed',
        metadata: new Metadata(),
      });
    },
    sendMessage: ignore,
    sendMessageWithContext: ignore,
    halfClose: ignore,
    startRead: ignore,
    cancelWithStatus: ignore,
    getPeer: () => '',
    getAuthContext: () => null,
  });
}

/**
 * Calls that are tried again as the client does by itself, but not once the connection is being closed: the client would
 * begin the next try in a timer, on a closed channel, and throw where nobody can catch it.
 */
export function closableCalls(closing: AbortSignal): Interceptor[] {
  const { retryableDecider, ...delays } = defaultGrpcRetryOptions();
  return [
    makeGrpcRetryInterceptor({
      ...delays,
      retryableDecider: (attempt, found) => !closing.aborted && retryableDecider(attempt, found),
    }),
    (options, nextCall) => (closing.aborted ? closedCall() : new InterceptingCall(nextCall(options))),
  ];
}
