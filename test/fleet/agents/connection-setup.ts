/** What the tests of connections share. */
import type { Test } from 'tap';
import { AgentError } from '../../../src/fleet/agents/agent-error.ts';

export const never = new AbortController().signal;
export const call = { signal: never, maxBytes: 10_000, body: { images: [], deadlineMs: 1 } };

/** Asks and expects this error. */
export async function fails(
  t: Test,
  promise: Promise<unknown>,
  code: AgentError['code'],
  message: RegExp,
): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  t.ok(error instanceof AgentError, 'an AgentError');
  t.match(error, { code, message });
}
