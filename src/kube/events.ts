/**
 * Events for people, as `kubectl describe` shows them: aggregated (the same event about the same object is counted up,
 * many similar ones become one), limited in number per object, and written behind the caller's back. An event that cannot
 * be written is counted and forgotten: no work ever waits for one.
 *
 * Rules: client-go tools/record (EventCorrelator, spam filter: burst 25, one more every 5 minutes per object).
 */

/** What an event is about. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for what belongs to no namespace; its events are written to `default`. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase, one of a closed list. */
  readonly reason: string;
  /** One sentence for the person who looks; at most 1,024 bytes are kept. Never a secret. */
  readonly message: string;
}

export interface EventRecorder {
  /** Never waits and never throws. */
  record(about: ObjectReference, event: EventText): void;
  /** Resolves when all that was recorded is written or given up; for the end of the program and for tests. */
  flush(signal: AbortSignal): Promise<void>;
}
