import { test } from 'tap';
import { decide } from '../../../../src/placement/decide.ts';
import { decidedOutcome } from '../../../../src/placement/record/read.ts';
import { publicFacts } from '../../../../src/placement/rules/images/unknown.ts';
import type { Policy } from '../../../../src/policy/effective/policy.ts';
import { like } from '../../../support/like.ts';
import {
  facts,
  failed,
  inputOf,
  outcomeOf,
  place,
  placePod,
  podOf,
  type Known,
} from '../../../support/placement-input.ts';

const gate = { name: 'arch.example/scheduling-gate' };
const known: Known = {
  a: 'amd64 arm64',
  broken: failed('unauthorized', 'registry.example said 401'),
  busy: failed('rate-limited'),
  chart: failed('not-an-image', 'this is an artifact'),
  refused: { ...failed('forbidden', 'not inspected'), source: 'override' },
};

type Case = readonly [images: string, policy: Partial<Policy>, decided: string, warned?: RegExp];

const gating: Partial<Policy> = {};
const allowing: Partial<Policy> = { onUnknownImage: 'allow' };
const denying: Partial<Policy> = { onUnknownImage: 'deny' };
const orS390x: Partial<Policy> = { fallbackArchitecture: 's390x' };
const unauthorized = /image broken: unauthorized: the registry requires a valid credential/u;
const notAnImage = /image chart: not-an-image: it is not a container image/u;
const refusedImage = /image refused: forbidden: not inspected/u;

const cases: Readonly<Record<string, Case>> = {
  gate: ['x', gating, 'gated'],
  'gate after a failure': ['broken', gating, 'gated', unauthorized],
  'gate at a limit': ['busy', gating, 'gated', /image busy: rate-limited: too many requests/u],
  'gate, never known: the fallback at once': ['chart', orS390x, 'fallback s390x', notAnImage],
  'gate, never known: the bound': ['chart a', gating, 'allowed-unknown amd64 arm64', notAnImage],
  'gate, one of two never known': ['chart x', gating, 'gated', notAnImage],
  'gate, refused by the configuration: the fallback at once': [
    'refused',
    orS390x,
    'fallback s390x',
    refusedImage,
  ],
  'gate, refused by the configuration: the bound': [
    'refused a',
    gating,
    'allowed-unknown amd64 arm64',
    refusedImage,
  ],
  'deny, never known': ['chart', denying, 'denied'],
  'allow, never known': ['chart', { ...allowing, ...orS390x }, 'allowed-unknown', notAnImage],
  deny: ['x a', denying, 'denied amd64 arm64'],
};

for (const [name, [images, policy, decided, warned]] of Object.entries(cases)) {
  test(`unknown image: ${name}`, async (t) => {
    const input = inputOf(podOf(images.split(' ')), known, policy);
    const { decision, pod } = place(input);
    t.equal(outcomeOf(decision), decided);
    t.equal(decision.gate, decision.outcome === 'gated');
    t.strictSame(pod.spec.schedulingGates, decision.outcome === 'gated' ? [gate] : undefined);
    if (decision.outcome === 'allowed-unknown') t.equal(decidedOutcome(pod), 'allowed-unknown');
    if (warned) like(t, decision.warnings, [warned]);
    else t.strictSame(decision.warnings, []);
    t.strictSame(place({ ...input, pod }).patch, []);
  });
}

test('whoever applies a template of an image that does not exist gets a warning', async (t) => {
  const facts = { x: failed('not-found', '404') };
  for (const template of ['workload', 'DaemonSet'] as const) {
    const { warnings, message } = decide(inputOf(podOf(['x']), facts, {}, { template }));
    like(t, warnings, [/image x: not-found: the registry has no such image/]);
    t.equal(message, undefined, 'it is admitted');
  }
});

test('`deny` names each unknown image and the reason', async (t) => {
  const { message } = decide(inputOf(podOf(['x', 'a', 'broken']), known, { onUnknownImage: 'deny' }));
  t.equal(
    message,
    'images could not be inspected: x: not inspected yet; broken: unauthorized: the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes (kubeletConfig)',
  );
});

