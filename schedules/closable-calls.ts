import { InterceptingCall, type Interceptor, Metadata, status } from '@grpc/grpc-js';
import { defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';

/** Makes a call that fails at once, without using the connection. */
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
 * Makes interceptors that retry calls as the client does by default, but not while the connection closes. Otherwise the
 * client would start the next try in a timer, on a closed channel, and throw where nobody can catch the error.
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
