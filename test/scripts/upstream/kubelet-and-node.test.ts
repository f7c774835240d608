/** How the kubelet reads image names, and containerd the node: its label, machine name and Windows version. */
import t from 'tap';
import { applyDefaultTag, parseImageName } from '../../../scripts/vectors/upstream/kubelet-reference.ts';
import { architectureOfLabel, cpuVariantOfMachine } from '../../../scripts/vectors/upstream/platform-node.ts';
import { windowsVersionMatches } from '../../../src/nodes/windows-version.ts';

const digest = `sha256:${'a'.repeat(64)}`;

t.test('the default tag is appended as text, and only where nothing is said', async (t) => {
  for (const [image, sent] of [
    ['nginx', 'nginx:latest'],
    ['gcr.io:5000/a', 'gcr.io:5000/a:latest'],
    ['nginx:v1', 'nginx:v1'],
    ['nginx:latest', 'nginx:latest'],
    [`nginx@${digest}`, `nginx@${digest}`],
    [`nginx:v1@${digest}`, `nginx:v1@${digest}`],
  ] as const) {
    t.equal(applyDefaultTag(image), sent);
  }
});

t.test('the kubelet keeps tag and digest', async (t) => {
  t.same(parseImageName('a'), { repository: 'docker.io/library/a', tag: 'latest', digest: '' });
  t.same(parseImageName(`a@${digest}`), { repository: 'docker.io/library/a', tag: '', digest });
  t.same(parseImageName(`a:v1@${digest}`), { repository: 'docker.io/library/a', tag: 'v1', digest });
  t.same(parseImageName('a_b.c/d'), { repository: 'a_b.c/d', tag: 'latest', digest: '' });
});

t.test('a refusal reads like the event of the kubelet', async (t) => {
  const message = `couldn't parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase`;
  t.throws(() => applyDefaultTag('Nginx'), { code: 'invalid-reference', message });
});

t.test('node label', async (t) => {
  t.equal(architectureOfLabel('amd64'), 'amd64');
  t.equal(architectureOfLabel('arm'), 'arm');
  t.equal(architectureOfLabel('loong64'), 'loong64');
});

t.test('variants of machine names', async (t) => {
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
});

t.test('which Windows runs which container', async (t) => {
  const cases: [host: string, container: string, runs: boolean][] = [
    ['', '10.0.17763', true],
    ['odd', '10.0.17763', true],
    ['10.0', '10.0.17763', true],
    ['0.0.0', '10.0.17763', true],
    ['10.0.70000', '10.0.17763', true],
    ['300.0.1', '10.0.17763', true],
    ['10.0.17763', '', true],
    ['10.0.17763', '10.0.17763.1', true],
    ['10.0.17763', '10.0.18362', false],
    ['10.0.17763', '11.0.17763', false],
    ['10.0.17763', '10.1.17763', false],
    ['10.0.17763', 'odd', false],
    ['10.0.20348', '10.0.20348', true],
    ['10.0.20348', '10.0.20347', false],
    ['10.0.22621', '10.0.20348', true],
    ['10.0.22621', '10.0.22622', false],
    ['10.0.26100', '10.0.20348', true],
    ['10.0.26101', '10.0.20348', true],
    ['10.0.26101', '10.0.26100', true],
  ];
  for (const [host, container, runs] of cases) {
    t.equal(windowsVersionMatches(host, container), runs, `${container} on ${host}`);
  }
});
