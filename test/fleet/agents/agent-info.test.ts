import t from 'tap';
import { readAgentInfo } from '../../../src/fleet/agents/agent-info.ts';

t.test('what an agent says of itself', (t) => {
  const cases: [what: string, answer: unknown, expected: unknown][] = [
    [
      'everything, and more than is known',
      { credentialFingerprint: 'f', nodeName: 'worker-3.pool.example', architecture: 'arm64', later: 1 },
      { fingerprint: 'f', node: 'worker-3.pool.example', architecture: 'arm64' },
    ],
    ['a fingerprint alone', { credentialFingerprint: 'f' }, { fingerprint: 'f' }],
    ['the longest', { credentialFingerprint: 'f'.repeat(200) }, { fingerprint: 'f'.repeat(200) }],
    ['too long', { credentialFingerprint: 'f'.repeat(201) }, undefined],
    ['an empty fingerprint', { credentialFingerprint: '', nodeName: 'n' }, undefined],
    ['a number', { credentialFingerprint: 1 }, undefined],
    ['no fingerprint', { nodeName: 'n' }, undefined],
    ['null', null, undefined],
    ['a text', 'f', undefined],
    [
      'the longest node name',
      { credentialFingerprint: 'f', nodeName: 'n'.repeat(253) },
      { node: 'n'.repeat(253) },
    ],
  ];
  for (const [what, answer, expected] of cases) {
    if (expected === undefined) t.equal(readAgentInfo(answer), undefined, what);
    else t.match(readAgentInfo(answer), expected, what);
  }
  t.end();
});

t.test('a node name that no node can have is left out, and so is an architecture', (t) => {
  for (const nodeName of [
    '',
    'UPPER',
    'a b',
    '-a',
    'a-',
    'a/b',
    'ä',
    'n'.repeat(254),
    7,
    null,
    ['n'],
    'a\n',
  ]) {
    t.strictSame(
      readAgentInfo({ credentialFingerprint: 'f', nodeName }),
      { fingerprint: 'f' },
      String(nodeName),
    );
  }
  for (const architecture of ['', 'x'.repeat(64), 7, null]) {
    t.strictSame(readAgentInfo({ credentialFingerprint: 'f', architecture }), { fingerprint: 'f' });
  }
  t.end();
});
