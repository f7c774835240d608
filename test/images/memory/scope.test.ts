import t from 'tap';
import {
  scopedKey,
  scopeOf,
  sharedScope,
  withAccount,
  requestWithin,
} from '../../../src/images/memory/scope.ts';
import type { ImageRequest } from '../../../src/images/facts/facts.ts';
import { pullCredential, requestFor } from '../support.ts';

const [a, b, c] = [pullCredential('a'), pullCredential('b'), pullCredential('c')];

const within = (pullCredentials: ImageRequest['pullCredentials'], scope: string) =>
  requestWithin(scope, { ...requestFor('a'), pullCredentials }).pullCredentials;

t.test('the scope of credentials depends on neither order nor repetition', async (t) => {
  t.equal(scopeOf([]), sharedScope);
  t.equal(scopeOf([a]), 'a', 'the scope of one credential is its id');
  t.equal(scopeOf([b, a]), scopeOf([a, b]), 'in any order');
  t.equal(scopeOf([a, b, a]), scopeOf([a, b]), 'a repetition changes nothing');
  t.equal(scopeOf([a, a]), 'a');
  t.not(scopeOf([a, b]), scopeOf([a]));
  t.not(scopeOf([a, b]), scopeOf([a, b, c]));
});

t.test('keys differ by scope', async (t) => {
  t.equal(scopedKey('docker.io/library/nginx:1', sharedScope), 'docker.io/library/nginx:1');
  t.not(scopedKey('docker.io/library/nginx:1', 'a'), scopedKey('docker.io/library/nginx:1', 'b'));
});

t.test('scopes with and without service accounts are distinct', async (t) => {
  const account = (namespace: string, name: string) => ({ namespace, name });
  const scopes = [
    withAccount(sharedScope, undefined),
    withAccount(sharedScope, account('a', 'b')),
    withAccount(sharedScope, account('b', 'a')),
    withAccount('a', account('a', 'b')),
    withAccount('a', undefined),
    scopeOf([a]),
    scopeOf([a, b]),
    sharedScope,
  ];
  t.equal(new Set(scopes).size, scopes.length);
  t.same(within([a, b], withAccount('b', account('a', 'b'))), [b]);
});

t.test('a scope selects its credentials among those presented', async (t) => {
  t.same(within([a, b, c], sharedScope), []);
  t.same(within([a, b, c], 'b'), [b]);
  t.same(within([c, b, a], scopeOf([a, c])), [c, a], 'in the presented order');
});
