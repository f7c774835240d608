import t, { type Test } from 'tap';
import { defaultCrioConf } from '../../../daemon/crio/crio-conf.ts';
import { parsePolicy, loadPolicyFile, rejectingRule, rejectionOf } from '../../../daemon/crio/policy.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { parseReference } from '../../../src/images/references/reference.ts';
import { writeFiles } from '../../support/write-files.ts';

const accept = [{ type: 'insecureAcceptAnything' }];
const reject = [{ type: 'reject' }];
const signed = [{ type: 'sigstoreSigned', keyPath: '/k' }];
const imageOf = (image: string) => parseReference(image).text;
const parse = (policy: unknown) => parsePolicy(Buffer.from(JSON.stringify(policy)));

t.test('all requirements of a list must allow', async (t) => {
  const rule = (requirements: unknown) => rejectingRule(parse({ default: requirements }), imageOf('x'));
  t.equal(rule([...signed, ...reject]), 'default');
  t.equal(rule([...accept, ...signed]), undefined);
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
  return async () => {
    const policy = await loadPolicyFile({ ...defaultCrioConf, signaturePolicy }, new NodeFiles(root));
    return policy ? rejectionOf(imageOf('nginx'), policy)?.message : 'missing';
  };
}

t.test('which file is used', async (t) => {
  const etc = '/etc/containers/policy.json';
  const own = '/root/.config/containers/policy.json';
  const files = { [etc]: { default: reject }, [own]: { default: accept }, '/p.json': { default: reject } };
  t.equal(await node(t, files)(), undefined, 'that of root’s home');
  t.match(await node(t, { [etc]: { default: reject } })(), `${etc}: default rejects docker.io/library/nginx`);
  t.match(await node(t, files, '/p.json')(), '/p.json: default rejects');
  t.equal(await node(t, {})(), 'missing');
  t.equal(await node(t, files, '/none.json')(), 'missing');
});

t.test('a namespace may have a policy that allows the image', async (t) => {
  const refusing = { '/etc/containers/policy.json': { default: reject } };
  const found = await node(t, { ...refusing, '/etc/crio/policies/team.json': { default: accept } })();
  t.equal(found, undefined);
  t.match(await node(t, { ...refusing, '/etc/crio/policies/README': 1 })(), /default rejects/);
});
