import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { ProviderConfig } from '../../../../daemon/kubelet/config/provider-config.ts';
import { createExecute, encodeRequest, decodeResponse } from '../../../../daemon/kubelet/run/execute.ts';
import { FairSemaphores } from '../../../../src/async/fair-semaphore.ts';
import { answering, execV1, marking, nodeDir, sh, waitingFor, writePlugin } from '../support.ts';
import { until } from '../../../support/until.ts';
import { secret, reveal } from '../../../../src/telemetry/secret.ts';
import { neverAborted } from '../../../support/never-aborted.ts';
import { like } from '../../../support/like.ts';

/** Executes a plugin with this body; the body gets the path of a log. */
function setUp(t: Test, body: (log: string) => string, config: Partial<ProviderConfig> = {}, maxRuns = 6) {
  const { bin: binDir } = nodeDir(t, '');
  const log = join(binDir, 'log');
  writePlugin(join(binDir, 'p'), body(log));
  const execute = createExecute(
    { name: 'p', matchImages: ['r.example'], apiVersion: execV1, ...config },
    {
      hostRoot: '/',
      binDir,
      places: new FairSemaphores({ places: maxRuns }),
      stop: neverAborted,
      environment: () => Promise.resolve({ PATH: '/bin:/usr/bin' }),
    },
  );
  return { log, execute };
}

t.test('concurrent runs are limited, and an aborted run never starts', async (t) => {
  const body = (log: string) => answering({}, marking(log) + waitingFor(`${log}.go`));
  const { log, execute } = setUp(t, body);
  const waiting = [1, 2, 3].map((n) => execute({ image: `r.example/${n}` }, neverAborted));
  const gone = new AbortController();
  const abandoned = execute({ image: 'r.example/4' }, gone.signal);
  await until(() => existsSync(log) && readFileSync(log, 'utf8').length === 2);
  gone.abort();
  await t.rejects(abandoned, { code: 'stopped' });
  t.equal(readFileSync(log, 'utf8'), '..');
  writeFileSync(`${log}.go`, '');
  t.equal((await Promise.all(waiting)).length, 3);
  t.equal(readFileSync(log, 'utf8'), '...');
});

t.test('attack: runs for one namespace do not delay those for others', async (t) => {
  const readInput = `process.getBuiltinModule('node:fs').readFileSync(0, 'utf8')`;
  const body = (log: string) =>
    answering({}, `if (!${readInput}.includes('shop')) { ${marking(log)} ${waitingFor(`${log}.go`)} }`);
  const { log, execute } = setUp(t, body);
  const run = (namespace: string, n: number) =>
    execute({ image: `r.example/${namespace}/${n}` }, neverAborted, namespace);
  const attack = Array.from({ length: 9 }, (_, n) => run(`attacker-${n % 3}`, n));
  await until(() => existsSync(log) && readFileSync(log, 'utf8').length === 3);
  await run('shop', 1);
  writeFileSync(`${log}.go`, '');
  t.equal((await Promise.all(attack)).length, 9, 'all runs end');
});

t.test('the request has the configured version', async (t) => {
  const { log, execute } = setUp(t, (file) => sh(`cat > ${file}; echo "$@" >> ${file}`), {
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1alpha1',
    args: ['--v=5', 'a b'],
  });
  await t.rejects(execute({ image: 'r.example/a' }, neverAborted), {
    code: 'bad-response',
    message: /^error reading GVK from response/,
  });
  t.equal(
    readFileSync(log, 'utf8'),
    '{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","image":"r.example/a"}\n--v=5 a b\n',
  );
});

const group = 'credentialprovider.kubelet.k8s.io';

t.test('the request is one line with the members that the kubelet sends', async (t) => {
  t.equal(
    encodeRequest(`${group}/v1`, {
      image: 'registry.example/a',
      token: secret('to<k>en'),
      annotations: { 'B/a': '', 'a/é': '"\\\n' },
    }),
    `{"kind":"CredentialProviderRequest","apiVersion":"${group}/v1","image":"registry.example/a",` +
      String.raw`"serviceAccountToken":"to<k>en","serviceAccountAnnotations":{"B/a":"","a/é":"\"\\\n"}}` +
      '\n',
  );
});

