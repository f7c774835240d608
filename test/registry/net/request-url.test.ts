import t from 'tap';
import { originEndpoint } from '../../../src/registry/endpoints/default-endpoints.ts';
import { objectUrl, shownUrl } from '../../../src/registry/net/request-url.ts';

const endpoint = originEndpoint('registry.corp', { ca: [], client: [], skipVerify: false });

t.test('URLs below an endpoint', async (t) => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const cases = [
    [endpoint, 'app', 'manifests', 'v1', 'https://registry.corp/v2/app/manifests/v1'],
    [endpoint, 'a/b-c/d_e', 'blobs', digest, `https://registry.corp/v2/a/b-c/d_e/blobs/${digest}`],
    [
      { ...endpoint, base: 'http://proxy:5000/a//b/v2/' },
      'app',
      'manifests',
      'v1',
      'http://proxy:5000/a/b/v2/app/manifests/v1',
    ],
    [{ ...endpoint, base: 'https://proxy' }, 'app', 'manifests', 'v1', 'https://proxy/app/manifests/v1'],
    [
      { ...endpoint, namespace: 'registry.corp:5000', namespaceParameter: true },
      'app',
      'manifests',
      'v1',
      'https://registry.corp/v2/app/manifests/v1?ns=registry.corp%3A5000',
    ],
  ] as const;
  for (const [at, repository, kind, object, url] of cases)
    t.equal(objectUrl(at, repository, kind, object)?.href, url);
  t.equal(
    objectUrl(endpoint, 'app', 'manifests', 'v1', 'http:')?.href,
    'http://registry.corp/v2/app/manifests/v1',
  );
  for (const bad of ['', '..', '.', 'a/../b', 'a//b', '/a', 'a b', 'a?b', 'a#b', 'a%2fb', 'a\\b', 'ä']) {
    t.equal(objectUrl(endpoint, bad, 'manifests', 'v1'), undefined, bad);
  }
});

t.test('what is shown of a URL', async (t) => {
  const shown = (url: string) => shownUrl(new URL(url));
  t.equal(
    shown('https://ann:secret@host:5000/a?ns=docker.io&X-Amz-Signature=secret#x'),
    'https://host:5000/a?ns=docker.io',
  );
  t.equal(
    shown('https://auth/token?service=s&scope=repository%3Aa%3Apull&account=ann'),
    'https://auth/token?service=s&scope=repository%3Aa%3Apull',
  );
  t.equal(shown('https://host/a?signature=secret'), 'https://host/a');
});
