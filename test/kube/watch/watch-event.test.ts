import { array, assert, boolean, constantFrom, dictionary, oneof, property, string } from 'fast-check';
import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { readWatchEvent } from '../../../src/kube/watch/list-watch.ts';
import { like } from '../../support/like.ts';

const where = 'GET /api/v1/pods';

const managedFields = [
  {
    manager: 'kubelet","managedFields":[1]},"spec":{',
    operation: 'Update',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': { 'f:containers': { 'k:{"name":"]},"spec":{"}': { '.': {}, 'f:image': {} } } } },
    subresource: 'status',
  },
  { manager: 'b' },
];

function metadataOf(more: object = {}): object {
  return {
    name: 'web-0',
    generateName: 'web-',
    namespace: 'shop',
    uid: '5d694272-7c4e',
    resourceVersion: '281',
    labels: { managedFields: 'x', spec: 'y' },
    annotations: { text: ',"managedFields":[{}]},"spec":{' },
    ...more,
  };
}

function managedFieldsOf(object: object | undefined): unknown {
  const { metadata = {} } = (object ?? {}) as { readonly metadata?: { readonly managedFields?: unknown } };
  return metadata.managedFields;
}

function line(
  type: string,
  metadata: object,
  rest: object = { spec: { nodeName: 'a' }, status: {} },
): string {
  return JSON.stringify({ type, object: { kind: 'Pod', apiVersion: 'v1', metadata, ...rest } });
}

void t.test('an event is read as it was sent, without managed fields', async (t) => {
  const nested = {
    spec: {
      volumes: [
        { ephemeral: { volumeClaimTemplate: { metadata: { name: 'v', managedFields }, spec: { a: 1 } } } },
      ],
    },
  };
  const cases: readonly (readonly [string, string, object])[] = [
    ['with', line('ADDED', metadataOf({ managedFields })), { metadata: metadataOf() }],
    ['without', line('MODIFIED', metadataOf()), { metadata: metadataOf() }],
    ['an empty list', line('ADDED', metadataOf({ managedFields: [] })), { metadata: metadataOf() }],
    [
      'not followed by a spec: unchanged',
      line('ADDED', metadataOf({ managedFields }), { data: { a: 'b' } }),
      { metadata: metadataOf({ managedFields }) },
    ],
    [
      'in a template too',
      line('ADDED', metadataOf({ managedFields }), nested),
      { metadata: metadataOf(), ...nested },
    ],
    [
      'only in a template',
      line('ADDED', metadataOf(), nested),
      {
        metadata: metadataOf(),
        spec: {
          volumes: [{ ephemeral: { volumeClaimTemplate: { metadata: { name: 'v' }, spec: { a: 1 } } } }],
        },
      },
    ],
  ];
  for (const [name, text, expected] of cases) {
    const event = readWatchEvent(text, undefined, where);
    t.equal(event.whole, true, name);
    like(t, event.object, expected, name);
    t.strictSame(managedFieldsOf(event.object), managedFieldsOf(expected), name);
  }
});

void t.test('of objects that are not kept, only name, namespace and version are read', async (t) => {
  const named = { namespace: 'shop', name: 'web-0', resourceVersion: '281' };
  const cluster = {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: { name: 'n-1', uid: 'u', resourceVersion: '7' },
  };
  const cases: readonly (readonly [string, string, boolean | undefined, object])[] = [
    ['gone', line('DELETED', metadataOf({ managedFields })), undefined, { metadata: named }],
    ['gone, although it may be kept', line('DELETED', metadataOf()), true, { metadata: named }],
    ['new', line('ADDED', metadataOf()), false, { metadata: named }],
    ['changed', line('MODIFIED', metadataOf()), false, { metadata: named }],
    [
      'without a namespace',
      JSON.stringify({ type: 'DELETED', object: cluster }),
      undefined,
      { metadata: { name: 'n-1', resourceVersion: '7' } },
    ],
  ];
  for (const [name, text, kept, object] of cases) {
    const event = readWatchEvent(text, kept === undefined ? undefined : () => kept, where);
    t.strictSame(event, { type: /"type":"(\w+)"/u.exec(text)?.[1], object, whole: false }, name);
  }
});

void t.test('events in an unusual form are parsed completely', async (t) => {
  const shuffled = JSON.stringify({ object: { metadata: metadataOf(), spec: {} }, type: 'DELETED' });
  const spaced = JSON.stringify({ type: 'DELETED', object: { metadata: metadataOf() } }, undefined, 1);
  for (const text of [shuffled, spaced]) {
    const event = readWatchEvent(text, () => false, where);
    like(t, event, { type: 'DELETED', whole: false, object: { metadata: metadataOf() } });
  }
  const bookmark =
    '{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}';
  like(
    t,
    readWatchEvent(bookmark, () => false, where),
    {
      type: 'BOOKMARK',
      object: { metadata: { resourceVersion: '9' } },
    },
  );
  const ended = '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"code":410}}';
  like(
    t,
    readWatchEvent(ended, () => false, where),
    { type: 'ERROR', object: { code: 410 } },
  );
});

void t.test('a malformed event is an error', async (t) => {
  for (const text of [
    '',
    '{',
    'null',
    '7',
    '"x"',
    line('ADDED', metadataOf({ managedFields })).slice(0, -1),
  ]) {
    t.throws(() => readWatchEvent(text, undefined, where), new KubeError('bad-answer', where, ''), text);
  }
});

void t.test('property: labels and annotations are read unchanged', async (t) => {
  const hostile = constantFrom('"', '\\', ',"managedFields":[', ']},"spec":{', '{"type":"DELETED"', '\u2028');
  const text = array(oneof(hostile, string()), { maxLength: 6 }).map((parts) => parts.join(''));
  assert(
    property(dictionary(text, text), dictionary(text, text), boolean(), (labels, annotations, own) => {
      const metadata = metadataOf({ labels, annotations });
      const sent = line('ADDED', own ? { ...metadata, managedFields } : metadata);
      const { object } = readWatchEvent(sent, undefined, where);
      const { labels: l, annotations: a } = object?.metadata ?? {};
      t.equal(JSON.stringify([l, a]), JSON.stringify(JSON.parse(JSON.stringify([labels, annotations]))));
      t.equal(managedFieldsOf(object), undefined);
    }),
  );
});
