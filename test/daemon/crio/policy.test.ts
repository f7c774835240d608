import t, { type Test } from 'tap';
import { defaultCrioConf } from '../../../daemon/crio/crio-conf.ts';
import { applyPolicy, parsePolicy, policyFor } from '../../../daemon/crio/policy.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { writeFiles } from '../../support/write-files.ts';

const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];
const signed = [{ type: 'sigstoreSigned', keyPath: '/k' }];
const imageOf = (image: string) => parseReference(image).text;
const parse = (policy: unknown) => parsePolicy(Buffer.from(JSON.stringify(policy)));

t.test('all requirements of a list must allow', async (t) => {
  const verdict = (requirements: unknown) =>
    applyPolicy(parse({ default: requirements }), imageOf('x')).verdict;
  t.equal(verdict([...signed, ...reject]), 'rejected');
  t.equal(verdict([...accept, ...signed]), 'unknown');
});

t.test('documents that fail every pull', async (t) => {
  const documents = [
    '{}',
    'x',
    '[]',
    '{"default":null}',
    '{"default":[{"type":"reject","x":1}]}',
    '{"default":[{"type":"reject"}],"more":1}',
    '{"default":[{"type":"reject"}],"transports":{"atomic":{"x":[]}}}',
    '{"default":[{"type":"reject"}],"transports":null}',
  ];
  for (const document of documents) t.throws(() => parsePolicy(Buffer.from(document)), document);
});

function node(t: Test, files: Readonly<Record<string, unknown>>, signaturePolicy = '') {
  const root = t.testdir();
  const texts = Object.entries(files).map(([path, value]) => [path, JSON.stringify(value)] as const);
  writeFiles(root, Object.fromEntries(texts));
  return () => policyFor(imageOf('nginx'), { ...defaultCrioConf, signaturePolicy }, root);
}

t.test('which file is used', async (t) => {
  const etc = '/etc/containers/policy.json';
  const own = '/root/.config/containers/policy.json';
  const files = { [etc]: { default: reject }, [own]: { default: accept }, '/p.json': { default: signed } };
  t.strictSame(await node(t, files)(), { verdict: 'allowed', where: own, rule: 'default' });
  t.strictSame(await node(t, { [etc]: { default: reject } })(), {
    verdict: 'rejected',
    where: etc,
    rule: 'default',
  });
  t.strictSame(await node(t, files, '/p.json')(), { verdict: 'unknown', where: '/p.json', rule: 'default' });
  await t.rejects(
    node(t, {}),
    /\/etc\/containers\/policy\.json: there is no such file/,
    'without a file, every pull fails',
  );
  await t.rejects(node(t, files, '/none.json'), /\/none\.json/);
});

t.test('a namespace may have a policy that allows the image', async (t) => {
  const refusing = { '/etc/containers/policy.json': { default: reject } };
  const found = await node(t, { ...refusing, '/etc/crio/policies/team.json': { default: accept } })();
  t.equal(found.verdict, 'unknown');
  t.equal((await node(t, { ...refusing, '/etc/crio/policies/README': 1 })()).verdict, 'rejected');
});
