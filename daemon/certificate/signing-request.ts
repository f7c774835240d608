/**
 * A new key on P-256 and its PKCS #10 certificate request (RFC 2986), in DER by hand: the library of the
 * controller would take 20 MiB in each agent.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { agentNameOn, agentServerName } from '../../src/certificates/agent-names.ts';
import { secret, type Secret } from '../../src/telemetry/secret.ts';

/** Tags of X.690. */
const tags = { integer: 0x02, bits: 0x03, octets: 0x04, utf8: 0x0c, sequence: 0x30, set: 0x31 } as const;
/** Context-specific tags: `[0]` constructed for attributes, `[2]` for a DNS name (RFC 5280, 4.2.1.6). */
const attributesTag = 0xa0;
const dnsNameTag = 0x82;

const oids = {
  commonName: Buffer.from('0603550403', 'hex'),
  extensionRequest: Buffer.from('06092a864886f70d01090e', 'hex'),
  subjectAltName: Buffer.from('0603551d11', 'hex'),
  ecdsaWithSha256: Buffer.from('06082a8648ce3d040302', 'hex'),
};

/** @returns both in PEM; the key as PKCS #8 */
export function createRequest(node: string): { readonly key: Secret; readonly request: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(oids.commonName, der(tags.utf8, Buffer.from(agentServerName)));
  const names = sequence(der(dnsNameTag, Buffer.from(agentNameOn(node))));
  const extensions = sequence(sequence(oids.subjectAltName, der(tags.octets, names)));
  const info = sequence(
    der(tags.integer, Buffer.of(0)),
    sequence(der(tags.set, name)),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(attributesTag, sequence(oids.extensionRequest, der(tags.set, extensions))),
  );
  const signature = Buffer.concat([Buffer.of(0), sign('sha256', info, privateKey)]);
  const request = sequence(info, sequence(oids.ecdsaWithSha256), der(tags.bits, signature));
  const lines = request.toString('base64').match(/.{1,64}/g) ?? [];
  const label = 'CERTIFICATE REQUEST';
  return {
    key: secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
    request: `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`,
  };
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(tags.sequence, Buffer.concat(parts));
}

/** One value with its tag and length; a request is shorter than 64 KiB. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  if (length < 0x100) return Buffer.concat([Buffer.of(tag, 0x81, length), content]);
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 0xff), content]);
}
