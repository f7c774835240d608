import { readFileSync } from 'node:fs';
import t from 'tap';
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import { keys } from '../../../src/names/keys.ts';
import type { Policy } from '../../../src/policy/effective/policy.ts';
import { inputOf, place, podOf } from '../../support/placement-input.ts';

const stateAfter = (
  images: Readonly<Record<string, string | ImageFacts | undefined>>,
  policy: Partial<Policy> = {},
  metadata: object = {},
) => place(inputOf(podOf(Object.keys(images), {}, metadata), images as never, policy)).pod.metadata?.labels;

t.test('the state label at admission', async (t) => {
  const gate = { onUnknownImage: 'gate' } as const;
  const rows: [about: string, labels: ReturnType<typeof stateAfter>, state: string | undefined][] = [
    ['known', stateAfter({ a: 'amd64' }), 'placed'],
    ['unknown', stateAfter({ a: undefined }, gate), 'gated'],
    [
      'unknown, with a fallback',
      stateAfter({ a: undefined }, { onUnknownImage: 'fallback', fallbackArchitecture: 'amd64' }),
      'fallback',
    ],
    [
      'no common architecture',
      stateAfter({ a: 'amd64', b: 'arm64' }, { onNoCommonArchitecture: 'pend' }),
      'pending',
    ],
    ['no addition', stateAfter({ a: '' }), undefined],
    [
      'a label that a person copied',
      stateAfter({ a: '' }, {}, { labels: { [keys.placementState]: 'gated' } }),
      undefined,
    ],
    [
      'beside others',
      stateAfter({ a: 'amd64' }, {}, { labels: { app: 'a', [keys.placementState]: 'gated' } }),
      'placed',
    ],
  ];
  for (const [about, labels, state] of rows) {
    t.equal(labels?.[keys.placementState], state, about);
  }
  t.equal(rows.at(-1)?.[1]?.['app'], 'a');
  t.match(
    readFileSync('charts/archwright/templates/ownrights.yaml', 'utf8'),
    "in ['gated', 'placed', 'fallback', 'pending']",
    'the values in the chart',
  );
});

t.test('templates get no label', async (t) => {
  const template = place({ ...inputOf(podOf(['a']), { a: 'amd64' }), template: 'DaemonSet' });
  t.ok(template.patch.length > 0);
  t.equal(template.pod.metadata?.labels, undefined);
});
