/** Pull secrets alone: their types and order, and broken ones. */
import {
  dockerConfig,
  entry,
  pullSecret,
  right,
  wrong,
  type PodCase,
  type PullSecret,
  type Setup,
} from './setup.ts';

function pod(name: string, secrets: readonly PullSecret[], ...images: string[]): PodCase {
  return { name, secrets, images: images.map((image) => ({ image })) };
}

function raw(type: string, key: string, text: string): PullSecret {
  return { type, data: { [key]: text } };
}

const json = 'kubernetes.io/dockerconfigjson';
const legacy = 'kubernetes.io/dockercfg';
const host = 'registry.example';

export const pullSecretSetup: Setup = {
  name: 'pull secrets',
  hostRoot: '/host',
  env: {},
  files: {},
  pods: [
    pod('s-none', [], `${host}/s1/a:1`),
    pod('s-right', [pullSecret({ [host]: right('alice') })], `${host}/s2/a:1`, `eu.${host}/s2/b:1`),
    pod('s-wrong', [pullSecret({ [host]: wrong('alice') })], `${host}/s3/a:1`),
    pod(
      's-second-right',
      [pullSecret({ [host]: wrong('alice') }), pullSecret({ [host]: right('bob') })],
      `${host}/s4/a:1`,
    ),
    pod(
      's-specific-first',
      [pullSecret({ [host]: right('alice') }), pullSecret({ [`${host}/s5/team`]: wrong('bob') })],
      `${host}/s5/team/a:1`,
      `${host}/s5/teams:1`,
      `${host}/s5/other:1`,
    ),
    pod('s-absent', [{}, pullSecret({ [host]: right('carol') })], `${host}/s6/a:1`),
    pod(
      's-opaque',
      [raw('Opaque', '.dockerconfigjson', dockerConfig({ [host]: entry(right('alice')) }))],
      `${host}/s7/a:1`,
    ),
    pod(
      's-legacy',
      [raw(legacy, '.dockercfg', JSON.stringify({ [host]: entry(right('dave')) }))],
      `${host}/s8/a:1`,
    ),
    pod(
      's-bad-base64',
      [
        raw(json, '.dockerconfigjson', dockerConfig({ [host]: { auth: '%%%' } })),
        pullSecret({ [host]: right('bob') }),
      ],
      `${host}/s9/a:1`,
      `eu.${host}/s9/b:1`,
    ),
    pod(
      's-no-colon',
      [raw(json, '.dockerconfigjson', dockerConfig({ other: { auth: 'YWJj' } }))],
      `${host}/s10/a:1`,
    ),
    pod('s-bad-type', [raw(json, '.dockerconfigjson', '{"auths":{"x":{"username":1}}}')], `${host}/s11/a:1`),
    pod('s-no-auths', [raw(json, '.dockerconfigjson', '{}')], `${host}/s12/a:1`),
    pod('s-empty-entry', [raw(json, '.dockerconfigjson', dockerConfig({ [host]: {} }))], `${host}/s13/a:1`),
    pod(
      's-empty-entry-first',
      [raw(json, '.dockerconfigjson', dockerConfig({ [host]: {} })), pullSecret({ [host]: right('bob') })],
      `${host}/s14/a:1`,
    ),
    pod(
      's-name-only',
      [raw(json, '.dockerconfigjson', dockerConfig({ [host]: { username: 'alice' } }))],
      `${host}/s15/a:1`,
    ),
    pod(
      's-password-only',
      [raw(json, '.dockerconfigjson', dockerConfig({ [host]: { password: 'alice-secret' } }))],
      `${host}/s16/a:1`,
    ),
    pod(
      's-fields-and-case',
      [
        raw(
          json,
          '.dockerconfigjson',
          `{"Auths":{"${host}":{"UserName":"alice","PASSWORD":"alice-secret","identitytoken":"x"}}}`,
        ),
      ],
      `${host}/s17/a:1`,
    ),
    pod(
      's-equal-twice',
      [
        pullSecret({ [host]: wrong('bob') }),
        pullSecret({ [host]: wrong('alice') }),
        pullSecret({ [host]: wrong('bob') }),
      ],
      `${host}/s18/a:1`,
    ),
    pod(
      's-port',
      [pullSecret({ [`${host}:5000`]: right('alice'), [host]: wrong('bob') })],
      `${host}:5000/s19/a:1`,
      `${host}/s19/b:1`,
    ),
    pod(
      's-star',
      [pullSecret({ '*.*.corp.example': right('alice'), '*.corp.example': wrong('bob') })],
      'a.b.corp.example/s20/a:1',
    ),
    pod(
      's-url',
      [pullSecret({ [`https://${host}/v1/`]: right('alice'), [`http://eu.${host}/v2/`]: right('bob') })],
      `${host}/s21/a:1`,
      `eu.${host}/s21/b:1`,
    ),
    pod(
      's-hub',
      [pullSecret({ 'https://index.docker.io/v1/': right('alice') })],
      's22-official:1',
      's22/user:1',
    ),
    pod(
      's-hub-direct',
      [pullSecret({ 'https://index.docker.io/v1/': right('alice'), 'docker.io': wrong('bob') })],
      's23/user:1',
    ),
    pod('s-hub-no-slash', [pullSecret({ 'https://index.docker.io/v1': right('alice') })], 's24/user:1'),
    pod(
      's-hub-wrong-names',
      [pullSecret({ 'registry-1.docker.io': right('alice'), 'hub.docker.com': right('bob') })],
      's25/user:1',
    ),
    pod(
      's-token',
      [pullSecret({ 'tokens.example': wrong('alice') }), pullSecret({ 'tokens.example': right('dave') })],
      'tokens.example/s26/a:1',
    ),
    pod(
      's-local',
      [pullSecret({ '127.0.0.1:5001': right('alice'), localhost: right('bob') })],
      '127.0.0.1:5001/s27/a:1',
      'localhost:5001/s27/b:1',
    ),
    {
      name: 's-no-tag',
      secrets: [pullSecret({ [host]: right('alice') })],
      images: [{ image: `${host}/s28/a:1`, absent: true }],
    },
    {
      name: 's-no-tag-twice',
      secrets: [pullSecret({ [host]: wrong('alice') }), pullSecret({ [host]: right('bob') })],
      images: [{ image: `${host}/s29/a:1`, absent: true }],
    },
    pod('s-invalid', [], 'Registry.example/UPPER:1'),
  ],
};
