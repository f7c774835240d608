import t from 'tap';
import { followDriftedTags } from '../../src/cluster/config-map.ts';
import { formatDrifted, keyOfDrifted } from '../../src/images/sources/drifted-tags.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { captureLog } from '../support/captured.ts';
import { systemClock } from '../../src/async/clock.ts';
import { startKubeStore } from '../support/kube-store.ts';

const path = '/api/v1/namespaces/archwright/configmaps/archwright-drift';

t.test('each digest is applied once, until the tag names another', async (t) => {
  const store = await startKubeStore({ isPlain: true });
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const applied: string[] = [];
  const note = (tags: Readonly<Record<string, string>>): void => {
    const entries = Object.entries(tags).map(([image, letter]) => {
      const digest = `sha256:${letter.repeat(64)}`;
      const tag = { image, digest, lost: ['linux/arm64'], gained: [], since: 1_700_000_000_000 };
      return [keyOfDrifted(image), formatDrifted(tag)] as const;
    });
    store.put(path, { data: Object.fromEntries(entries) });
  };
  note({ 'r.example/a:1': 'a' });
  const followed = followDriftedTags({
    client,
    namespace: 'archwright',
    name: 'archwright-drift',
    clock: systemClock,
    log: captureLog().log,
    cache: {
      forget: (tags) => {
        for (const { image, digest } of tags) applied.push(`${image} ${digest.at(-1)}`);
      },
    },
  });
  t.teardown(async () => {
    followed.close();
    client.close();
    await store.close();
  });
  const until = (...expected: readonly string[]): Promise<void> =>
    store
      .until(() => applied.length >= expected.length, expected.join())
      .then(() => void t.strictSame(applied, expected));
  await until('r.example/a:1 a');
  note({ 'r.example/a:1': 'a', 'r.example/b:1': 'b' });
  await until('r.example/a:1 a', 'r.example/b:1 b');
  note({ 'r.example/a:1': 'c', 'r.example/b:1': 'b' });
  await until('r.example/a:1 a', 'r.example/b:1 b', 'r.example/a:1 c');
  store.remove(path);
  await store.quiet();
  note({ 'r.example/a:1': 'c' });
  await until('r.example/a:1 a', 'r.example/b:1 b', 'r.example/a:1 c', 'r.example/a:1 c');
});
