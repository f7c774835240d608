import t from 'tap';
import { applyDefaultTag, parseImageName } from '../../../scripts/vectors/upstream/kubelet-reference.ts';

const digest = `sha256:${'a'.repeat(64)}`;

t.test('the default tag is appended as text, and only where nothing is said', (t) => {
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
  t.end();
});

t.test('the kubelet keeps tag and digest', (t) => {
  t.same(parseImageName('a'), { repository: 'docker.io/library/a', tag: 'latest', digest: '' });
  t.same(parseImageName(`a@${digest}`), { repository: 'docker.io/library/a', tag: '', digest });
  t.same(parseImageName(`a:v1@${digest}`), { repository: 'docker.io/library/a', tag: 'v1', digest });
  t.same(parseImageName('a_b.c/d'), { repository: 'a_b.c/d', tag: 'latest', digest: '' });
  t.end();
});

t.test('a refusal reads like the event of the kubelet', (t) => {
  const message = `couldn't parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase`;
  t.throws(() => applyDefaultTag('Nginx'), { code: 'invalid-reference', message });
  t.end();
});
