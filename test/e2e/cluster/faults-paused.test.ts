/** A leader that stands still for longer than its Lease, and clocks that jump. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { library } from '../parts.ts';
import { startScene } from './faults/scene.ts';

interface AuditEvent {
  readonly user: { readonly username: string };
  readonly verb: string;
  readonly requestReceivedTimestamp: string;
  readonly objectRef?: { readonly resource: string; readonly name?: string };
}

void t.test('a leader that was paused writes nothing when it goes on; clocks may jump', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'archwright-e2e-audit-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const log = join(directory, 'audit.log');
  const policy = join(directory, 'policy.yaml');
  const omitStages = ['RequestReceived', 'ResponseStarted'];
  const rules = [{ level: 'Metadata', users: ['paused'] }, { level: 'None' }];
  await writeFile(
    policy,
    JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages, rules }),
  );
  const scene = await startScene(t, {
    apiServerFlags: [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`],
  });
  /** Requests of the one that is paused that change something, but for the Lease. */
  const writes = async (): Promise<readonly AuditEvent[]> =>
    (await readFile(log, 'utf8'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as AuditEvent)
      .filter(
        ({ verb, objectRef }) => !['get', 'list', 'watch'].includes(verb) && objectRef?.resource !== 'leases',
      );

  // So slow that it is stopped with most of its writes before it.
  const slow = { 'kube-requests-per-second': '40', 'kube-requests-burst': '1' };
  const paused = await scene.controller({ name: 'paused', settings: slow });
  await scene.leader((name) => name === 'paused');
  const next = await scene.controller({ name: 'next' });
  const crowd = await scene.crowd({ name: 'paused', count: 200, withUnknown: true });
  await crowd.gated();
  crowd.release();
  t.ok((await scene.changes(20, 10_000)) >= 20, 'it has begun');
  paused.process.signal('SIGSTOP');
  await scene.leader((name) => name === 'next');
  const before = (await writes()).length;
  const resumed = new Date().toISOString();
  paused.process.signal('SIGCONT');
  await crowd.end();
  const after = (await writes()).filter((event) => event.requestReceivedTimestamp > resumed);
  t.ok(before > 0, 'it wrote while it led');
  t.same(after, [], 'it wrote nothing after it went on');

  // Both are candidates again; the one that was paused may lead once more.
  await next.process.stop();
  await scene.leader((name) => name === 'paused');
  await paused.process.stop();

  const clock = join(directory, 'clock');
  await writeFile(clock, '+0');
  const jumping = await scene.controller({
    name: 'jumping',
    env: {
      LD_PRELOAD: library('libfaketime'),
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
