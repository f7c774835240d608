import t, { type Test } from 'tap';
import { probe } from '../../../cmd/probe.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { connect } from '../../kube/support.ts';
import { json, startKubeServer, type KubeAnswer } from '../../support/kube-server.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

const path = '/api/v1/namespaces/shop/pods';

async function probed(t: Test, answers: readonly KubeAnswer[], signal = neverAborted) {
  const server = await startKubeServer();
  t.teardown(() => server.close());
  server.script(path, ...answers);
  let waited = 0;
  const lines: string[] = [];
  const answer = await probe({
    client: connect(t, server),
    namespace: 'shop',
    image: 'registry.example.com/x:1',
    deadline: 9000,
    clock: {
      ...systemClock,
      monotonic: () => waited,
      sleep: async (ms, ending) => {
        ending.throwIfAborted();
        waited += ms;
      },
    },
    signal,
    progress: (line) => lines.push(line),
  });
  return { answer, lines, server, waited };
}

const asSent: KubeAnswer = (request, response) => json(JSON.parse(request.body), 201)(request, response);
const annotations = {
  'arch.example/decision': '{"v":1}',
  'arch.example/summary': 'placed, requires amd64: all images can run there',
};
const decided = json({ metadata: { annotations } }, 201);
const status = (code: number, message: string): KubeAnswer =>
  json({ kind: 'Status', status: 'Failure', message, code }, code);

t.test('a pod with a decision, or without the probe annotation, was seen by the webhook', async (t) => {
  const { answer, server } = await probed(t, [decided]);
  like(t, answer, {
    code: 0,
    what: 'its decision: placed, requires amd64: all images can run there (recorded as {"v":1})',
  });
  const [request] = server.requests;
  t.equal(request?.query.get('dryRun'), 'All');
  like(t, JSON.parse(request?.body ?? ''), {
    metadata: { generateName: 'archwright-probe-', annotations: { 'arch.example/decision': 'probe' } },
    spec: { containers: [{ image: 'registry.example.com/x:1', securityContext: { runAsNonRoot: true } }] },
  });
  like(t, (await probed(t, [json({ metadata: {} }, 201)])).answer, {
    code: 0,
    what: /nothing to add/,
  });
});

t.test('a refusal by our webhook is success, one by another webhook is not', async (t) => {
  const ours = status(403, 'admission webhook "pods.arch.example" denied the request: no architecture');
  like(t, (await probed(t, [ours])).answer, { code: 0, what: /no architecture/ });
  for (const [code, text] of [
    [403, 'admission webhook "policy.kyverno.example" denied the request'],
    [403, 'pods is forbidden: User "x" cannot create resource "pods"'],
    [404, 'namespaces "shop" not found'],
  ] as const) {
    const { answer, waited, server } = await probed(t, [status(code, text)]);
    like(t, answer, { code: 3, what: new RegExp(text.slice(0, 20)) });
    t.equal(waited, 0, 'no retry');
    t.equal(server.requests.length, 1);
  }
});

t.test('it retries until the time limit, and prints each reason', async (t) => {
  const late = await probed(t, [asSent, asSent, status(500, 'connection refused'), decided]);
  t.equal(late.answer.code, 0);
  t.equal(late.waited, 6000);
  like(t, [...new Set(late.lines)], [/came back unchanged/, /connection refused/]);
  const never = await probed(t, [asSent]);
  like(t, never.answer, { code: 1, what: /came back unchanged/ });
  t.equal(never.waited, 8000);
  t.equal(never.server.requests.length, 5);
});

t.test('it ends on a stop signal', async (t) => {
  await t.rejects(probed(t, [asSent], AbortSignal.abort(new Error('told to'))), /told to/);
});
