/** A leader that is paused for longer than its Lease, and clocks that jump. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { libfaketime } from '../programs/debian.ts';
import type { Server } from './archwright/archwright.ts';
import { auditLog, type AuditEvent } from './control-plane/audit.ts';
import { isGated } from './control-plane/pods.ts';
import { startFaultTest } from './faults/setup.ts';

/** Other writes are under way at the stop of a leader only by chance. */
const rounds = 3;

void t.test('a leader that was paused writes nothing when it continues, even if clocks jump', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-audit-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const audit = auditLog(directory, { users: ['one', 'other'] });
  const faultTest = await startFaultTest(t, { apiServerFlags: audit.flags });
  /** Requests of a controller that change something, but for the Lease. */
  const writes = (name: string): readonly AuditEvent[] =>
    audit
      .events()
      .filter(({ user, verb }) => user.username === name && !['get', 'list', 'watch'].includes(verb))
      .filter(({ objectRef }) => objectRef?.resource !== 'leases');

  // So slow that a leader is stopped with most of its writes before it.
  const tuning = { writes: { perSecond: 40, burst: 1 } };
  const controllers = new Map<string, Server>();
  const pauseFile = (name: string): string => join(directory, `pause-${name}`);
  for (const name of ['one', 'other']) {
    // It pauses itself after a write, while many others are decided and wait for their turn.
    const env = { PAUSE_AT: 'gates: after patch', PAUSE_FILE: pauseFile(name) };
    controllers.set(name, await faultTest.controller({ name, env, tuning }));
  }
  for (let round = 0; round < rounds; round += 1) {
    const name = await faultTest.leader();
    const podGroup = await faultTest.podGroup({ name: `round-${round}`, count: 80 });
    await podGroup.releaseGated();
    await faultTest.pods.until(
      'it has begun',
      (pods) => podGroup.names.filter((each) => !isGated(pods.get(`default/${each}`))).length >= 5,
    );
    await writeFile(pauseFile(name), '');
    const next = await faultTest.leader((other) => other !== name && other !== '');
    const before = writes(name).length;
    const resumed = new Date().toISOString();
    controllers.get(name)?.process.signal('SIGCONT');
    await podGroup.end();
    // A request can be under way when the leader is stopped. The leader aborts it, so it changes nothing.
    const after = writes(name).filter(
      ({ requestReceivedTimestamp, responseStatus }) =>
        requestReceivedTimestamp > resumed && (responseStatus?.code ?? 0) < 400,
    );
    t.ok(before >= 5, `${name} wrote while it led`);
    t.same(after, [], `${name} wrote nothing after it continued, while ${next} led`);
  }
  await Promise.all([...controllers.values()].map((each) => each.process.stop()));

  const clock = join(directory, 'clock');
  await writeFile(clock, '+0');
  const jumping = await faultTest.controller({
    name: 'jumping',
    env: {
      LD_PRELOAD: libfaketime(),
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  await faultTest.leader((name) => name === 'jumping');
  for (const [index, jump] of ['+3600', '-3600', '+120', '+0'].entries()) {
    const moved = await faultTest.podGroup({ name: `moved-${index}`, count: 20 });
    await moved.gated();
    await writeFile(clock, jump);
    await faultTest.changes(1, 1500);
    t.equal(await faultTest.leader(), 'jumping', `${jump} s: it still leads`);
    moved.release();
    await moved.end();
  }
  await jumping.process.stop();
  await faultTest.clean();
});
