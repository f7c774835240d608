/** A verdict that is certain without a field of the node is correct for every value of the field. */
import * as fc from 'fast-check';
import t from 'tap';
import { platformsOf } from '../../src/names/platform.ts';
import type { NodeClass } from '../../src/nodes/node-class.ts';
import { selectPlatform } from '../../src/nodes/selection.ts';

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
