/** Credential provider plugins that require tokens of service accounts, with and without the agent's right to request them. */
import { answers, host, pod, setup } from './plugin-setup.ts';
import { right, wrong, type Setup } from './setup.ts';

const tokens = setup(
  'a plugin that requires tokens of service accounts',
  [
    {
      name: 'wants-token',
      matchImages: [`${host}/p9`],
      tokenAttributes: {
        serviceAccountTokenAudience: 'audience',
        cacheType: 'ServiceAccount',
        requireServiceAccount: true,
      },
    },
    { name: 'other', matchImages: [`${host}/p9`] },
  ],
  {
    'wants-token': { ...answers(host, wrong('bob')), wantsToken: true },
    other: answers(host, right('alice')),
  },
  [pod('p9-token', [`${host}/p9/a:1`])],
);

const accounts = setup(
  'tokens of service accounts, allowed',
  [
    {
      name: 'by-account',
      matchImages: [`${host}/pa/account`],
      defaultCacheDuration: '1h',
      tokenAttributes: {
        serviceAccountTokenAudience: 'audience-one',
        cacheType: 'ServiceAccount',
        requireServiceAccount: true,
        requiredServiceAccountAnnotationKeys: ['example.com/role'],
        optionalServiceAccountAnnotationKeys: ['example.com/note'],
      },
    },
    {
      name: 'by-token',
      matchImages: [`${host}/pa/token`],
      defaultCacheDuration: '1h',
      tokenAttributes: {
        serviceAccountTokenAudience: 'audience-two',
        cacheType: 'Token',
        requireServiceAccount: false,
      },
    },
  ],
  {
    'by-account': answers(host, right('alice'), { cacheKeyType: 'Registry' }),
    'by-token': { ...answers(host, right('bob')), rememberedByToken: true },
  },
  [
    { ...pod('pa-first', [`${host}/pa/account/a:1`, `${host}/pa/account/b:1`]), serviceAccount: 'with-role' },
    { ...pod('pa-again', [`${host}/pa/account/c:1`]), serviceAccount: 'with-role' },
    { ...pod('pa-other', [`${host}/pa/account/d:1`]), serviceAccount: 'with-role-and-note' },
    { ...pod('pa-without', [`${host}/pa/account/e:1`]), serviceAccount: 'without-role' },
    pod('pa-default', [`${host}/pa/account/f:1`]),
    { ...pod('pa-token', [`${host}/pa/token/a:1`, `${host}/pa/token/a:2`]), serviceAccount: 'without-role' },
    pod('pa-token-default', [`${host}/pa/token/b:1`]),
    { ...pod('pa-token-again', [`${host}/pa/token/a:3`]), serviceAccount: 'without-role' },
  ],
  {
    serviceAccountTokens: true,
    accounts: {
      'with-role': { 'example.com/role': 'reader', 'example.com/unrelated': 'x' },
      'with-role-and-note': { 'example.com/role': 'reader', 'example.com/note': '<&>' },
      'without-role': {},
    },
  },
);

export const tokenSetups: readonly Setup[] = [tokens, accounts];
