import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import t from 'tap';
import { signerOf } from '../../src/certificates/authorities.ts';
import { agreedTimeOf, timesOf } from '../../src/certificates/clock-agreement.ts';
import type * as Issue from '../../src/certificates/issue.ts';
import { backdateMs, issueAuthority, issueLeaf } from '../../src/certificates/issue.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { like } from '../support/like.ts';

const now = Date.now();
const hour = 3_600_000;
const life = { from: now - backdateMs, to: now + hour };
const names = ['w.ns.svc', '127.0.0.1', '::1'];
const server = { commonName: 'archwright-webhook', names, usage: 'server' } as const;
const client = { commonName: 'archwright-webhook', names: [], usage: 'client' } as const;

t.test('the fields of a CA certificate', async (t) => {
  const { certificate, key } = await issueAuthority(life);
  const { x509 } = certificate;
  t.ok(x509.ca);
  t.ok(x509.verify(x509.publicKey));
  t.match(x509.subject, /^CN=archwright CA \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [0-9a-f]{8}$/);
  t.ok(x509.checkPrivateKey(createPrivateKey(reveal(key))));
  t.equal(x509.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
  t.ok(Math.abs(certificate.from - (now - backdateMs)) < 1000);
  t.ok(Math.abs(certificate.to - (now + hour)) < 1000);
  t.notMatch(JSON.stringify({ key }), 'PRIVATE');
  const other = await issueAuthority(life);
  t.not(other.certificate.x509.subject, x509.subject, 'each authority has its own name');
  t.not(other.certificate.x509.serialNumber, x509.serialNumber);
});

t.test('the fields of the certificates that a CA signs', async (t) => {
  const authority = await issueAuthority(life);
  const leaf = await issueLeaf(authority, server, { from: now, to: now + 2 * hour });
  const { x509, to } = leaf.certificate;
  t.notOk(x509.ca);
  t.ok(x509.checkIssued(authority.certificate.x509));
  t.ok(x509.verify(authority.certificate.x509.publicKey));
  t.equal(to, authority.certificate.to, 'it does not outlive its authority');
  t.strictSame(x509.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  t.equal(x509.subjectAltName, 'DNS:w.ns.svc, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1');
  t.equal(x509.subject, 'CN=archwright-webhook');

  const { certificate } = await issueLeaf(authority, client, { from: now, to: now + 60_000 });
  t.strictSame(certificate.x509.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  t.equal(certificate.x509.subjectAltName, undefined);
  t.not(certificate.x509.serialNumber, x509.serialNumber);
});

t.test('an earlier authority signs while the newest is announced, and not afterwards', async (t) => {
  const [previousSigner, newest] = [await issueAuthority(life), await issueAuthority(life)];
  const both = { newest, previous: [previousSigner.certificate], previousSigner };
  const time = agreedTimeOf(now, now, timesOf(hour / 2, hour));
  t.equal(signerOf({ ...both, phase: 'announcing' }, time), previousSigner);
  t.equal(signerOf({ ...both, phase: 'signing' }, time), newest);
});

/** `npm test` needs only Node and npm. CI has openssl. */
const withoutOpenssl = hasOpenssl() ? false : 'openssl is not installed on this machine';

t.test('openssl accepts them in strict mode', { skip: withoutOpenssl }, async (t) => {
  const dir = t.testdir();
  const [old, authority] = [await issueAuthority(life), await issueAuthority(life)];
  const bundle = join(dir, 'ca.crt');
  writeFileSync(bundle, authority.certificate.pem + old.certificate.pem);
  for (const [issuer, subject, purpose] of [
    [authority, server, 'sslserver'],
    [authority, client, 'sslclient'],
    [old, client, 'sslclient'],
  ] as const) {
    const leaf = await issueLeaf(issuer, subject, { from: now, to: now + hour });
    const path = join(dir, 'tls.crt');
    writeFileSync(path, leaf.certificate.pem);
    const text = openssl('verify', '-x509_strict', '-purpose', purpose, '-CAfile', bundle, path);
    t.match(text, 'tls.crt: OK');
    writeFileSync(join(dir, 'tls.key'), reveal(leaf.key));
    const fromKey = openssl('pkey', '-in', join(dir, 'tls.key'), '-pubout');
    t.equal(fromKey, openssl('x509', '-in', path, '-noout', '-pubkey'));
    // Not as a client certificate, and not as a server certificate.
    const wrong = purpose === 'sslserver' ? 'sslclient' : 'sslserver';
    t.throws(() => openssl('verify', '-x509_strict', '-purpose', wrong, '-CAfile', bundle, path));
  }
});

t.test('the bundle issues certificates too, although it loads CommonJS packages differently', async (t) => {
  const outdir = t.testdir();
  const js =
    "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";
  await build({
    entryPoints: ['src/certificates/issue.ts'],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    banner: { js },
  });
  const bundled = (await import(pathToFileURL(join(outdir, 'issue.mjs')).href)) as typeof Issue;
  const { certificate } = await bundled.issueAuthority(life);
  like(t, certificate, { pem: /^-----BEGIN CERTIFICATE-----/ });
});

function openssl(...args: string[]): string {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

function hasOpenssl(): boolean {
  try {
    return openssl('version').startsWith('OpenSSL');
  } catch {
    return false;
  }
}
