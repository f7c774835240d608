import t from 'tap';
import { architectureOfLabel, cpuVariantOfMachine } from '../../../scripts/vectors/upstream/platform-node.ts';

t.test('node label', (t) => {
  t.equal(architectureOfLabel('amd64'), 'amd64');
  t.equal(architectureOfLabel('arm'), 'arm');
  t.equal(architectureOfLabel('loong64'), 'loong64');
  t.end();
});

t.test('variants of machine names', (t) => {
  for (const [machine, variant] of [
    ['AArch64', '8'],
    ['armv8l', '8'],
    ['armv7l', '7'],
    ['Armv6', '6'],
    ['armv5tejl', '5'],
    ['armv3', '3'],
    ['armv2', 'unknown'],
    ['armv9', 'unknown'],
  ] as const) {
    t.equal(cpuVariantOfMachine(machine), variant, machine);
  }
  for (const machine of ['', 'arm', 'armv', 'x86_64', 'xarmv7']) {
    t.throws(
      () => cpuVariantOfMachine(machine),
      { code: 'unknown-machine', message: 'invalid argument' },
      machine,
    );
  }
  t.end();
});