test('no message names pull secrets if a plugin of the nodes has a problem', async (t) => {
  const facts = failed('unauthorized', '401 for team/app');
  const byPlugin = { ...facts, error: { code: 'unauthorized', message: '401', cause: 'plugin' } } as const;
  const { message } = decide(inputOf(podOf(['x']), { x: byPlugin }, { onUnknownImage: 'deny' }));
  t.match(
    message,
    /x: unauthorized: .*a credential plugin of the nodes \(kubeletConfig\) gave none; archwright explain names the cause/,
  );
  t.notMatch(message, /pull secret/);
});

test('connection failures have one text in admission responses, and all details in `explain`', async (t) => {
  const failures = {
    refused: failed('unavailable', 'connect ECONNREFUSED 127.0.0.1:6379 through proxy.corp.example:3128'),
    silent: failed('timeout', '10.0.0.7:22: no answer within 5000 ms (node-7, https://10.1.2.3:9443)'),
    login: failed('unauthorized', 'with the credential docker-config x (/var/lib/kubelet/config.json)'),
  };
  const messagesFor = (image: string, policy: Partial<Policy>) => {
    const { decision, pod } = placePod([image], failures, policy);
    const { warnings, message, reasons } = decision;
    return { text: JSON.stringify([warnings, message, pod.metadata]).replaceAll(image, 'IMAGE'), reasons };
  };
  for (const onUnknownImage of ['gate', 'deny', 'allow', 'fallback'] as const) {
    const [refused, silent] = [
      messagesFor('refused', { onUnknownImage }),
      messagesFor('silent', { onUnknownImage }),
    ];
    t.equal(refused.text.replace(/imagesKey[^,]*/, ''), silent.text.replace(/imagesKey[^,]*/, ''));
    like(t, refused.reasons, [{ message: /ECONNREFUSED/ }]);
    const { text: login } = messagesFor('login', { onUnknownImage });
    t.notMatch(
      `${refused.text} ${silent.text} ${login}`,
      /127\.0|proxy|10\.|node-7|docker-config|var.lib|timeout/,
    );
  }
});

test('the gate is appended, kept, and removed', async (t) => {
  const theirs = { name: 'x/y' };
  const gatesOf = (image: string, ...schedulingGates: { name: string }[]) => {
    const { pod, patch } = place(inputOf(podOf([image], { schedulingGates }), known));
    const isChanged = patch.some(({ path }) => path === '/spec/schedulingGates');
    return isChanged ? pod.spec.schedulingGates : 'unchanged';
  };
  t.strictSame(gatesOf('x', theirs), [theirs, gate]);
  t.strictSame(gatesOf('x'), [gate]);
  t.strictSame(gatesOf('x', theirs, gate), 'unchanged');
  t.strictSame(gatesOf('a', theirs), 'unchanged');
  t.strictSame(gatesOf('a', theirs, gate), [theirs]);
  t.strictSame(gatesOf('a', gate, theirs, gate), [theirs]);
});

test('messages of registries are bounded and printable', async (t) => {
  const hostile = failed('unavailable', `\u001b[2J${'é'.repeat(5000)}`);
  const { warnings } = decide(inputOf(podOf(['x']), { x: hostile }));
  t.equal(warnings.length, 1);
  t.ok(Buffer.byteLength(warnings[0] ?? '') <= 256);
  t.notMatch(warnings[0], /\p{C}/u);
});

test('people see what a registry answered, and of other failures neither message nor endpoint', async (t) => {
  const byPlugin = { code: 'forbidden', message: 'plugin ecr: exit status 1', cause: 'plugin' } as const;
  for (const shown of [
    facts('amd64'),
    failed('unauthorized', 'registry.example said 401'),
    { ...failed('forbidden'), error: byPlugin },
  ])
    t.equal(publicFacts(shown), shown);
  const hidden = publicFacts(failed('timeout', '10.0.0.1 is silent'));
  like(t, hidden, { endpoint: '', error: { code: 'unavailable' } });
  t.notMatch(hidden.error?.message, '10.0.0.1');
  const hinted = (code: 'unavailable' | 'forbidden') =>
    publicFacts(facts('', { error: { code, message: 'm', hint: 'set x' } })).error?.message;
  t.equal(hinted('unavailable'), 'set x', 'no registry was asked');
  t.match(hinted('forbidden'), /^set x \(the registry refuses access/);
});
