import t from 'tap';
import { decodeResponse } from '../../../../daemon/kubelet/run/execute.ts';
import { reveal } from '../../../../src/telemetry/secret.ts';
import { pluginOutput } from '../../../support/fuzz/node-files.ts';
import { assertFuzz } from '../../../support/fuzz/target.ts';
import { execV1 } from '../support.ts';

const response = (members: string): string =>
  `{"kind":"CredentialProviderResponse","apiVersion":"${execV1}"${members}}`;

t.test('valid responses', async (t) => {
  const decoded = decodeResponse(
    ` ${response(',"cacheKeyType":"Registry","cacheDuration":"-1m","auth":{"b":{"username":"u","password":"hunter22"},"a":null}')}\n`,
    'p',
    execV1,
  );
  t.match(decoded, { cacheKeyType: 'Registry', cacheDurationMs: -60_000 });
  t.same(
    [...decoded.auth].map(([key, { username, password }]) => [key, username, reveal(password)]),
    [
      ['b', 'u', 'hunter22'],
      ['a', '', ''],
    ],
  );
  t.notMatch(JSON.stringify(decoded.auth.get('b')), /hunter22/);
  t.same(decodeResponse(response(''), 'p', execV1), {
    cacheKeyType: '',
    cacheDurationMs: undefined,
    auth: new Map(),
  });
  t.equal(decodeResponse(response(',"cacheDuration":null'), 'p', execV1).cacheDurationMs, undefined);
  t.equal(decodeResponse(response(',"cacheDuration":"0"'), 'p', execV1).cacheDurationMs, 0);
});

t.test('other responses are refused in the kubelet’s words, without quoting them', async (t) => {
  const fixed = 'error decoding credential provider plugin response from stdout';
  const mismatch = `apiVersion from credential plugin response did not match expected apiVersion:${execV1}, actual apiVersion:`;
  const cases: [string, string | RegExp][] = [
    [
      'hunter22',
      /^error reading GVK from response: couldn't get version\/kind; json parse error: is not valid JSON$/,
    ],
    ['', /^error reading GVK from response/],
    ['kind: CredentialProviderResponse', /^error reading GVK/],
    ['[]', /^error reading GVK/],
    [`{"kind":1,"apiVersion":"${execV1}"}`, /^error reading GVK/],
    [`\ufeff${response('')}`, /^error reading GVK/],
    [`${response('')}${response('')}`, /^error reading GVK/],
    ['null', mismatch],
    ['{}', mismatch],
    [
      '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1"}',
      `${mismatch}credentialprovider.kubelet.k8s.io/v1beta1`,
    ],
    ['{"apiVersion":"\\u001b[2J\\n"}', `${mismatch}?[2J?`],
    [`{"kind":"CredentialProviderRequest","apiVersion":"${execV1}"}`, fixed],
    [`{"apiVersion":"${execV1}"}`, fixed],
    [`{"Kind":"CredentialProviderResponse","APIVersion":"${execV1}"}`, fixed],
    [response(',"auth":{"a":{"Username":"hunter22"}}'), fixed],
    [response(',"auth":{"a":{"username":"u","username":"u"}}'), fixed],
    [response(',"auth":{"a":{},"a":{}}'), fixed],
    [response(',"auth":{"a":{"username":1}}'), fixed],
    [response(',"auth":[]'), fixed],
    [response(',"Auth":{}'), fixed],
    [response(',"extra":"hunter22"'), fixed],
    [response(',"cacheDuration":60'), fixed],
    [response(',"cacheDuration":"1d"'), fixed],
    [response(',"cacheKeyType":1'), fixed],
    [response(`,"kind":"CredentialProviderResponse"`), fixed],
  ];
  for (const [stdout, message] of cases) {
    t.throws(
      () => decodeResponse(stdout, 'p', execV1),
      { code: 'bad-response', where: 'p', message },
      stdout,
    );
  }
  t.throws(
    () => decodeResponse('{"kind":"CredentialProviderResponse","apiVersion":"a/v1"}', 'p', 'a/v1'),
    { message: fixed },
    'another group, even if it is configured',
  );
});

t.test('property: any output gives a response or a PluginError', () => assertFuzz(pluginOutput, 500));
