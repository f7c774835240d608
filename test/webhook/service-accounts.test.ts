/** Image facts that depend on the pod's service account, as the webhook uses them. */
import { test } from 'tap';
import { type ImageRequest, type ImageFactsSource, createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../support/facts.ts';
import { factsOf, podOf, serve, workload } from './support.ts';

/** Knows images only for the account `a` of the namespace `shop`. */
function forAccountA(): ImageFactsSource & { lookups: ImageRequest[] } {
  const lookups: ImageRequest[] = [];
  return {
    lookups,
    lookup: (request) => {
      lookups.push(request);
      const { image, serviceAccount } = request;
      const credentialSource = 'service-account' as const;
      if (serviceAccount?.namespace === 'shop' && serviceAccount.name === 'a')
        return Promise.resolve(factsOf(image, ['arm64'], { credentialSource }));
      const error = { code: 'unauthorized' as const, message: 'no credential was accepted' };
      return Promise.resolve(factsOf(image, [], { credentialSource, error }));
    },
  };
}

/** As with `serviceAccountTokens`. */
const requestOf = createRequestOf(defaultCacheTimes, true);

const pod = (account?: string) =>
  podOf(['app:1'], account === undefined ? {} : { serviceAccountName: account });

test('facts learned with a service account serve only pods of that account', async (t) => {
  const source = forAccountA();
  const { admit } = await serve(t, { source, requestOf });
  const placed = async (account?: string, namespace = 'shop'): Promise<boolean> =>
    (await admit({ object: pod(account), namespace })).required?.join() === 'arm64';
  t.equal(await placed('b'), false);
  t.equal(await placed('a'), true);
  for (const other of ['b', 'default', undefined]) t.equal(await placed(other), false, other ?? 'none');
  t.equal(await placed('a', 'other'), false, 'an account of the same name in another namespace');
  t.equal(await placed('a'), true);
  t.strictSame(
    source.lookups.map(
      ({ serviceAccount: { namespace, name } = { namespace: '', name: '' } }) => `${namespace}/${name}`,
    ),
    ['shop/b', 'shop/a', 'shop/default', 'other/a'],
    'one lookup per account; a pod without one has the default account',
  );
});

test('images of a template are looked up with its account', async (t) => {
  const source = forAccountA();
  const { admit } = await serve(t, { source, requestOf });
  const template = (account: string) => ({ spec: { template: { spec: pod(account).spec } } });
  t.strictSame((await admit(workload('DaemonSet', template('a')))).required, ['arm64']);
  t.equal((await admit(workload('DaemonSet', template('b')))).required, undefined);
});
