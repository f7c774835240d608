/** Lists of tags, in bounded pages. */
import t from 'tap';
import { image } from '../support/registry/content.ts';
import { clientFor, credential, endpointOf, startRegistry } from '../support/registry/client.ts';
import { createIssuer } from '../support/registry/tokens.ts';
import { neverAborted } from '../support/never-aborted.ts';

const content = image('linux/amd64');

t.test('tags are listed page by page, with a token, also from a mirror', async (t) => {
  const users = { ann: 'password-of-ann' };
  const registry = await startRegistry(t, {
    auth: { kind: 'bearer', issuer: createIssuer({ users }) },
    tagsPerPage: 2,
  });
  for (const tag of ['1', '2', '3', '4', '5']) registry.push('library/app', tag, content);
  registry.push('library/app', 'mirrored', content, 'docker.io');
  const client = clientFor(t);
  const credentials = [credential('ann', 'password-of-ann')];
  const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials };
  t.strictSame(await client.tags(lookup, neverAborted), {
    tags: ['1', '2', '3', '4', '5'],
    isComplete: true,
  });
  await t.rejects(client.tags({ ...lookup, credentials: [] }, neverAborted), { code: 'unauthorized' });
  const mirror = endpointOf(registry, { namespace: 'docker.io', namespaceParameter: true });
  t.strictSame((await client.tags({ ...lookup, endpoints: [mirror] }, neverAborted)).tags, ['mirrored']);
  const noResolver = endpointOf(registry, { resolve: false });
  await t.rejects(client.tags({ ...lookup, endpoints: [noResolver] }, neverAborted), { code: 'not-found' });
});

t.test('if the first endpoint fails, the second is used', async (t) => {
  const [broken, whole] = [await startRegistry(t), await startRegistry(t)];
  whole.push('library/app', '1', content);
  broken.faults.add(/tags/, { kind: 'status', status: 500 });
  const endpoints = [endpointOf(broken), endpointOf(whole)];
  const lookup = { repository: 'library/app', endpoints, credentials: [] };
  t.strictSame((await clientFor(t).tags(lookup, neverAborted)).tags, ['1']);
});

t.test('malformed tags, oversized pages and foreign links are ignored or refused', async (t) => {
  const registry = await startRegistry(t);
  const other = await startRegistry(t);
  const client = clientFor(t);
  const tags = async (body: string, link?: string): Promise<readonly string[]> => {
    registry.faults.clear();
    registry.faults.add(/tags/, { kind: 'status', status: 200, body, headers: link ? { link } : {} });
    registry.clearRequests();
    const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials: [] };
    return (await client.tags(lookup, neverAborted)).tags;
  };
  t.strictSame(await tags('{"tags":null}'), []);
  t.strictSame(await tags('{"tags":["1.2",3,"../../x","<b>","-a","",null,"ok_1"]}'), ['1.2', 'ok_1']);
  await t.rejects(tags('[]'), { name: 'RegistryError' });
  await t.rejects(tags('{'), { name: 'RegistryError' });
  await t.rejects(tags(`{"tags":["${'a'.repeat(300_000)}"]}`), { code: 'too-large' });

  await tags('{"tags":["1"]}', `<${other.url}/v2/library/app/tags/list?last=a>; rel="next"`);
  t.strictSame(
    registry.requests.map(({ query }) => query.get('last')),
    [null, 'a'],
    'a repeated page ends the list',
  );
  t.strictSame(other.requests, [], 'no request to another host');
});

t.test('at most ten pages are read', async (t) => {
  const registry = await startRegistry(t, { tagsPerPage: 1 });
  for (let index = 0; index < 20; index += 1) registry.push('library/app', `1.${10 + index}`, content);
  const lookup = { repository: 'library/app', endpoints: [endpointOf(registry)], credentials: [] };
  const { tags, isComplete } = await clientFor(t).tags(lookup, neverAborted);
  t.strictSame([tags.length, isComplete], [10, false]);
  t.equal(registry.requests.length, 10);
});
