import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { liveWebhooks, parseWebhooks, webhookNamesOf } from '../../../src/controller/state/webhooks-file.ts';
import { captureLog } from '../../support/captured.ts';
import { until } from '../../support/until.ts';

const service = 'clientConfig: { service: { namespace: ns, name: hook } }';

t.test('defaults of the API server are added', async (t) => {
  const text = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
webhooks:
  - name: a.example
    ${service}
    admissionReviewVersions: [v1]
    rules: [{ apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE] }]
  - name: b.example
    clientConfig: { url: 'https://127.0.0.1:8443/mutate', caBundle: ignored }
    failurePolicy: Ignore
    timeoutSeconds: 3
    rules: [{ apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE], scope: Namespaced }]
`;
  const defaults = {
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    reinvocationPolicy: 'Never',
    timeoutSeconds: 10,
  };
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
  t.strictSame(parseWebhooks(text, 'f'), [
    {
      ...defaults,
      name: 'a.example',
      clientConfig: { service: { namespace: 'ns', name: 'hook', port: 443 } },
      admissionReviewVersions: ['v1'],
      rules: [{ ...rule, scope: '*' }],
    },
    {
      ...defaults,
      name: 'b.example',
      clientConfig: { url: 'https://127.0.0.1:8443/mutate' },
      failurePolicy: 'Ignore',
      timeoutSeconds: 3,
      rules: [{ ...rule, scope: 'Namespaced' }],
    },
  ]);
  t.strictSame(parseWebhooks('webhooks: []', 'f'), [], 'an empty list is a list');
});

t.test('invalid files are refused, with the position', async (t) => {
  const cases: [string, RegExp][] = [
    ['', /the file must be an object/],
    ['webhooks: [', /the file is not YAML/],
    ['webhooks: [{}]', /webhooks\.0\.name is missing/],
    ['webhooks: [{ name: a, clientConfig: {} }]', /clientConfig needs url or service/],
    [
      `webhooks: [{ name: a, clientConfig: { url: 'https://x', service: { name: b, namespace: c } } }]`,
      /needs url or service/,
    ],
    [`webhooks: [{ name: a, clientConfig: { url: 'http://x' } }]`, /url must be an https URL/],
    [`webhooks: [{ name: a, clientConfig: { url: 'https://' } }]`, /url must be an https URL/],
    [`webhooks: [{ name: a, ${service} }, { name: a, ${service} }]`, /two webhooks of one name/],
    [
      `webhooks: [${Array.from({ length: 21 }, (_, index) => `{ name: a${index}, ${service} }`).join(',')}]`,
      /must have a length of <=20/,
    ],
  ];
  for (const [text, message] of cases) {
    const where = new RegExp(`^/etc/x\\.yaml: .*(${message.source})`);
    t.throws(() => parseWebhooks(text, '/etc/x.yaml'), { name: 'WebhooksFileError', message: where }, text);
  }
});

t.test('the last good webhooks stay while the file cannot be used', async (t) => {
  const { log, lines } = captureLog();
  const dir = t.testdir({});
  const path = join(dir, 'w.yaml');
  const live = await liveWebhooks(path, log);
  t.teardown(() => live.close());
  t.equal(live.current(), undefined, 'no file yet');
  let changes = 0;
  live.onChange(() => (changes += 1));
  const write = (text: string): void => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  write('webhooks: []');
  await until(() => changes === 1, 'the file');
  write(`webhooks: [] #${'x'.repeat(256 * 1024)}`);
  await until(() => live.problem() !== undefined, 'a file that is too large');
  t.strictSame(live.current(), []);
  t.equal(lines.length, 2);
});

t.test('the DNS names of the webhook', async (t) => {
  const of = (config: string): readonly string[] =>
    webhookNamesOf(parseWebhooks(`webhooks: [{ name: a, clientConfig: ${config} }]`, 'f'));
  t.strictSame(of('{ service: { namespace: ns, name: hook } }'), [
    'hook.ns.svc',
    'hook.ns.svc.cluster.local',
  ]);
  t.strictSame(of(`{ url: 'https://hook.example:8443/mutate' }`), ['hook.example']);
  t.strictSame(of(`{ url: 'https://[::1]:8443/mutate' }`), ['::1']);
  t.strictSame(of(`{ url: 'https://10.0.0.1/mutate' }`), ['10.0.0.1']);
  const two = `webhooks: [{ name: a, ${service} }, { name: b, ${service} }]`;
  t.strictSame(webhookNamesOf(parseWebhooks(two, 'f')).length, 2);
});
