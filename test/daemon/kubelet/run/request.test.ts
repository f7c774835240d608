import t from 'tap';
import { encodeRequest } from '../../../../daemon/kubelet/run/execute.ts';
import { secret } from '../../../../src/telemetry/secret.ts';

const group = 'credentialprovider.kubelet.k8s.io';

t.test('one line with the members and escapes of Go', async (t) => {
  t.equal(
    encodeRequest(`${group}/v1`, {
      image: 'registry.example/a',
      serviceAccountToken: secret('to<k>en'),
      serviceAccountAnnotations: { 'b/z': 'a&b\u2028', 'a/é': '"\\', 'B/a': '' },
    }),
    `{"kind":"CredentialProviderRequest","apiVersion":"${group}/v1","image":"registry.example/a",` +
      String.raw`"serviceAccountToken":"to\u003ck\u003een","serviceAccountAnnotations":{"B/a":"","a/é":"\"\\","b/z":"a\u0026b\u2028"}}` +
      '\n',
  );
});

t.test('versions before v1 have no tokens, and empty members are omitted', async (t) => {
  const request = { image: 'a/b', serviceAccountToken: secret('t'), serviceAccountAnnotations: { a: 'b' } };
  for (const version of ['v1alpha1', 'v1beta1']) {
    t.equal(
      encodeRequest(`${group}/${version}`, request),
      `{"kind":"CredentialProviderRequest","apiVersion":"${group}/${version}","image":"a/b"}\n`,
    );
  }
  t.equal(
    encodeRequest(`${group}/v1`, {
      image: 'a/b',
      serviceAccountToken: secret(''),
      serviceAccountAnnotations: {},
    }),
    `{"kind":"CredentialProviderRequest","apiVersion":"${group}/v1","image":"a/b"}\n`,
  );
});
