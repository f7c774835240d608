/** How the kubelet reads image names, and containerd the label and machine name of a node. */
import t from 'tap';
import { applyDefaultTag, parseImageName } from '../../../scripts/vectors/upstream/kubelet-reference.ts';
import { architectureOfLabel, cpuVariantOfMachine } from '../../../scripts/vectors/upstream/platform-node.ts';

const digest = `sha256:${'a'.repeat(64)}`;

t.test('the default tag is appended only without tag and digest', async (t) => {
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
  t.strictSame(parseImageName('a'), { repository: 'docker.io/library/a', tag: 'latest', digest: '' });
  t.strictSame(parseImageName(`a@${digest}`), { repository: 'docker.io/library/a', tag: '', digest });
  t.strictSame(parseImageName(`a:v1@${digest}`), { repository: 'docker.io/library/a', tag: 'v1', digest });
  t.strictSame(parseImageName('a_b.c/d'), { repository: 'a_b.c/d', tag: 'latest', digest: '' });
});

t.test('a refusal has the message of the kubelet’s event', async (t) => {
  const message = `couldn't parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase`;
  t.throws(() => applyDefaultTag('Nginx'), { code: 'invalid-reference', message });
});

t.test('the architecture of a node is that of its label', async (t) => {
  t.equal(architectureOfLabel('amd64'), 'amd64');
  t.equal(architectureOfLabel('arm'), 'arm');
  t.equal(architectureOfLabel('loong64'), 'loong64');
});

t.test('machine names have variants', async (t) => {
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
