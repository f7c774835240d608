/** Certificates and keys in Secrets and webhook configurations. */
import { isDeepStrictEqual } from 'node:util';
import { readAuthorities } from '../../../src/certificates/authorities.ts';
import { readLeaf } from '../../../src/controller/features/certificates/leaves.ts';
import { readCertificates, readPrivateKey, writeCertificates } from '../../../src/certificates/pem.ts';
import { readCaBundle, writeCaBundle } from '../../../src/controller/state/webhooks-file.ts';
import { readRequest, trimRequest } from '../../../src/controller/features/agent-certificates/request.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { words } from './inputs.ts';
import { object, must, type FuzzTarget } from './target.ts';

/** Created for this file, trusted nowhere. Fixed, because the same seed must give the same inputs. */
const key = [
  '-----BEGIN PRIVATE KEY-----',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwmg/8KaJ/dOtJfs/',
  'o81AqS2MHa0DQ3j3VsL2ODBrh/+hRANCAARArE80HA34oLNzmo4jDTXciX2gI1a9',
  'KNA6sENo9kxg7Rj6JZ0MXu31Q9/9O1vAV/kVBhFChQsGVmA4lcx/NSnQ',
  '-----END PRIVATE KEY-----',
].join('\n');
const certificate = [
  '-----BEGIN CERTIFICATE-----',
  'MIIBxjCCAWygAwIBAgIUQu4q+BhV0GRsARM5KubxGreqwg0wCgYIKoZIzj0EAwIw',
  'HTEbMBkGA1UEAwwSYXJjaHdyaWdodC13ZWJob29rMCAXDTI2MTEyMjE0MzIyMVoY',
  'DzIxMjYxMDI5MTQzMjIxWjAdMRswGQYDVQQDDBJhcmNod3JpZ2h0LXdlYmhvb2sw',
  'WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARArE80HA34oLNzmo4jDTXciX2gI1a9',
  'KNA6sENo9kxg7Rj6JZ0MXu31Q9/9O1vAV/kVBhFChQsGVmA4lcx/NSnQo4GHMIGE',
  'MB0GA1UdDgQWBBRI58EBZ3Q+v1pAGPmxo/YtoMO0RDAfBgNVHSMEGDAWgBRI58EB',
  'Z3Q+v1pAGPmxo/YtoMO0RDAhBgNVHREEGjAYghBhcmNod3JpZ2h0LWFnZW50hwR/',
  'AAABMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgKEMAoGCCqGSM49BAMC',
  'A0gAMEUCIQCQkkxZWWGnaUovbvQFlrFKVVC7k3meIC2oL70UOhJcBQIgFX+qCeq2',
  'mIXk6s6TFnVDthrZD91UiVoB3fSSw0qTNXE=',
  '-----END CERTIFICATE-----',
].join('\n');
const request = [
  '-----BEGIN CERTIFICATE REQUEST-----',
  'MIIBCzCBsgIBADAbMRkwFwYDVQQDDBBhcmNod3JpZ2h0LWFnZW50MFkwEwYHKoZI',
  'zj0CAQYIKoZIzj0DAQcDQgAEQKxPNBwN+KCzc5qOIw013Il9oCNWvSjQOrBDaPZM',
  'YO0Y+iWdDF7t9UPf/TtbwFf5FQYRQoULBlZgOJXMfzUp0KA1MDMGCSqGSIb3DQEJ',
  'DjEmMCQwIgYDVR0RBBswGYIXbm9kZS0xLmFyY2h3cmlnaHQtYWdlbnQwCgYIKoZI',
  'zj0EAwIDSAAwRQIgfiQ1gSRBWqHIg5PPUVCX+edHsj5uBi4WkjnhAL0d02MCIQC7',
  'YAr78KRgCG2GVej05ulIxoJaLRaLcVbUYlx+pjPWAg==',
  '-----END CERTIFICATE REQUEST-----',
].join('\n');

export const certificateTargets: readonly FuzzTarget[] = [
  {
    name: 'certificates and keys',
    share: 4,
    examples: [`${certificate}\n${certificate}\n`, certificate, `${key}\n`],
    words: words('-----BEGIN CERTIFICATE----- -----END MIIB AAAA = PRIVATE KEY-----', '\n'),
    feed: (_, text) => {
      readPrivateKey(text);
      const found = readCertificates(text);
      if (found === undefined) return;
      const ids = found.map(({ id }) => id);
      for (const again of [readCertificates(writeCertificates(found)), readCaBundle(writeCaBundle(found))])
        must(
          isDeepStrictEqual(
            again?.map(({ id }) => id),
            ids,
          ),
          'other certificates when read again',
        );
    },
  },
  {
    name: 'Secrets of certificates',
    share: 4,
    examples: [
      JSON.stringify({
        'ca.crt': certificate,
        'ca.key': key,
        'previous.crt': certificate,
        'previous.key': key,
        'tls.crt': certificate,
        'tls.key': key,
        phase: 'signing',
      }),
    ],
    words: words('"ca.crt": "ca.key": "" { } , "phase": -----BEGIN'),
    feed: (input) => {
      const content = Object.entries(object(input)).filter(([, value]) => typeof value === 'string');
      const texts = Object.fromEntries(content) as Readonly<Record<string, string>>;
      readAuthorities(texts);
      readLeaf(texts);
    },
  },
  {
    name: 'certificate signing requests',
    share: 1,
    examples: [request, request.split('\n').slice(1, -1).join('')],
    words: words('-----BEGIN CERTIFICATE REQUEST----- MIIB AAAA = /w==', '\n'),
    feed: async (input, text) => {
      const spec = { request: input.toString('base64'), username: 'a', usages: [] };
      trimRequest({ metadata: { name: 'a' }, spec } as KubeObject, 'a');
      return (await readRequest(text))?.names;
    },
  },
];
