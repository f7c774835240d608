import t, { type Test } from 'tap';
import { createClusterFacts } from '../../src/facts-api/client.ts';
import { connect } from '../kube/support.ts';
import { facts } from '../support/facts.ts';
import { json, startKubeServer } from '../support/kube-server.ts';
import { like } from '../support/like.ts';
import { neverAborted } from '../support/never-aborted.ts';

/** Asks a controller that sends this. */
async function answered(t: Test, more: object) {
  const server = await startKubeServer({ isPlain: true });
  t.teardown(() => server.close());
  const proxy = '/api/v1/namespaces/archwright/services/https:archwright-controller:facts/proxy';
  server.script('/api/v1/namespaces/shop/serviceaccounts/default/token', json({ status: { token: 'x' } }));
  server.script(
    `${proxy}/v1/facts`,
    json({ facts: [{ ...facts('linux/arm64', { image: 'web:1' }), ...more }] }),
  );
  const problems: string[] = [];
  const factsOfPod = createClusterFacts({
    client: connect(t, { access: server.access }),
    release: { namespace: 'archwright', name: 'archwright' },
    serviceAccount: undefined,
    onProblem: (problem) => problems.push(problem),
    stop: neverAborted,
  });
  const found = await factsOfPod({
    uses: [{ image: 'web:1', usedBy: ['web'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
    namespace: 'shop',
    pullSecrets: { names: [] },
    serviceAccount: undefined,
    budgetMs: 1000,
  });
  return { facts: found.get('web:1'), problems };
}

t.test('what failures on nodes have shown comes with the facts', async (t) => {
  const shown = { brokenOn: ['amd64'], requiredLevel: 3 };
  like(t, await answered(t, { ...shown, later: 'field' }), { facts: shown, problems: [] });
  const error = { code: 'unauthorized', message: 'no', hint: 'h'.repeat(2000) };
  const { facts } = await answered(t, { platforms: [], error });
  t.strictSame(facts?.error, { ...error, hint: 'h'.repeat(1000) });
});

t.test('facts that no controller sends are refused', async (t) => {
  const rows: [field: string, value: unknown, problem: RegExp][] = [
    ['brokenOn', ['a b'], /brokenOn\.0 must be an architecture$/],
    ['brokenOn', Array.from({ length: 17 }, () => 'amd64'), /brokenOn must have a length of/],
    ['requiredLevel', 9, /requiredLevel must be one of 1, 2, 3, 4$/],
    ['error', { code: 'unauthorized', message: 'no', hint: 3 }, /error\.hint must be a string$/],
  ];
  for (const [field, value, problem] of rows) {
    const { facts, problems } = await answered(t, { platforms: [], [field]: value });
    t.equal(facts, undefined, field);
    like(t, problems, [problem], field);
  }
});
