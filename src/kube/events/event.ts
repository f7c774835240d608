/** An Event (core/v1): `kubectl describe` shows their counts, unlike those of events.k8s.io. */
import { randomBytes } from 'node:crypto';

export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for an object without a namespace; its events are written to `default`. */
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** UpperCamelCase, one of a closed list. */
  readonly reason: string;
  /** One sentence for a person, at most 1,024 bytes. Never a secret. */
  readonly message: string;
}

/** An event to write or to count up. */
export interface PendingEvent {
  readonly about: ObjectReference;
  readonly event: EventText;
  readonly times: number;
  readonly firstAt: number;
  readonly lastAt: number;
}

/** Who writes the events. */
const component = 'archwright-controller';

/** The API server refuses longer messages. */
const maxMessageBytes = 1024;

export function eventObject(
  { about, event, times, firstAt, lastAt }: PendingEvent,
  name: string,
  reportingInstance: string,
): object {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name, namespace: namespaceOf(about) },
    involvedObject: about,
    ...event,
    source: { component },
    reportingComponent: component,
    reportingInstance,
    firstTimestamp: timeText(firstAt),
    lastTimestamp: timeText(lastAt),
    count: times,
  };
}

export function namespaceOf({ namespace = 'default' }: ObjectReference): string {
  return namespace;
}

/** A new, unique name: a DNS subdomain whatever the object's name is. */
export function eventName(name: string): string {
  const start = name.replaceAll(/[^a-z0-9.-]/g, '-').slice(0, 200);
  return `${start.replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '') || 'event'}.${randomBytes(8).toString('hex')}`;
}

/** RFC 3339 with whole seconds. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Cuts a message at a whole character. */
export function shortened(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxMessageBytes) return text;
  const cut = bytes.subarray(0, maxMessageBytes - Buffer.byteLength('…')).toString('utf8');
  return `${cut.replace(/\uFFFD+$/, '')}…`;
}
