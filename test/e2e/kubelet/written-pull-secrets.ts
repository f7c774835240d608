/** Pull secrets alone: their types and order, and broken ones. */
import {
  dockerConfig,
  entries,
  host,
  pod,
  pullSecret,
  right,
  secretWith,
  wrong,
  type PullSecret,
  type Setup,
} from './setup.ts';

const ok = (user: string): PullSecret => pullSecret({ [host]: right(user) });
const bad = (user: string): PullSecret => pullSecret({ [host]: wrong(user) });
const odd = (entry: object, key = host): PullSecret => secretWith(dockerConfig({ [key]: entry }));

/** Name → secrets and images. Default image: one of the usual registry. */
const cases: Readonly<Record<string, readonly [secrets: readonly PullSecret[], ...images: string[]]>> = {
  's-none': [[]],
  's-right': [[ok('alice')], `${host}/s2/a:1`, `eu.${host}/s2/b:1`],
  's-wrong': [[bad('alice')]],
  's-second-right': [[bad('alice'), ok('bob')]],
  's-specific-first': [
    [ok('alice'), pullSecret({ [`${host}/s5/team`]: wrong('bob') })],
    `${host}/s5/team/a:1`,
    `${host}/s5/teams:1`,
    `${host}/s5/other:1`,
  ],
  's-absent': [[{}, ok('carol')]],
  's-opaque': [[{ ...ok('alice'), type: 'Opaque' }]],
  's-legacy': [
    [
      {
        type: 'kubernetes.io/dockercfg',
        data: { '.dockercfg': JSON.stringify(entries({ [host]: right('dave') })) },
      },
    ],
  ],
  's-bad-base64': [[odd({ auth: '%%%' }), ok('bob')], `${host}/s9/a:1`, `eu.${host}/s9/b:1`],
  's-no-colon': [[odd({ auth: 'YWJj' }, 'other')]],
  's-bad-type': [[secretWith('{"auths":{"x":{"username":1}}}')]],
  's-no-auths': [[secretWith('{}')]],
  's-empty-entry': [[odd({})]],
  's-empty-entry-first': [[odd({}), ok('bob')]],
  's-name-only': [[odd({ username: 'alice' })]],
  's-password-only': [[odd({ password: 'alice-secret' })]],
  's-fields-and-case': [
    [secretWith(`{"Auths":{"${host}":{"UserName":"alice","PASSWORD":"alice-secret","identitytoken":"x"}}}`)],
  ],
  's-equal-twice': [[bad('bob'), bad('alice'), bad('bob')]],
  's-port': [
    [pullSecret({ [`${host}:5000`]: right('alice'), [host]: wrong('bob') })],
    `${host}:5000/s19/a:1`,
    `${host}/s19/b:1`,
  ],
  's-star': [
    [pullSecret({ '*.*.corp.example': right('alice'), '*.corp.example': wrong('bob') })],
    'a.b.corp.example/s20/a:1',
  ],
  's-url': [
    [pullSecret({ [`https://${host}/v1/`]: right('alice'), [`http://eu.${host}/v2/`]: right('bob') })],
    `${host}/s21/a:1`,
    `eu.${host}/s21/b:1`,
  ],
  's-hub': [[pullSecret({ 'https://index.docker.io/v1/': right('alice') })], 's22-official:1', 's22/user:1'],
  's-hub-direct': [
    [pullSecret({ 'https://index.docker.io/v1/': right('alice'), 'docker.io': wrong('bob') })],
    's23/user:1',
  ],
  's-hub-no-slash': [[pullSecret({ 'https://index.docker.io/v1': right('alice') })], 's24/user:1'],
  's-hub-wrong-names': [
    [pullSecret({ 'registry-1.docker.io': right('alice'), 'hub.docker.com': right('bob') })],
    's25/user:1',
  ],
  's-token': [
    ['alice', 'dave'].map((user) =>
      pullSecret({ 'tokens.example': (user === 'dave' ? right : wrong)(user) }),
    ),
    'tokens.example/s26/a:1',
  ],
  's-local': [
    [pullSecret({ '127.0.0.1:5001': right('alice'), localhost: right('bob') })],
    '127.0.0.1:5001/s27/a:1',
    'localhost:5001/s27/b:1',
  ],
  's-invalid': [[], 'Registry.example/UPPER:1'],
};

const absent = { 's-no-tag': [ok('alice')], 's-no-tag-twice': [bad('alice'), ok('bob')] };

export const pullSecretSetup: Setup = {
  name: 'pull secrets',
  hostRoot: '/host',
  env: {},
  files: {},
  pods: [
    ...Object.entries(cases).map(([name, [secrets, ...images]]) =>
      pod(name, images.length > 0 ? images : [`${host}/${name}/a:1`], secrets),
    ),
    ...Object.entries(absent).map(([name, secrets]) => ({
      name,
      secrets,
      images: [{ image: `${host}/${name}/a:1`, absent: true }],
    })),
  ],
};
