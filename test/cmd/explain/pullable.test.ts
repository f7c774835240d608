import t, { type Test } from 'tap';
import type { FactsErrorCode } from '../../../src/images/facts/facts.ts';
import { startTestAgent } from '../../daemon/support.ts';
import { factsOf, failureOf } from '../../support/facts.ts';
import { createPki } from '../../fleet/support.ts';
import { containers, pod } from './explaining.ts';
import { run } from '../run.ts';
import type { Explained } from '../world.ts';
import { like } from '../../support/like.ts';

const app = 'registry.invalid/shop/app:1';

/** One agent per group. Each one refuses with a code, or knows every image. */
async function explain(
  t: Test,
  codes: readonly (FactsErrorCode | undefined)[],
  text: string,
  ...args: string[]
): Promise<{ readonly out: string; readonly err: string; readonly explained: Explained | undefined }> {
  const pki = await createPki(t);
  const agents = await Promise.all(
    codes.map((code, index) =>
      startTestAgent(t, {
        pki,
        nodeName: `node-${index}`,
        fingerprint: () => `${index}-fingerprint-of-a-group`,
        inspector: {
          lookup: ({ image }) =>
            Promise.resolve(code === undefined ? factsOf(image) : failureOf(image, code)),
        },
      }),
    ),
  );
  const flags = agents.length === 0 ? [] : ['--agents', agents.map(({ agent }) => agent.url).join(',')];
  const tls = agents.length === 0 ? [] : ['--agent-tls-dir', pki.clientDir];
  const { out, err } = await run(['explain', '-f', '-', ...flags, ...tls, ...args], { stdin: text });
  const [explained] = args.includes('json') ? (JSON.parse(out) as { results: Explained[] }).results : [];
  return { out, err, explained };
}

const wanted = ['--require-pullable-nodes', '-o', 'json', '--patch'];

t.test('the result names groups that can pull, and excluded nodes', async (t) => {
  const text = pod({ containers: containers(app) });
  const { explained, err } = await explain(t, [undefined, 'unauthorized', 'unavailable'], text, ...wanted);
  t.equal(err, '');
  like(t, explained, { outcome: 'placed', excludedNodes: ['node-1', 'node-2'] });
  const why = `${app}: credential group 0-fingerprin can pull it, 1-fingerprin, 2-fingerprin cannot; excluded: node-1; node-2`;
  like(
    t,
    explained?.rules.find(({ rule }) => rule === 'pullable-nodes'),
    { message: why },
  );
  t.match(
    JSON.stringify(explained?.patch),
    /"key":"kubernetes.io\/hostname","operator":"NotIn","values":\["node-1","node-2"\]/,
  );
  const { out } = await explain(t, [undefined, 'forbidden'], text, '--require-pullable-nodes');
  t.match(out, /^ +excludes +node-1$/m);
});

t.test('without agents, a warning names the missing flag', async (t) => {
  const local = pod({ containers: [{ name: 'a', image: app, imagePullPolicy: 'Never' }] });
  const { err } = await explain(t, [], local, '--require-pullable-nodes');
  t.match(err, /only agents know which nodes can pull; run explain in the controller's pod, or set --agents/);
});
