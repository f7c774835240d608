/** A leader that is paused for longer than its Lease, and clocks that jump. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { libfaketime } from '../programs/debian.ts';
import type { Server } from './archwright.ts';
import { auditLog, type AuditEvent } from './audit.ts';
import { isGated } from './pods.ts';
import { startScene } from './faults/scene.ts';

/** A write is under way at the stop of a leader only by chance. */
const rounds = 3;

void t.test('a leader that was paused writes nothing when it goes on; clocks may jump', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-audit-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const audit = auditLog(directory, { users: ['one', 'other'] });
  const scene = await startScene(t, { apiServerFlags: audit.flags });
  /** Requests of a controller that change something, but for the Lease. */
  const writes = (name: string): readonly AuditEvent[] =>
    audit
      .events()
      .filter(({ user, verb }) => user.username === name && !['get', 'list', 'watch'].includes(verb))
      .filter(({ objectRef }) => objectRef?.resource !== 'leases');

  // So slow that a leader is stopped with most of its writes before it.
  const slow = { 'kube-requests-per-second': '40', 'kube-requests-burst': '1' };
  const controllers = new Map<string, Server>();
  for (const name of ['one', 'other'])
    controllers.set(name, await scene.controller({ name, settings: slow }));
  for (let round = 0; round < rounds; round += 1) {
    const name = await scene.leader();
    const crowd = await scene.crowd({ name: `round-${round}`, count: 80 });
    await crowd.releaseGated();
    await scene.pods.until(
      'it has begun',
      (pods) => crowd.names.filter((each) => !isGated(pods.get(`default/${each}`))).length >= 5,
    );
    const leader = controllers.get(name)?.process;
    leader?.signal('SIGSTOP');
    const next = await scene.leader((other) => other !== name && other !== '');
    const before = writes(name).length;
    const resumed = new Date().toISOString();
    leader?.signal('SIGCONT');
    await crowd.end();
    // A request can be under way when the leader is stopped. The leader aborts it, so it changes nothing.
    const after = writes(name).filter(
      ({ requestReceivedTimestamp, responseStatus }) =>
        requestReceivedTimestamp > resumed && (responseStatus?.code ?? 0) < 400,
    );
    t.ok(before >= 5, `${name} wrote while it led`);
    t.same(after, [], `${name} wrote nothing after it went on, when ${next} led`);
  }
  await Promise.all([...controllers.values()].map((each) => each.process.stop()));

  const clock = join(directory, 'clock');
  await writeFile(clock, '+0');
  const jumping = await scene.controller({
    name: 'jumping',
    env: {
      LD_PRELOAD: libfaketime(),
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
  await scene.leader((name) => name === 'jumping');
  for (const [index, jump] of ['+3600', '-3600', '+120', '+0'].entries()) {
    const moved = await scene.crowd({ name: `moved-${index}`, count: 20 });
    await moved.gated();
    await writeFile(clock, jump);
    await scene.changes(1, 1500);
    t.equal(await scene.leader(), 'jumping', `${jump} s: it still leads`);
    moved.release();
    await moved.end();
  }
  await jumping.process.stop();
  await scene.clean();
});
