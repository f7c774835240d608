/** Writing the notes: two containers of one image, in two namespaces, that fail at the same time. */
import t from 'tap';
import { createNotes } from '../../../src/controller/exec-format/notes.ts';
import { parseBroken } from '../../../src/images/broken.ts';
import { createKubeClient } from '../../../src/kube/client.ts';
import { startKubeStore } from '../../support/kube-store.ts';

const signal = AbortSignal.timeout(60_000);
const path = '/api/v1/namespaces/archwright/configmaps/notes';
const until = Date.parse('2027-01-01T00:00:00Z');
const seen = { digest: `sha256:${'a'.repeat(64)}`, architecture: 'arm64', image: 'shop/web:1', until };

for (const [title, data] of [
  ['a ConfigMap that is there', {}],
  ['none yet', undefined],
] as const) {
  void t.test(`no namespace is lost where several are noted at once: ${title}`, async (t) => {
    const store = await startKubeStore();
    const client = createKubeClient({ access: store.access, userAgent: 'test' });
    t.teardown(async () => {
      client.close();
      await store.close();
    });
    if (data) store.put(path, { data });
    const notes = createNotes({ client, namespace: 'archwright', name: 'notes' });
    const namespaces = ['bank', 'mail', 'shop'];
    const news = await Promise.all(namespaces.map((namespace) => notes.add({ ...seen, namespace }, signal)));
    t.same(news, [true, true, true]);
    const kept = parseBroken((store.get(path) as { readonly data?: Record<string, string> }).data);
    t.same(
      kept.map((note) => note.namespaces),
      [namespaces],
    );
  });
}
