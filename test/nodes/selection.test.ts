/** A verdict that is certain without a field of the node is correct for every value of the field. */
import t from 'tap';
import * as fc from 'fast-check';
import { parsePlatform } from '../../scripts/vectors/upstream/platform-specifier.ts';
import type { NodeClass } from '../../src/nodes/node-class.ts';
import { selectPlatform, type ImageForm } from '../../src/nodes/selection.ts';
import { platformsOf } from '../../src/names/platform.ts';
import { like } from '../support/like.ts';

const linux = (architecture: string, more: Partial<NodeClass> = {}): NodeClass => ({
  os: 'linux',
  architecture,
  ...more,
});
const amd64 = linux('amd64');
const local = { runtime: { name: 'containerd', version: '1.7.24' } };
const either = { runtime: { name: 'containerd', version: '2.1.0' } };
const transfer = { ...either, pullMode: 'transfer' as const };
const crio = { runtime: { name: 'cri-o', version: '1.34.0' } };
const docker = { runtime: { name: 'docker', version: '28.0.1' } };

/** `runs 0`, `refused`, `depends 1 on CPU level` */
function outcome(written: string, node: NodeClass, level?: 1 | 2 | 3 | 4, form?: ImageForm): string {
  const platforms = written
    .split(' ')
    .filter(Boolean)
    .map((one) => parsePlatform(`linux/${one}`));
  const { verdict, chosen, dependsOn, reason } = selectPlatform(platforms, node, level, form);
  t.equal(reason !== undefined, verdict !== 'runs', `${written}: ${reason}`);
  const fields = dependsOn === undefined ? '' : ` on ${dependsOn.join(', ')}`;
  return `${verdict}${chosen === undefined ? '' : ` ${chosen}`}${fields}`;
}

t.test('each runtime pulls one entry of an index', async (t) => {
  const cases: [index: string, node: NodeClass, expected: string][] = [
    ['', amd64, 'runs'],
    ['arm64 amd64', amd64, 'runs 1'],
    ['arm64', amd64, 'refused'],
    ['386', linux('amd64', local), 'runs 0'],
    ['386', linux('amd64', transfer), 'refused'],
    ['386', linux('amd64', either), 'depends on pull mode'],
    ['386', linux('amd64', crio), 'refused'],
    ['386', linux('amd64', docker), 'runs 0'],
    ['386', amd64, 'depends on runtime'],
    ['386 amd64', amd64, 'runs 1'],
    ['amd64/v3', linux('amd64', local), 'refused'],
    ['amd64/v3 arm64', linux('amd64', { ...transfer, amd64Level: 4 }), 'refused'],
    ['amd64/v3', linux('amd64', { ...docker, amd64Level: 2 }), 'refused'],
    ['amd64/v3', linux('amd64', { ...docker, amd64Level: 3 }), 'depends on runtime'],
    ['amd64/v3', amd64, 'depends on runtime, CPU level'],
    ['amd64/v3 amd64', linux('amd64', local), 'runs 1'],
    ['amd64/v3 amd64', linux('amd64', docker), 'runs'],
    ['amd64/v3 386', linux('amd64', local), 'runs 1'],
    ['arm/v7', linux('arm64', { ...local, aarch32: true }), 'runs 0'],
    ['arm/v7', linux('arm64', { ...local, aarch32: false }), 'refused 0'],
    ['arm/v7', linux('arm64', local), 'depends 0 on AArch32'],
    ['arm/v7', linux('arm64', transfer), 'refused'],
    ['arm/v7', linux('arm64'), 'depends on runtime, AArch32'],
    ['arm/v7 arm64/v8', linux('arm64'), 'runs 1'],
    ['arm64/v9', linux('arm64', local), 'refused'],
    ['arm64/v9', linux('arm64', { ...local, armVariant: 'v9' }), 'runs 0'],
    ['arm64/v8 arm64/v9', linux('arm64', local), 'runs 0'],
    ['arm/v6', linux('arm', { armVariant: 'v7' }), 'depends on runtime'],
    ['arm/v6', linux('arm', { ...local, armVariant: 'v7' }), 'runs 0'],
    ['arm/v7', linux('arm', { ...local, armVariant: 'v6' }), 'refused'],
    ['arm/v7', linux('arm', local), 'depends on CPU variant'],
    ['arm64', linux('arm', local), 'refused'],
    ['s390x amd64', linux('s390x'), 'runs 0'],
  ];
  for (const [index, node, expected] of cases)
    t.equal(outcome(index, node), expected, `${index} on ${JSON.stringify(node)}`);
});

