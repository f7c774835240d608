import t from 'tap';
import { staticDiscovery } from '../../../src/fleet/discovery/static.ts';

t.test('lists each agent once', async (t) => {
  const discovery = staticDiscovery(['https://a:1', 'https://b:2/', 'https://A:1']);
  await discovery.ready(AbortSignal.abort());
  t.strictSame(discovery.current(), [{ url: 'https://a:1' }, { url: 'https://b:2' }]);
  discovery.onChange(() => t.fail('it never changes'));
  discovery.close();
});

t.test('a wrong URL is refused where it is read', (t) => {
  t.throws(() => staticDiscovery(['https://a:1', 'http://b:2']), { message: /over https only/ });
  t.end();
});