t.test('versions before v1 have no tokens, and empty members are omitted', async (t) => {
  const request = { image: 'a/b', token: secret('t'), annotations: { a: 'b' } };
  for (const version of ['v1alpha1', 'v1beta1']) {
    t.equal(
      encodeRequest(`${group}/${version}`, request),
      `{"kind":"CredentialProviderRequest","apiVersion":"${group}/${version}","image":"a/b"}\n`,
    );
  }
  const empty = { image: 'a/b', token: secret(''), annotations: {} };
  const line = `{"kind":"CredentialProviderRequest","apiVersion":"${group}/v1","image":"a/b"}\n`;
  t.equal(encodeRequest(`${group}/v1`, empty), line);
});

const response = (members: string): string =>
  `{"kind":"CredentialProviderResponse","apiVersion":"${execV1}"${members}}`;

t.test('valid responses are read', async (t) => {
  const decoded = decodeResponse(
    ` ${response(',"cacheKeyType":"Registry","cacheDuration":"-1m","auth":{"b":{"username":"u","password":"hunter22"},"a":null}')}\n`,
    execV1,
  );
  like(t, decoded, { cacheKeyType: 'Registry', cacheDurationMs: -60_000 });
  t.strictSame(
    [...decoded.auth].map(([key, { username, password }]) => [key, username, reveal(password)]),
    [
      ['b', 'u', 'hunter22'],
      ['a', '', ''],
    ],
  );
  t.notMatch(JSON.stringify(decoded.auth.get('b')), /hunter22/);
  t.strictSame(decodeResponse(response(''), execV1), {
    cacheKeyType: '',
    cacheDurationMs: undefined,
    auth: new Map(),
  });
  t.equal(decodeResponse(response(',"cacheDuration":null'), execV1).cacheDurationMs, undefined);
  t.equal(decodeResponse(response(',"cacheDuration":"0"'), execV1).cacheDurationMs, 0);
});

t.test('invalid responses are refused with the kubelet’s message, without quoting them', async (t) => {
  const gvk = 'error reading GVK from response';
  const fixed = 'error decoding credential provider plugin response from stdout';
  const mismatch = `apiVersion from credential plugin response did not match expected apiVersion:${execV1}, actual apiVersion:`;
  const cases: [string, string | RegExp][] = [
    ['hunter22', new RegExp(`^${gvk}: couldn't get version/kind; json parse error: is not valid JSON$`)],
    [`{"kind":1,"apiVersion":"${execV1}"}`, /^error reading GVK/],
    [`\ufeff${response('')}`, /^error reading GVK/],
    ['null', mismatch],
    [`{"apiVersion":"${execV1}beta1"}`, `${mismatch}${execV1}beta1`],
    ['{"apiVersion":"\\u001b[2J\\n"}', `${mismatch}?[2J?`],
    [`{"kind":"CredentialProviderRequest","apiVersion":"${execV1}"}`, fixed],
    [`{"apiVersion":"${execV1}"}`, fixed],
    [`{"Kind":"CredentialProviderResponse","APIVersion":"${execV1}"}`, fixed],
    [response(',"auth":{"a":{"Username":"hunter22"}}'), fixed],
    [response(',"auth":{"a":{"username":"u","username":"u"}}'), fixed],
    [response(',"auth":{"a":{"username":1}}'), fixed],
    [response(',"extra":"hunter22"'), fixed],
    [response(',"cacheDuration":"1d"'), fixed],
    [response(',"cacheKeyType":1'), fixed],
  ];
  for (const [stdout, message] of cases) {
    const wanted = { code: 'bad-response', message };
    t.throws(() => decodeResponse(stdout, execV1), wanted, stdout);
  }
  t.throws(
    () => decodeResponse('{"kind":"CredentialProviderResponse","apiVersion":"a/v1"}', 'a/v1'),
    { message: fixed },
    'another group, even if it is configured',
  );
});
