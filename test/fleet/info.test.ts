import t from 'tap';
import { readAgentInfo } from '../../src/fleet/info.ts';

t.test('the information of an agent is read, and bounded', async (t) => {
  const info = { credentialFingerprint: 'f', nodeName: 'worker-3.pool.example', architecture: 'arm64' };
  const read = { fingerprint: 'f', node: 'worker-3.pool.example', architecture: 'arm64' };
  t.strictSame(readAgentInfo({ ...info, later: 1 }), read);
  const node = { pullMode: 'local', amd64Level: 9, later: 'x'.repeat(9999) };
  t.strictSame(readAgentInfo({ ...info, node }), { ...read, report: { pullMode: 'local' } });
  const long = { credentialFingerprint: 'f'.repeat(256), nodeName: 'n'.repeat(253) };
  t.strictSame(readAgentInfo(long), { fingerprint: long.credentialFingerprint, node: long.nodeName });
  for (const credentialFingerprint of ['f'.repeat(257), '', 1, undefined]) {
    t.equal(readAgentInfo({ ...info, credentialFingerprint }), undefined, String(credentialFingerprint));
  }
  for (const answer of [null, 'f']) t.equal(readAgentInfo(answer), undefined);
});

t.test('credential problems are read, cleaned and bounded', async (t) => {
  const read = (credentialProblems: unknown) =>
    readAgentInfo({ credentialFingerprint: 'f', credentialProblems })?.problems;
  const problem = { source: 'docker-config', origin: '/a', message: 'is not valid JSON' };
  t.strictSame(read([problem, { ...problem, later: 1 }]), [problem, problem]);
  for (const nothing of [
    undefined,
    null,
    {},
    'x',
    [],
    [null],
    ['x'],
    [{ ...problem, source: 'x' }],
    [{ ...problem, origin: 1 }],
  ])
    t.equal(read(nothing), undefined, JSON.stringify(nothing));
  const [hostile] = read([{ ...problem, origin: 'a\nb\u001b[31m', message: 'x'.repeat(99_999) }]) ?? [];
  t.equal(hostile?.origin, 'a?b?[31m');
  t.equal(hostile?.message.length, 400);
  t.equal(read(Array.from({ length: 500 }, () => problem))?.length, 10);
});

t.test('an invalid node name or architecture is ignored', async (t) => {
  const names = ['', 'UPPER', 'a b', '-a', 'a-', 'a/b', 'ä', 'n'.repeat(254), 7, null, ['n'], 'a\n'];
  for (const more of [
    ...names.map((nodeName) => ({ nodeName })),
    ...['', 'x'.repeat(64), 7, null].map((architecture) => ({ architecture })),
  ]) {
    const read = readAgentInfo({ credentialFingerprint: 'f', ...more });
    t.strictSame(read, { fingerprint: 'f' }, JSON.stringify(more));
  }
});
