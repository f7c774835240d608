/** Attacks: a tenant blocks drift checks with tags of registries that never respond, or with very many tags. */
import t from 'tap';
import { runningTags } from '../../../../src/controller/features/drift/tags.ts';
import { parseReference } from '../../../../src/images/references/reference.ts';
import { runningPod } from '../../leader.ts';
import { hour, setup, withPlatforms } from './setup.ts';

t.test('tags of another namespace are checked while a registry hangs', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64 linux/arm64'));
  for (let index = 0; index < 40; index += 1) {
    const repository = `slow/app-${index}`;
    test.pod(`slow-${index}`, repository, { namespace: 'attacker', pulled: test.push(repository, pulled) });
  }
  for (const name of ['web', 'cart', 'search']) {
    test.push(`shop/${name}`, pulled);
    test.pod(name, `shop/${name}`, { pulled });
  }
  const answer = Promise.withResolvers<void>();
  test.registry.faults.add(/slow/, { kind: 'after', event: answer.promise });
  await test.leader.settled();
  await test.clock.jump(6 * hour);
  const round = test.reconcile();
  const checked = (name: string): boolean =>
    test.registry.requests.some(({ path }) => path.includes(`shop/${name}`));
  await test.registry.waitFor(() => checked('web') && checked('cart') && checked('search'));
  answer.resolve();
  await round;
  t.equal(await test.leader.series('archwright_drift_tags{checked="yes"}'), 43);
});

t.test('a round costs no more than the tags that are checked, however many a namespace runs', async (t) => {
  const podOf = (namespace: string, names: readonly string[]) => {
    const images = names.map((image) => ({ image, pullPolicy: undefined, usedBy: 'c' }));
    return runningPod({ namespace, images });
  };
  const pods = Array.from({ length: 60 }, (_, pod) =>
    podOf(
      'attacker',
      Array.from({ length: 500 }, (_, index) => `evil/app-${pod}-${index}:1`),
    ),
  );
  let parsed = 0;
  const parse = (image: string) => {
    parsed += 1;
    return parseReference(image);
  };
  const tags = runningTags([...pods, podOf('shop', ['shop/web:1'])], parse);
  t.equal(parsed, 10_001);
  t.equal(tags.size, 10_001);
  t.ok(tags.has('docker.io/shop/web:1'));
});
