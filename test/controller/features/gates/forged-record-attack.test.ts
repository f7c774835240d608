/** Attack: a forged record on a gated pod, while the signing key of records is unknown. */
import t from 'tap';
import { sealsBy, watchRecordKey } from '../../../../src/cluster/record-seal.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { keys } from '../../../../src/names/keys.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { archIn, gated, newStore, startGates } from './support.ts';

const [namespace, name] = ['archwright', 'archwright-webhook-path'];

/** Another webhook prefers amd64; the record claims that archwright added this. */
const preferred = [{ weight: 5, preference: archIn('amd64') }];
const record = { v: 1, outcome: 'gated', imagesKey: 'x', added: { preferred: [['amd64', 5]] } };
const spec = { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } };

const preferredOf = ({ spec }: Pod): unknown =>
  spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;

for (const [when, data] of [
  ['the Secret of the key does not exist', undefined],
  ['the Secret has no key', { current: Buffer.from('T'.repeat(64)).toString('base64') }],
] as const) {
  t.test(`a forged record removes nothing if ${when}`, async (t) => {
    const time = createFakeClock();
    const store = await newStore(t, time);
    if (data) store.put(paths.secrets(namespace, name), { metadata: { namespace, name }, data });
    const sealed = (leader: LeaderContext): LeaderContext => {
      const { client, log } = leader;
      const watch = watchRecordKey({ client, namespace, name, clock: systemClock, log });
      t.teardown(() => watch.close());
      return { ...leader, sealOf: sealsBy(watch.key) };
    };
    const annotations = { [keys.decision]: JSON.stringify(record) };
    const pod = gated('web', ['arm'], spec, { annotations });
    const gates = await startGates(t, [pod], { known: { arm: 'arm64' }, time, store, change: sealed });
    await gates.opened(1);
    t.strictSame(preferredOf(gates.pod('web')), preferred);
  });
}