t.test('containerd since 2.3 refuses platforms that need OS features in an index', async (t) => {
  const outcomeOf = (index: string, runtime?: NodeClass['runtime'], form?: ImageForm) => {
    const platforms = index.split(' ').map((architecture) => ({
      os: 'linux',
      architecture: architecture.replace('+', ''),
      ...(architecture.endsWith('+') && { needsFeatures: true as const }),
    }));
    const { verdict, chosen } = selectPlatform(platforms, linux('amd64', runtime && { runtime }), 1, form);
    return `${verdict} ${chosen}`;
  };
  for (const version of ['2.3.0', 'v2.10.1-k3s1', '3.0.0']) {
    const runtime = { name: 'containerd', version };
    t.equal(outcomeOf('amd64+', runtime), 'refused undefined', version);
    t.equal(outcomeOf('amd64+ amd64', runtime), 'runs 1', version);
    t.equal(outcomeOf('amd64+', runtime, 'manifest'), 'runs 0', 'a single manifest is pulled as it is');
  }
  for (const runtime of [local.runtime, crio.runtime, docker.runtime])
    t.equal(outcomeOf('amd64+ amd64', runtime), 'runs 0', runtime.name);
  for (const version of ['2.0.5', '2.2.7', 'unknown'])
    t.equal(outcomeOf('amd64+', { name: 'containerd', version }), 'depends undefined', version);
  t.equal(outcomeOf('amd64+'), 'depends undefined');
});

t.test('CRI-O compares the platform texts of an index', async (t) => {
  const cases: [index: string[], node: NodeClass, expected: string][] = [
    [['amd64/v1'], linux('amd64'), 'refused'],
    [['x86_64', 'amd64'], linux('amd64'), 'runs 1'],
    [['amd64/v2', 'amd64'], linux('amd64'), 'runs 1'],
    [['aarch64'], linux('arm64'), 'refused'],
    [['arm64/v8.0', 'arm64/v8'], linux('arm64'), 'runs 1'],
    [['arm64'], linux('arm64'), 'runs 0'],
    [['arm', 'arm/v6'], linux('arm', { armVariant: 'v7' }), 'runs 1'],
    [['arm', 'arm/v8'], linux('arm', { armVariant: 'v7' }), 'runs 0'],
  ];
  for (const [index, node, expected] of cases) {
    const written = index.map((text) => {
      const [architecture = '', variant = ''] = text.split('/');
      return { os: 'linux', architecture, variant };
    });
    const { verdict, chosen = '' } = selectPlatform(platformsOf(written), { ...node, ...crio });
    t.equal(`${verdict} ${chosen}`.trim(), expected, `${index.join(' ')} on ${node.architecture}`);
  }
});

t.test('in an index without platforms runtimes use only the first manifest', async (t) => {
  const containerd2 = { runtime: { name: 'containerd', version: '2.0.5' } };
  const cases: [configs: string, node: NodeClass, expected: string][] = [
    ['amd64', amd64, 'runs 0'],
    ['amd64 arm64', amd64, 'runs 0'],
    ['arm64 amd64', amd64, 'refused'],
    ['arm64 amd64', linux('amd64', crio), 'refused 0'],
    ['386 amd64', linux('amd64', local), 'runs 0'],
    ['386 amd64', linux('amd64', transfer), 'runs 0'],
    ['amd64/v3', linux('amd64', { ...local, amd64Level: 3 }), 'runs 0'],
    ['amd64/v3', linux('amd64', containerd2), 'refused'],
    ['amd64/v3', linux('amd64', { ...docker, amd64Level: 3 }), 'depends on runtime'],
  ];
  for (const [configs, node, expected] of cases) {
    const platforms = configs
      .split(' ')
      .map((one) => ({ ...parsePlatform(`linux/${one}`), unnamed: true as const }));
    const { verdict, chosen = '', dependsOn } = selectPlatform(platforms, node);
    const on = dependsOn === undefined ? '' : `on ${dependsOn.join(', ')}`;
    t.equal(
      [verdict, chosen, on].filter((part) => part !== '').join(' '),
      expected,
      `${configs} on ${JSON.stringify(node)}`,
    );
  }
});

t.test('an image runs only on its CPU level or higher; a single manifest is pulled as it is', async (t) => {
  const cases: [written: string, node: NodeClass, level: 1 | 2 | 3 | 4, form: ImageForm, expected: string][] =
    [
      ['amd64', amd64, 1, 'index', 'runs 0'],
      ['amd64', amd64, 3, 'index', 'depends 0 on CPU level'],
      ['amd64', linux('amd64', { amd64Level: 2 }), 3, 'index', 'refused 0'],
      ['amd64', linux('amd64', { amd64Level: 3 }), 3, 'index', 'runs 0'],
      ['arm64', linux('arm64'), 4, 'index', 'runs 0'],
      ['amd64', amd64, 1, 'manifest', 'runs 0'],
      ['arm64', amd64, 1, 'manifest', 'refused 0'],
      ['386', linux('amd64', local), 1, 'manifest', 'runs 0'],
      ['amd64/v3', linux('amd64', local), 1, 'manifest', 'depends 0 on CPU level'],
      ['amd64/v3', linux('amd64', { ...local, amd64Level: 3 }), 1, 'manifest', 'runs 0'],
      ['arm64/v9', linux('arm64', local), 1, 'manifest', 'depends 0 on CPU variant'],
      ['arm/v7', linux('arm64', local), 1, 'manifest', 'depends 0 on AArch32'],
    ];
  for (const [written, node, level, form, expected] of cases)
    t.equal(
      outcome(written, node, level, form),
      expected,
      `${form} ${written}, ${level}, on ${JSON.stringify(node)}`,
    );
});

t.test('Windows images need a matching Windows version', async (t) => {
  const windows = (osVersion?: string): NodeClass => ({
    os: 'windows',
    architecture: 'amd64',
    ...(osVersion !== undefined && { osVersion }),
  });
  const index = ['10.0.17763.1', '10.0.20348.1', '10.0.20348.2'].map((version) =>
    parsePlatform(`windows(${version})/amd64`),
  );
  like(t, selectPlatform(index, { ...windows('10.0.20348'), ...local }), { verdict: 'runs', chosen: 2 });
  like(t, selectPlatform(index, { ...windows('10.0.20348'), ...transfer }), { verdict: 'runs', chosen: 1 });
  like(t, selectPlatform(index, windows('10.0.17763')), { verdict: 'runs', chosen: 0 });
  like(t, selectPlatform(index, windows('10.0.14393')), { verdict: 'refused' });
  like(t, selectPlatform(index, windows()), { verdict: 'depends', dependsOn: ['Windows version'] });
  const twice = [...index.slice(1), ...index.slice(2)];
  like(
    t,
    selectPlatform(twice, { ...windows('10.0.20348'), ...local }),
    { chosen: 1 },
    'the first of equal platforms',
  );
});

const variants = ['', 'v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8', 'v8.2', 'v9', '8', 'odd'];
const architectures = ['amd64', 'x86_64', '386', 'arm', 'armel', 'arm64', 'aarch64', 's390x'];
const versions = ['', '10.0.17763.1', '10.0.20348.1', '10.0.26100.1', 'odd'];
const entry = fc.record({
  os: fc.constantFrom('linux', 'linux', 'linux', 'windows'),
  architecture: fc.constantFrom(...architectures),
  variant: fc.constantFrom(...variants),
  osVersion: fc.constantFrom(...versions),
});
const platforms = fc
  .tuple(fc.array(entry, { minLength: 1, maxLength: 6 }), fc.boolean())
  .map(([entries, unnamed]) => platformsOf(entries.map((each) => (unnamed ? { ...each, unnamed } : each))));

const known: fc.Arbitrary<Required<NodeClass>> = fc.record({
  os: fc.constantFrom('linux', 'linux', 'linux', 'windows'),
  architecture: fc.constantFrom('amd64', 'arm64', 'arm', '386', 's390x'),
  runtime: fc.record({
    name: fc.constantFrom('containerd', 'containerd', 'cri-o', 'docker'),
    version: fc.constantFrom('1.6.20', '1.7.24', '2.0.1', '2.1.4', '2.4.2', 'odd'),
  }),
  pullMode: fc.constantFrom('local', 'transfer'),
  armVariant: fc.constantFrom('v5', 'v6', 'v7', 'v8'),
  amd64Level: fc.constantFrom(1, 2, 3, 4),
  aarch32: fc.boolean(),
  pageSize: fc.constantFrom(4096, 65_536),
  osVersion: fc.constantFrom('10.0.17763', '10.0.20348', '10.0.26100'),
});
const optional = ['runtime', 'pullMode', 'armVariant', 'amd64Level', 'aarch32', 'osVersion'] as const;

t.test('property: with less information the verdict is the same or uncertain', async () => {
  fc.assert(
    fc.property(
      platforms,
      known,
      fc.subarray([...optional], { minLength: 1 }),
      fc.constantFrom(1, 3),
      fc.constantFrom('index', 'manifest'),
      (list, written, missing, level, form) => {
        // Every arm64 kernel reports v8.
        const node = written.architecture === 'arm64' ? { ...written, armVariant: 'v8' } : written;
        // There is no CRI-O for Windows.
        if (node.os === 'windows' && node.runtime.name === 'cri-o') return true;
        // The pull mode is only of containerd, and depends on its version.
        const possible = node.runtime.name !== 'containerd' || /^2\.[14]/.test(node.runtime.version);
        const full = possible ? node : { ...node, pullMode: 'local' as const };
        const less = Object.fromEntries(
          Object.entries(full).filter(([key]) => !missing.some((name) => name === key)),
        ) as unknown as NodeClass;
        const certain = selectPlatform(list, less, level, form);
        const actual = selectPlatform(list, full, level, form);
        return (
          (certain.verdict === 'depends' || certain.verdict === actual.verdict) &&
          (certain.chosen === undefined || certain.chosen === actual.chosen)
        );
      },
    ),
    { numRuns: 2000 },
  );
});
